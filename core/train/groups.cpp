#include "core/train/groups.hpp"

namespace nsp {

Groups::Groups(Communicator& world, const JobPlan& plan, Device& device, bool sums_gradients, HostWait& wait) : world_(world), wait_(wait) {
  const int rank = world.rank();
  const int replica = plan.replica_of(rank), position = plan.position_of(rank);
  control_ = world.split(0, rank, "control", nullptr);
  group_ = world.split(sums_gradients ? 0 : replica, rank, "group", nullptr);
  replica_host_ = world.split(replica, position, "replica host", nullptr);
  replica_ = world.split(replica, position, "replica", &device);
  replicate_ = world.split(position, replica, "replicate", &device);
  for (Communicator* c : {control_.get(), group_.get(), replica_host_.get(), replica_.get(), replicate_.get()}) wait_.add(c);
}

Groups::~Groups() {
  for (Communicator* c : {control_.get(), group_.get(), replica_host_.get(), replica_.get(), replicate_.get()}) wait_.remove(c);
}

ByteCounts Groups::bytes() const {
  ByteCounts b;
  b.sync = replicate_->bytes_sent();
  b.replica = replica_->bytes_sent();
  b.control = control_->bytes_sent() + group_->bytes_sent() + replica_host_->bytes_sent() + world_.bytes_sent();
  return b;
}

}  // namespace nsp
