// nsp_app checkpoint ls | verify.
#include <iostream>

#include "core/app/verbs.hpp"
#include "core/config/origin.hpp"
#include "io/checkpoint_cli.hpp"

namespace nsp {

int run_checkpoint(Session& session) {
  const std::vector<std::string>& words = session.line().operands();
  session.configure({});
  const std::string action = words.empty() ? "" : words[0];
  const Options::Value& dir = session.config().section("run").values().at("dir");
  if (words.size() > 1 && dir.origin == kOriginCommandLine)
    throw Error(ErrorKind::usage, "checkpoint " + action + " " + words[1] + " has --run.dir " + dir.text +
                                      " as well. Both name the run to look at. Leave one of them out.");
  const std::string run = words.size() > 1 ? words[1] : dir.text;
  if (action == "ls") return checkpoint_ls(run, std::cout);
  if (action == "verify") return checkpoint_verify(run, std::cout);
  throw Error(ErrorKind::usage, "checkpoint needs to know what to do" +
                                    (action.empty() ? std::string() : ", and " + action + " is nothing it does") +
                                    ". Available are ls and verify. Write: nsp_app checkpoint ls RUN");
}

}  // namespace nsp
