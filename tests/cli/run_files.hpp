// What a run has left in its directory, for comparison.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nsp::test {

// Lines of RUN/metrics.jsonl of one kind ("step", "eval", ...), in file order.
std::vector<std::string> records(const std::string& run_dir, const std::string& kind);
// The text of a value in a line, as written; empty where there is none.
std::string field(const std::string& line, const std::string& name);
double number(const std::string& line, const std::string& name);  // NaN where there is none

// All losses of a run, as written, in file order; a failure of the test unless the steps are 1 ... steps, each once.
std::vector<std::string> losses(const std::string& run_dir, int64_t steps);
double sum_of(const std::string& run_dir, const std::string& name, int64_t first_step, int64_t last_step);

// Every data set of a checkpoint by name, as nsp's own reader sees it. Throws where it cannot be read.
using Tensors = std::map<std::string, std::vector<float>>;
Tensors read_checkpoint(const std::string& run_dir, int64_t step);
// The names of the tensors that are not the same bytes in both, with their first difference; empty if all are equal.
std::string differences(const Tensors& a, const Tensors& b);
// Scalars of a checkpoint that belong to the training state: step, optimizer updates, data position, ...
std::map<std::string, std::string> read_scalars(const std::string& run_dir, int64_t step);

// A command line with another value for an option that it has.
std::string with(const std::string& command, const std::string& option, const std::string& value);

// mpirun with that many ranks of one thread each. The modules' folder and the MPI settings come from the environment.
std::string ranks(int n);

std::string step_text(int step, int steps);  // as the step line has it
std::string step_folder(const std::string& run_dir, int step);
void expect_good_checkpoints(const std::string& run_dir);  // checkpoint verify says so

void pause_ms(int ms);
// Until a checkpoint is being written: its folder is there, and the manifest that completes it is not. false: it was too quick, or
// did not come within 300 s.
bool wait_for_unfinished(const std::string& folder);

}  // namespace nsp::test
