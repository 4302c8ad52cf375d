// The ranks of a run: the chosen communicator module, started, with its ring and watchdog; and what all ranks know of each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/ring.hpp"
#include "comm/watchdog.hpp"
#include "core/app/session.hpp"
#include "core/discover/host.hpp"
#include "core/discover/thread_share.hpp"
#include "core/discover/topology.hpp"
#include "core/model/spec.hpp"
#include "nsp/communicator.hpp"
#include "nsp/optimizer.hpp"

namespace nsp {

class World {
 public:
  // Starts the communicator that --comm names (auto: mpi under a launcher, else self). alone: always self.
  World(Session& session, bool alone);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Communicator& comm() { return *comm_; }
  HostWait& wait() { return wait_; }
  int rank() const { return comm_->rank(); }
  double timeout() const { return timeout_; }  // comm.timeout, seconds
  const HostInfo& host() const { return host_; }
  // Shuts the transport down; the last act of a rank.
  void close();
  // The text of the first rank that has one, on every rank; empty if none has. Collective.
  std::string first_failure(const std::string& failure);
  // The numbers of rank 0, on every rank. Collective.
  std::vector<int64_t> of_first_rank(std::vector<int64_t> numbers);
  // Throws on every rank the same Error if any rank has a failure text; the text of the first one.
  void agree(ErrorKind kind, const std::string& failure);

 private:
  HostInfo host_;
  double timeout_;
  FixedRing ring_;
  HostWait wait_;
  Options comm_options_;
  std::unique_ptr<PluginPtr<CommProvider>> provider_;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Watchdog> watchdog_;
};

// The device of this rank: the backend that --backend names or the best one, with the threads that the launcher left this rank.
struct RankDevice {
  std::unique_ptr<Device> device;
  ThreadShare share;
  Topology topology;
  std::string backend;
};
// Collective. measure_peak: of matmuls in train.dtype, for peak_share. stored_threads: of the plan that a resumed run reuses,
// 0 = none; it holds unless train.threads is given or this rank may use fewer cores now.
RankDevice open_device(Session& session, World& world, bool measure_peak, int stored_threads = 0);

// Collective: ranks may have different backends. Error(plugin) on all of them if one lacks an op of the model or of the optimizer
// (check_ops in core/plan/op_support.hpp).
void require_ops(World& world, const Device& device, const ModelSpec& spec, DType dtype, const Optimizer* optimizer);

}  // namespace nsp
