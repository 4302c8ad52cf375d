// What the fault tests share: commands with a fault, checks of what is left, and the state of processes.
#pragma once

#include <sys/types.h>

#include <string>

#include "tests/cli/command.hpp"

namespace nsp::test {

// Seconds in which a command that cannot fail to end is given up; machines that run tests are loaded.
constexpr double patience = 300;

// Options of the sync policy `faulty` (faulty_sync.cpp): `fault` in step t = at, at + 1, ... of `steps` steps on one rank.
std::string faulty(const std::string& inner, const std::string& fault, int at, int rank, int steps = 1);

// nsp_app under a shell that says "rank R ended with CODE" and is deaf to SIGTERM itself: what a launcher starts on each rank.
std::string told_program();
std::string told_ranks(int n);  // mpirun with it
// Every checkpoint of the run verifies, and the command goes on from `from` and finishes all `steps`, no step lost or doubled.
void expect_goes_on(const std::string& command, const std::string& run_dir, int from, int steps);
// All checkpoints there are hold what was written.
bool is_there(const std::string& run_dir, int step);  // a complete checkpoint

// The process of nsp_app of that rank below a launcher; 0 where there is none.
pid_t process_of_rank(pid_t launcher, int rank);

// Runs a command that must work to set a test up or to take it down; throws with what it said.
void must_run(const std::string& command);
// Why a machine cannot do it, e.g. "mount -t tmpfs: permission denied"; empty: it worked.
std::string try_to(const std::string& command);

}  // namespace nsp::test
