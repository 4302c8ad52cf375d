// From argv to a verb and its exit code.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "core/app/process.hpp"
#include "core/app/verbs.hpp"
#include "core/config/help.hpp"
#include "core/version.hpp"

extern char** environ;

namespace nsp {
namespace {

void print_error(const std::string& text) {
  std::fprintf(stderr, "nsp_app: error: %s\n", text.c_str());
  std::fflush(stderr);
}

// The other ranks usually fail for the same reason; they give the ranks before them the time to say it and to take the job down.
// On a crowded host ranks start seconds apart. Nobody waits for this in vain: a rank that sleeps here was about to end the job.
void let_lower_ranks_speak(int rank) {
  if (rank > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2500 + 500 * std::min(rank, 15)));
}

std::string here(int rank) {
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  return " (rank " + std::to_string(rank) + " on " + host + ")";
}

int dispatch(Session& session) {
  const std::string& verb = session.line().verb();
  if (session.line().help()) {
    std::fputs(help_text(verb, session.line().verb_named(), rows_for_help(session)).c_str(), stdout);
    return exit_code::done;
  }
  if (verb == "train") return run_train(session);
  if (verb == "plan") return run_plan(session);
  if (verb == "prepare") return run_prepare(session);
  if (verb == "eval") return run_eval(session);
  if (verb == "generate") return run_generate(session);
  if (verb == "checkpoint") return run_checkpoint(session);
  if (verb == "plugins") return run_plugins(session);
  NSP_REQUIRE(verb == "info", "every verb of the table has its function");
  return run_info(session);
}

}  // namespace

int end_with_error(World& world, const Error& error) {
  const int rank = world.rank(), code = exit_code_of(error.kind());
  let_lower_ranks_speak(rank);
  print_error(std::string(error.what()) + (rank != 0 ? here(rank) : ""));
  if (world.comm().size() > 1) world.comm().abort(code, "");  // the reason has been printed
  world.close();
  return code;
}

int run_app(int argc, char** argv) {
  tune_process();
  const Launch launch = read_launch();
  try {
    CommandLine line = CommandLine::parse(argc, argv, environment_of(environ));
    if (line.version()) {
      std::printf("nsp %s (%s)\n", version(), build_stamp());
      return exit_code::done;
    }
    Session session(std::move(line), launch);
    return dispatch(session);
  } catch (const Error& e) {
    let_lower_ranks_speak(launch.rank);
    print_error(std::string(e.what()) + (launch.rank != 0 ? here(launch.rank) : ""));
    return exit_code_of(e.kind());
  } catch (const std::exception& e) {
    print_error(std::string(e.what()) + here(launch.rank));
    return exit_code::error;
  }
}

}  // namespace nsp
