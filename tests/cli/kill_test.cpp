// kill -9 of whole jobs at random moments, checkpoints included: the same command always goes on from a good checkpoint, and the
// run ends with the bits of one that nobody disturbed. NSP_TEST_KILLS says how many [10], NSP_TEST_SEED repeats their moments.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <set>
#include <thread>

#include "tests/cli/command.hpp"
#include "tests/cli/processes.hpp"
#include "tests/cli/run_files.hpp"

namespace nsp::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int steps = 24, checkpoint_every = 3;
constexpr double patience = 600;  // seconds; a run takes one on an idle machine

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::atoll(text) : otherwise;
}

struct Setting {
  const char* name;
  int ranks;
  const char* options;
};

const Setting settings[] = {{"ddp", 2, "--plugins ddp"},
                            {"desloc", 2, "--plugins desloc --desloc.kx 2 --desloc.ku 4 --desloc.kv 8"},
                            {"ddp, degree 2", 2, "--plugins ddp,autosp --autosp.degree 2"},
                            {"desloc, degree 2", 4, "--plugins desloc,autosp --autosp.degree 2 --desloc.kx 2 --desloc.ku 4 --desloc.kv 8"}};

// What a kill fell into, by what it left behind.
struct Phases {
  int start = 0, training = 0, checkpoint = 0;
  int all() const { return start + training + checkpoint; }
};

using FileTime = fs::file_time_type;

// Step folders with files in the making that were written after a time.
std::set<fs::path> unfinished_checkpoints(const std::string& run_dir, FileTime since) {
  std::set<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(run_dir + "/checkpoints", error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (at->path().extension() == ".tmp" && fs::last_write_time(at->path(), gone) > since && !gone) found.insert(at->path().parent_path());
  }
  return found;
}

class KillSeries {
 public:
  KillSeries(const Setting& setting, std::mt19937& random) : setting_(setting), random_(random) {
    const auto begin = Clock::now();
    const Said said = run(command(whole_), patience);
    life_ = std::chrono::duration<double>(Clock::now() - begin).count();
    EXPECT_EQ(said.code, 0) << said.out;
    losses_ = losses(whole_, steps);
    tensors_ = read_checkpoint(whole_, steps);
    scalars_ = read_scalars(whole_, steps);
  }

  // Until a job was killed: at a moment of its life, or while it writes a checkpoint. A job that is over before counts as an
  // undisturbed end, and the next one begins anew.
  void kill_once(bool in_checkpoint, Phases& phases) {
    for (int attempt = 0; attempt < 20 && !testing::Test::HasFailure(); ++attempt) {
      const FileTime begin = FileTime::clock::now();
      Background job(command(run_dir_));
      if (in_checkpoint ? wait_for_a_checkpoint(job, begin) : wait_for_a_moment(job)) {
        const std::vector<pid_t> processes = all_of(job);
        kill_tree(job.pid());
        const Said said = job.wait(patience);
        wait_until_gone(processes);
        if (said.code == 128 + SIGKILL) return count(said, begin, phases);
        expect_undisturbed_end(said);
      } else {
        expect_undisturbed_end(job.wait(patience));
      }
    }
    ADD_FAILURE() << setting_.name << ": no job could be killed";
  }

  // The last job is left alone.
  void end() { expect_undisturbed_end(run(command(run_dir_), patience)); }

 private:
  std::string command(const std::string& run_dir) const {
    return ranks(setting_.ranks) + " " + setting_.options + " --train.checkpoint_every " + std::to_string(checkpoint_every) +
           " --train.eval_every 0" + tiny_run(run_dir, steps);
  }

  static std::vector<pid_t> all_of(const Background& job) {
    std::vector<pid_t> processes = descendants(job.pid());
    processes.push_back(job.pid());
    return processes;
  }

  // False if the job ended before.
  bool wait_for_a_moment(Background& job) {
    const double moment = std::uniform_real_distribution<double>(0, life_)(random_);
    const auto begin = Clock::now();
    while (std::chrono::duration<double>(Clock::now() - begin).count() < moment) {
      if (job.ended()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  // Waits for the first, second or third checkpoint of this job to be in the making, and then a little.
  bool wait_for_a_checkpoint(Background& job, FileTime begin) {
    if (!job.wait_for("\n[plan]\n", patience)) return false;
    const std::size_t wanted = std::uniform_int_distribution<std::size_t>(1, 3)(random_);
    const int micros = std::uniform_int_distribution<int>(0, 4000)(random_);
    std::set<fs::path> seen;
    while (!job.ended()) {
      seen.merge(unfinished_checkpoints(run_dir_, begin));
      if (seen.size() >= wanted) {
        std::this_thread::sleep_for(std::chrono::microseconds(micros));
        return true;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return false;
  }

  void count(const Said& said, FileTime begin, Phases& phases) {
    EXPECT_FALSE(said.contains("nsp_app: error")) << said.out;
    expect_only_good_checkpoints(said);
    if (!unfinished_checkpoints(run_dir_, begin).empty())
      ++phases.checkpoint;
    else
      ++(said.contains("\nstep ") ? phases.training : phases.start);
  }

  // A kill may leave parts of a checkpoint that are not taken for one, never one that is and cannot be used.
  void expect_only_good_checkpoints(const Said& said) const { EXPECT_FALSE(said.contains("passed over")) << said.out; }

  void expect_undisturbed_end(const Said& said) {
    ASSERT_EQ(said.code, 0) << setting_.name << ": " << said.out;
    expect_only_good_checkpoints(said);
    EXPECT_EQ(losses(run_dir_, steps), losses_) << setting_.name;
    EXPECT_EQ(differences(tensors_, read_checkpoint(run_dir_, steps)), "") << setting_.name;
    EXPECT_EQ(scalars_, read_scalars(run_dir_, steps)) << setting_.name;
    EXPECT_TRUE(unfinished_checkpoints(run_dir_, FileTime::min()).empty()) << setting_.name << ": left-overs of killed checkpoints stayed";
    const Said verified = run("$NSP checkpoint verify " + run_dir_, patience);
    EXPECT_EQ(verified.code, 0) << verified.out;
    fs::remove_all(run_dir_);
  }

  const Setting& setting_;
  std::mt19937& random_;
  const TempFolder folder_;
  const std::string whole_ = folder_ / "whole", run_dir_ = folder_ / "run";
  double life_ = 0;  // seconds that an undisturbed job takes
  std::vector<std::string> losses_;
  Tensors tensors_;
  std::map<std::string, std::string> scalars_;
};

TEST(Killed, AtAnyMomentARunEndsWithTheBitsOfAnUndisturbedOne) {
  const auto kills = static_cast<int>(from_environment("NSP_TEST_KILLS", 10));
  const auto seed = static_cast<unsigned>(from_environment("NSP_TEST_SEED", std::random_device{}()));
  SCOPED_TRACE("NSP_TEST_SEED=" + std::to_string(seed) + " repeats the moments");
  std::mt19937 random(seed);
  // Open MPI of a killed job leaves its files; they shall go with the folder.
  const TempFolder leavings;
  setenv("OMPI_MCA_orte_tmpdir_base", leavings.path().c_str(), 1);
  setenv("OMPI_MCA_btl_vader_backing_directory", leavings.path().c_str(), 1);
  Phases phases;
  // Four ranks on the two cores of a small machine take their time; few kills leave them out.
  const int series = static_cast<int>(std::size(settings)) - (kills < 30 ? 1 : 0);
  int left = kills;
  for (int s = 0; s < series && left > 0 && !HasFailure(); ++s) {
    KillSeries jobs(settings[s], random);
    const int share = left / (series - s);
    for (int k = 0; k < share && !HasFailure(); ++k, --left) jobs.kill_once(left % 2 == 1, phases);
    if (!HasFailure()) jobs.end();
  }
  std::cout << phases.all() << " kills: " << phases.start << " before the first step, " << phases.training << " while it trained, "
            << phases.checkpoint << " while it wrote a checkpoint (NSP_TEST_SEED=" << seed << ")" << std::endl;
  EXPECT_EQ(phases.all(), kills);
  if (kills >= 10) {
    EXPECT_GE(phases.checkpoint, 1);
  }
}

}  // namespace
}  // namespace nsp::test
