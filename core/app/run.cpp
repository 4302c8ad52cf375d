// From argv to a verb and its exit code.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <thread>

#include "core/app/process.hpp"
#include "core/app/verbs.hpp"
#include "core/config/help.hpp"
#include "core/train/signals.hpp"
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
// most: seconds; less than the others wait for this rank before they call it lost. When the launcher ends this rank meanwhile, one of
// them has spoken.
void let_lower_ranks_speak(int rank, double most, int code) {
  if (rank == 0) return;
  const bool told_before = told_to_terminate();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::min(2.5 + 0.5 * std::min(rank, 15), most));
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (told_to_terminate() && !told_before) _exit(code);
  }
}

Error as_error(const std::exception& failure) {
  const std::string what = failure.what();
  if (const auto* error = dynamic_cast<const Error*>(&failure)) return *error;
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr)
    return Error(ErrorKind::memory, "host memory ran out. An allocation beside the plan failed (" + what +
                                        "). Start fewer ranks on this host, or give the job more memory.");
  if (dynamic_cast<const std::filesystem::filesystem_error*>(&failure) != nullptr)
    return Error(ErrorKind::io, "the file system failed. " + what + ". Check it, its free space and your permissions.");
  return Error(ErrorKind::internal,
               "something failed that nsp does not know. It says: " + what + ". This is a bug in nsp or in a plug-in; please report it.");
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
  if (verb == "bench") return run_bench(session);
  if (verb == "plugins") return run_plugins(session);
  NSP_REQUIRE(verb == "info", "every verb of the table has its function");
  return run_info(session);
}

// The end of a verb whose product is its text: text that was lost is no success. A reader that went away, such as head, has what it
// wanted; that is said by the code alone.
int output_arrived() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code::done;
  const int reason = errno;  // 0: it was an earlier write
  pollfd reader{STDOUT_FILENO, 0, 0};
  if (reason == EPIPE || (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0)) return exit_code::error;
  throw Error(ErrorKind::io, "cannot write standard output: " + std::string(reason != 0 ? std::strerror(reason) : "a write failed") +
                                 ". What it was to hold is lost, in whole or in part. Make room there, or write to another place.");
}

int run_line(CommandLine line, const Launch& launch) {
  if (line.version()) {
    std::printf("nsp %s (%s)\n", version(), build_stamp());
    return output_arrived();
  }
  const bool trains = line.verb() == "train" && !line.help();  // its product is the run directory
  Session session(std::move(line), launch);
  const int code = dispatch(session);
  return trains || code != exit_code::done ? code : output_arrived();
}

}  // namespace

int end_with_error(World& world, const std::exception& failure) {
  const Error error = as_error(failure);
  const int rank = world.rank(), code = exit_code_of(error.kind());
  let_lower_ranks_speak(rank, world.timeout() / 3, code);
  print_error(std::string(error.what()) + (rank != 0 ? here(rank) : ""));
  if (world.comm().size() > 1) {
    // MPICH's launcher ends a job that is aborted without reading what its ranks said last, once in ten times.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    world.comm().abort(code, "");  // the reason has been printed
  }
  world.close();
  return code;
}

int run_app(int argc, char** argv) {
  open_standard_streams();
  tune_process();
  const Launch launch = read_launch();
  try {
    return run_line(CommandLine::parse(argc, argv, environment_of(environ)), launch);
  } catch (const std::exception& e) {
    const Error error = as_error(e);
    let_lower_ranks_speak(launch.rank, 60, exit_code_of(error.kind()));
    print_error(std::string(error.what()) + (launch.rank != 0 ? here(launch.rank) : ""));
    return exit_code_of(error.kind());
  }
}

}  // namespace nsp
