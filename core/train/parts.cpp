#include "core/train/parts.hpp"

#include <algorithm>
#include <cstring>

#include "core/tensor/core_states.hpp"

namespace nsp {

EventPtr record_event(Device& device, Stream& stream, const char* name) {
  auto event = std::make_shared<Event>(device, name);
  event->record(stream);
  return event;
}

namespace {
std::vector<int64_t> owner_counts(const TrainParts& parts, int segment) {
  const std::vector<int64_t> cuts = owner_cuts(parts.model.table().segment(segment).size, parts.plan.replica_size);
  std::vector<int64_t> counts;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) counts.push_back(cuts[i + 1] - cuts[i]);
  return counts;
}
}  // namespace

After sum_to_owners(TrainParts& parts, int segment, EventPtr gradients_written) {
  if (parts.plan.replica_size == 1) return {std::move(gradients_written), nullptr};
  const Range whole = parts.model.table().whole(segment), own = parts.owned()[static_cast<std::size_t>(segment)];
  const TensorView all = parts.arena.view(gradients_state, whole);
  WorkPtr work = parts.groups.replica().reduce_scatter(all, owner_counts(parts, segment), all.slice(own.lo, own.hi),
                                                       {std::move(gradients_written), nullptr});
  return {nullptr, std::move(work)};
}

namespace {
// The weights' owned ranges from the master's; nothing to do where they are the same storage.
void cast_owned(TrainParts& parts) {
  if (parts.master == weights_state) return;
  const Ops ops(parts.stream);
  for (const Range& own : parts.owned()) {
    if (own.empty()) continue;
    ops.cast(parts.cache.acquire(weights_state, own, parts.stream), parts.cache.acquire(parts.master, own, parts.stream));
    parts.cache.release(parts.master, own, false);
    parts.cache.release(weights_state, own, true);
  }
}
}  // namespace

void gather_weights(TrainParts& parts) {
  cast_owned(parts);
  if (parts.plan.replica_size == 1) return;
  const EventPtr updated = record_event(parts.device, parts.stream, "weights updated");
  std::vector<WorkPtr> works;
  for (std::size_t s = 0; s < parts.owned().size(); ++s) {
    const int segment = static_cast<int>(s);
    const TensorView all = parts.arena.view(weights_state, parts.model.table().whole(segment));
    const Range own = parts.owned()[s];
    works.push_back(parts.groups.replica().all_gather(all.slice(own.lo, own.hi), owner_counts(parts, segment), all, {updated, nullptr}));
    parts.cache.invalidate(segment);
  }
  for (const WorkPtr& work : works) parts.wait.wait(work);
}

std::string first_failure(TrainParts& parts, const std::string& failure) {
  constexpr int64_t length = 1024;
  std::vector<char> own(length, 0);
  std::memcpy(own.data(), failure.data(), std::min<std::size_t>(failure.size(), length - 1));
  const std::vector<char> all = gather_now(parts.groups.world(), parts.wait, own.data(), length);
  for (int r = 0; r < parts.plan.ranks; ++r)
    if (const char* text = &all[static_cast<std::size_t>(r * length)]; *text != 0)
      return std::string(text) + " (rank " + std::to_string(r) + ")";
  return "";
}

}  // namespace nsp
