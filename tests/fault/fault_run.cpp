#include "tests/fault/fault_run.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "tests/cli/processes.hpp"
#include "tests/cli/run_files.hpp"

namespace nsp::test {

std::string faulty(const std::string& inner, const std::string& fault, int at, int rank, int steps) {
  return " --plugin-path " NSP_FAULT_PLUGIN_DIR " --faulty.inner " + inner + " --faulty.fault " + fault + " --faulty.at " +
         std::to_string(at) + " --faulty.rank " + std::to_string(rank) + " --faulty.steps " + std::to_string(steps) + " ";
}

std::string told_program() {
  // The shell stands between launcher and program, which then takes the launcher's pseudo-terminal for the user's.
  return "bash -c 'trap \"\" TERM; \"$0\" \"$@\"; code=$?; echo \"rank $OMPI_COMM_WORLD_RANK ended with $code\" >&2; exit $code' $NSP"
         " --run.progress false";
}

std::string told_ranks(int n) {
  return "env OMP_NUM_THREADS=1 mpirun -np " + std::to_string(n) + " " + told_program();
}

void expect_goes_on(const std::string& command, const std::string& run_dir, int from, int steps) {
  expect_good_checkpoints(run_dir);
  const Said again = run(command, patience);
  ASSERT_EQ(again.code, 0) << again.out;
  EXPECT_EQ(again.count("resumed from step " + std::to_string(from) + " "), 1) << again.out;
  losses(run_dir, steps);
  expect_good_checkpoints(run_dir);
  EXPECT_FALSE(std::filesystem::exists(run_dir + "/lock"));
}

bool is_there(const std::string& run_dir, int step) {
  return std::filesystem::exists(step_folder(run_dir, step) + "/manifest.h5");
}

pid_t process_of_rank(pid_t launcher, int rank) {
  for (pid_t pid : descendants(launcher)) {
    const std::string process = "/proc/" + std::to_string(pid);
    std::error_code gone;
    if (std::filesystem::read_symlink(process + "/exe", gone).filename() != "nsp_app") continue;
    const std::string variables = '\0' + read_file(process + "/environ");
    if (variables.find(std::string(1, '\0') + "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + '\0') != std::string::npos) return pid;
  }
  return 0;
}

std::string try_to(const std::string& command) {
  const Said said = run("bash -c '" + command + "'", 60);
  return said.code == 0 ? "" : command + ": " + (said.out.empty() ? "failed" : said.out);
}

void must_run(const std::string& command) {
  if (const std::string why = try_to(command); !why.empty()) throw std::runtime_error(why);
}

}  // namespace nsp::test
