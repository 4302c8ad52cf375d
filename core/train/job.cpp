#include "core/train/job.hpp"

#include "core/model/init.hpp"
#include "core/train/batch_loader.hpp"
#include "core/train/checkpointer.hpp"
#include "core/train/restore.hpp"

namespace nsp {

void add_loop_memory(MemoryTable& table, const BatchShape& shape, const ModelSpec& spec) {
  table.lines.push_back({"data", "", "device", BatchLoader::device_bytes(shape)});
  table.lines.push_back({"logits of a sample", "", "device", 4 * spec.padded_vocab()});
  table.lines.push_back({"staging: data", "", "pinned", BatchLoader::host_bytes(shape)});
  table.lines.push_back({"staging: logits of a sample", "", "pinned", 4 * spec.padded_vocab()});
  table.lines.push_back({"staging: checkpoint", "", "pinned", Checkpointer::staging_bytes()});
}

Job::Job(const Planned& planned, int64_t bucket_elements, Communicator& world, Device& device, Transformer& model, const Policies& policies,
         HostWait& wait, Log& log)
    : stream_(device),
      groups_(world, planned.plan, device, policies.sync.sums_gradients(), wait),
      arena_(device, stream_, model.table(), planned.states, planned.plan.owned(model.table(), planned.plan.position_of(world.rank()))) {
  const JobPlan& plan = planned.plan;
  const int position = plan.position_of(world.rank());
  const ModelSpec& spec = model.spec();
  shape_ = plan.shape(position, policies.strategy.head_share(plan.parallel, position, spec.heads, spec.kv_heads), plan.replica_size > 1);
  ActivationPlanner activations;
  model.plan(activations, shape_);
  workspace_ = std::make_unique<Workspace>(device, activations);
  policies.cache.open(arena_);
  params_ = std::make_unique<ParamStore>(model.table(), arena_, policies.cache, stream_);
  policies.strategy.open(
      {plan.parallel, position, groups_.replica(), stream_, wait, spec.heads, spec.kv_heads, spec.head_dim, plan.micro_batch, plan.dtype});

  const auto named = [&](const std::vector<StateId>& ids) {
    std::vector<NamedState> out;
    for (StateId id : ids) out.push_back({id, planned.states[static_cast<std::size_t>(id)]});
    return out;
  };
  std::vector<NamedState> states = named({planned.master});
  for (const NamedState& s : named(planned.optimizer_states)) states.push_back(s);
  for (const NamedState& s : named(planned.sync_states)) states.push_back(s);
  policies.sync.open({plan.replica_of(world.rank()), plan.replicas, plan.weights(), groups_.replicate(), arena_.owned(), states,
                      policies.cache, stream_, wait, bucket_elements});

  int64_t largest = 0;
  for (const Segment& segment : model.table().segments()) largest = std::max(largest, segment.size);
  groups_.replica().reserve(largest);
  groups_.replicate().reserve(std::min(largest, bucket_elements));
  parts_ = std::make_unique<TrainParts>(TrainParts{plan, world.rank(), groups_, device, stream_, wait, model, arena_, policies.cache,
                                                   *params_, *workspace_, policies.strategy, policies.sync, policies.optimizer,
                                                   planned.master, named(planned.optimizer_states), planned.spare, log});
}

Job::Drain::~Drain() {
  try {
    const EventPtr end = record_event(job_.parts_->device, job_.stream_, "drain");
    while (!end->wait_for(100000)) {
    }
  } catch (const Error&) {
    // The device has failed; there is nothing left to wait for.
  }
}

void Job::initialize_weights(uint64_t seed) {
  set_weights(*parts_,
              [&](const Param& param, int64_t offset, int64_t count, float* out) { initial_values(param, seed, offset, count, out); });
}

}  // namespace nsp
