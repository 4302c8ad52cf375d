// nsp_app prepare: text to token shards.
#include "core/data/prepare.hpp"

#include <cstdio>

#include "core/app/verbs.hpp"

namespace nsp {

int run_prepare(Session& session) {
  session.configure({});
  const Config& config = session.config();
  const Options& verb = config.section("prepare");
  PrepareOptions options;
  options.inputs = config.list("prepare", "input");
  options.output = verb.text("output");
  options.tokenizer = verb.text("tokenizer");
  options.text_key = verb.text("text-key");
  options.val_fraction = verb.number("val-fraction");
  options.seed = static_cast<uint64_t>(verb.integer("seed"));
  if (options.inputs.empty())
    throw Error(ErrorKind::usage,
                "prepare needs --input. There is no text to read. Name files, folders or globs: nsp_app prepare --input 'src/**/*.py' "
                "--output data/mine");
  if (options.output.empty())
    throw Error(ErrorKind::usage, "prepare needs --output. There is no place to write to. Name a folder: --output data/mine");
  std::fputs(prepare(options).text().c_str(), stdout);
  return exit_code::done;
}

}  // namespace nsp
