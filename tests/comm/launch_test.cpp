// What can go wrong around MPI: the wrong launcher, and a rank that never comes. Starts the MPI test program and looks at how it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include "comm/mpi/launcher_check.hpp"
#include "nsp/error.hpp"

namespace nsp::test {
namespace {

struct Ended {
  int code = -1;
  std::string output;
  double seconds = 0;
};

Ended run(const std::string& command) {
  Ended ended;
  const auto start = std::chrono::steady_clock::now();
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return ended;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) ended.output.append(buffer, n);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return ended;
}

TEST(Launch, MissingRankEndsTheJobWithSix) {
  const Ended ended = run("timeout -k 1 40 mpirun -np 3 " NSP_COMM_MPI_TEST " --lost-rank");
  EXPECT_EQ(ended.code, 6) << ended.output;
  EXPECT_LT(ended.seconds, 12.0);
  EXPECT_NE(ended.output.find("all_reduce on communicator 'world' (tag 1) waits for rank 2"), std::string::npos) << ended.output;
}

TEST(Launch, SeparateProcessesAreNoJob) {
  // A launcher of another MPI looks like this: it says three, and MPI says one.
  const Ended ended = run("OMPI_COMM_WORLD_SIZE=3 timeout -k 1 40 " NSP_COMM_MPI_TEST " --open");
  EXPECT_EQ(ended.code, 11) << ended.output;
  EXPECT_NE(ended.output.find("each would train alone"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("OMPI_COMM_WORLD_SIZE"), std::string::npos) << ended.output;
}

TEST(Launch, OneProcessWithoutALauncherIsAJob) {
  const Ended ended = run("timeout -k 1 40 " NSP_COMM_MPI_TEST " --open");
  EXPECT_EQ(ended.code, 0) << ended.output;
}

TEST(LauncherCheck, InnermostLauncherCounts) {
  const auto refused = [](int size, const std::map<std::string, std::string>& environment) {
    try {
      check_launcher(size, "Some MPI", [&](const char* name) { return environment.count(name) ? environment.at(name).c_str() : nullptr; });
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::comm);
      EXPECT_NE(std::string(error.what()).find("Some MPI"), std::string::npos);
      return true;
    }
  };
  EXPECT_FALSE(refused(1, {}));
  EXPECT_FALSE(refused(4, {{"OMPI_COMM_WORLD_SIZE", "4"}}));
  EXPECT_TRUE(refused(1, {{"OMPI_COMM_WORLD_SIZE", "4"}}));
  EXPECT_TRUE(refused(1, {{"PMI_SIZE", "2"}}));
  // mpirun of Open MPI inside a Slurm step that has one task per node.
  EXPECT_FALSE(refused(8, {{"OMPI_COMM_WORLD_SIZE", "8"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}}));
  EXPECT_TRUE(refused(1, {{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}}));
  // A batch script is no step.
  EXPECT_FALSE(refused(1, {{"SLURM_NTASKS", "2"}}));
  EXPECT_FALSE(refused(1, {{"PMI_SIZE", "many"}}));
}

}  // namespace
}  // namespace nsp::test
