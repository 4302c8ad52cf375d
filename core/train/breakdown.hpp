// Where the time of a run's steps went: measured on every rank, gathered at the end, printed with hints. docs/watching.md defines the
// numbers.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nsp/communicator.hpp"

namespace nsp {

// Seconds of one rank since its loop began. The parts and rest() add up to total; hidden lies beside them, under compute.
struct Breakdown {
  double total = 0;
  double compute = 0;    // forward and backward, the host's waits for its own device included
  double data = 0;       // reading samples
  double optimizer = 0;  // the update of the weights
  // Waiting for other ranks with nothing else to do, by what was waited for:
  double exchanges = 0;                   // inside the model (sequence shards)
  double averages = 0;                    // gradients and averages of replicas
  double vectors = 0;                     // the few numbers that ranks agree on each step; mostly the wait for the slowest rank
  double gather = 0;                      // updated weights inside a replica
  double evaluation = 0, checkpoint = 0;  // whole, with the communication in them
  double hidden = 0;                      // data of the device on its way between ranks while nobody waited for it
  double exposed() const { return exchanges + averages + vectors + gather; }
  double work() const { return compute + data + optimizer; }  // what the rank does itself
  double rest() const { return total - work() - exposed() - evaluation - checkpoint; }
};

// Adds the time of a scope to two sums: what it spent waiting for other ranks, and what else it took.
class TimeScope {
 public:
  TimeScope(const HostWait& wait, double& own, double& exposed)
      : wait_(wait), own_(own), exposed_(exposed), waited_(wait.times().exposed), begin_(std::chrono::steady_clock::now()) {}
  ~TimeScope() {
    const double waited = wait_.times().exposed - waited_;
    exposed_ += waited;
    own_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count() - waited;
  }
  TimeScope(const TimeScope&) = delete;
  TimeScope& operator=(const TimeScope&) = delete;

 private:
  const HostWait& wait_;
  double &own_, &exposed_;
  double waited_;
  std::chrono::steady_clock::time_point begin_;
};

// What one rank tells at the end; plain numbers, gathered as they are.
struct RankReport {
  Breakdown time;
  double peak_resident = 0;  // bytes of host memory, of the whole process
};

struct RunFacts {
  std::string sync, parallel;                // names of the plug-ins
  int64_t micro_batch = 1, micro_steps = 1;  // of the largest share
  int64_t tokens_at_once = 0;                // of a rank in a micro-step
  int64_t planned_bytes = 0;                 // of a rank, all tiers of host memory
  struct Rank {
    std::string host;
    int64_t host_memory = 0;  // bytes
    int ranks_on_host = 1;
  };
  std::vector<Rank> ranks;
};

struct EndReport {
  Breakdown mean;        // over the ranks
  Breakdown least;       // of the rank that waited least for others: what communication itself costs, whatever the ranks' speeds
  double imbalance = 1;  // largest work() over the mean one
  int slowest = 0;       // the rank of the largest
  double peak_resident = 0;
  int largest = 0;  // the rank of the largest peak_resident
  std::vector<std::string> hints;
};

// REQUIRES reports and facts.ranks of every rank.
EndReport summarize(std::span<const RankReport> reports, const RunFacts& facts);
// The table and the hints, lines of the log.
std::string end_text(const EndReport& end, std::span<const RankReport> reports, const RunFacts& facts);

// What would help, each naming the key to change; empty if nothing stands out.
std::vector<std::string> end_hints(const EndReport& end, const RunFacts& facts);

// The largest resident set of this process so far, in bytes; 0 where the system does not say.
double peak_resident_bytes();

}  // namespace nsp
