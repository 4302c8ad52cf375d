#include "core/train/checkpointer.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "core/tensor/core_states.hpp"
#include "core/train/checkpoint_names.hpp"

namespace nsp {
namespace {

constexpr int64_t staging_elements = 4 << 20;  // a piece of a tensor in a shard is at most 16 MiB

std::string joined(const std::vector<int64_t>& values) {
  std::string text;
  for (int64_t v : values) text.append(text.empty() ? "" : " ").append(std::to_string(v));
  return text;
}

}  // namespace

int64_t Checkpointer::staging_bytes() {
  return 4 * staging_elements;
}

Checkpointer::Checkpointer(TrainParts& parts, MeanWeights& mean, CheckpointStore& store, std::string run, Attributes attributes, int keep,
                           int64_t keep_every)
    : parts_(parts),
      mean_(mean),
      store_(store),
      run_(std::move(run)),
      attributes_(std::move(attributes)),
      keep_(keep),
      keep_every_(keep_every),
      staging_(parts.device, staging_bytes(), MemoryKind::pinned, "checkpoint staging") {}

Range Checkpointer::part_of_replica(Range owned) const {
  const int64_t n = owned.size(), m = parts_.replica(), r = parts_.plan.replicas;
  return {owned.segment, owned.lo + n * m / r, owned.lo + n * (m + 1) / r};
}

int64_t Checkpointer::bytes_to_put() const {
  int64_t bytes = 0;
  const std::vector<StateDecl>& decls = parts_.arena.decls();
  for (std::size_t i = 0; i < decls.size(); ++i) {
    const StateDecl& decl = decls[i];
    if (!decl.checkpointed) continue;
    for (const Range& owned : parts_.owned()) {
      const int64_t own = owned.size(), part = part_of_replica(owned).size();
      const int64_t elements = parts_.replicas_differ() ? own + (static_cast<StateId>(i) == parts_.master ? part : 0) : part;
      bytes += elements * static_cast<int64_t>(size_of(decl.dtype));
    }
  }
  return bytes;
}

void Checkpointer::put_state(ShardWriter& writer, StateId state, const std::string& prefix, Range range) {
  if (range.empty()) return;
  const ParamTable& table = parts_.model.table();
  const TensorView view = parts_.cache.acquire(state, range, parts_.stream);
  for (const ParamPiece& piece : table.pieces(range)) {
    const Param& param = table.param(piece.param);
    for (int64_t at = 0; at < piece.range.size(); at += staging_elements) {
      const int64_t n = std::min(staging_elements, piece.range.size() - at);
      const TensorView from = view.slice(piece.range.lo - range.lo + at, piece.range.lo - range.lo + at + n);
      parts_.stream.copy(staging_.data(), from.data(), from.bytes());
      parts_.wait.wait(*record_event(parts_.device, parts_.stream, "checkpoint piece"));
      writer.put(prefix + param.name, view.dtype(), param.shape, piece.offset_in_param + at, staging_.data(), n);
    }
  }
  parts_.cache.release(state, range, false);
}

void Checkpointer::put_all(ShardWriter& writer) {
  const std::vector<StateDecl>& decls = parts_.arena.decls();
  for (std::size_t i = 0; i < decls.size(); ++i) {
    if (!decls[i].checkpointed) continue;
    const auto state = static_cast<StateId>(i);
    for (const Range& owned : parts_.owned()) {
      if (parts_.replicas_differ()) {
        put_state(writer, state, replica_prefix(parts_.replica(), decls[i].kind), owned);
        if (state == parts_.master) put_state(writer, parts_.spare, model_prefix, part_of_replica(owned));
      } else {
        put_state(writer, state, common_prefix(decls[i].kind), part_of_replica(owned));
      }
    }
  }
}

std::vector<PieceRecord> Checkpointer::gather_pieces(const std::vector<PieceRecord>& own) {
  std::vector<char> bytes = serialize(own);
  const auto own_size = static_cast<int64_t>(bytes.size());
  const std::vector<char> sizes_raw = gather_now(parts_.groups.world(), parts_.wait, &own_size, sizeof own_size);
  std::vector<int64_t> sizes(static_cast<std::size_t>(parts_.plan.ranks));
  std::memcpy(sizes.data(), sizes_raw.data(), sizes_raw.size());
  const int64_t largest = *std::max_element(sizes.begin(), sizes.end());
  bytes.resize(static_cast<std::size_t>(largest));
  const std::vector<char> all = gather_now(parts_.groups.world(), parts_.wait, bytes.data(), largest);
  std::vector<PieceRecord> out;
  for (std::size_t r = 0; r < sizes.size(); ++r)
    for (PieceRecord& piece : deserialize_pieces(all.data() + static_cast<int64_t>(r) * largest, static_cast<std::size_t>(sizes[r])))
      out.push_back(std::move(piece));
  return out;
}

std::vector<int64_t> Checkpointer::by_replica(int64_t value) {
  const std::vector<char> raw = gather_now(parts_.groups.world(), parts_.wait, &value, sizeof value);
  std::vector<int64_t> out;
  for (int m = 0; m < parts_.plan.replicas; ++m) {
    int64_t v = 0;
    std::memcpy(&v, raw.data() + static_cast<std::size_t>(m * parts_.plan.replica_size) * sizeof v, sizeof v);
    out.push_back(v);
  }
  return out;
}

SavedCheckpoint Checkpointer::save(const TrainState& state, const std::string& data_position) {
  const ByteCounts before = parts_.groups.bytes();
  mean_.compute_into_spare();
  const ByteCounts after = parts_.groups.bytes();
  Attributes attributes = attributes_;
  attributes["step"] = std::to_string(state.step);
  attributes["replicas"] = std::to_string(parts_.plan.replicas);
  attributes["replicas_differ"] = parts_.replicas_differ() ? "1" : "0";
  attributes["optimizer_updates"] = joined(by_replica(state.updates));
  attributes["bad_steps_in_a_row"] = joined(by_replica(state.bad_in_a_row));
  attributes["evaluation_due"] = state.evaluation_due ? "1" : "0";
  attributes["data.position"] = data_position;
  attributes["written"] = std::to_string(std::time(nullptr));
  std::string failure;
  std::vector<PieceRecord> pieces;
  try {
    const std::unique_ptr<ShardWriter> writer = store_.begin(state.step, parts_.rank, run_, bytes_to_put());
    put_all(*writer);
    pieces = writer->finish();
  } catch (const std::exception& e) {
    failure = e.what();
  }
  failure = first_failure(parts_, failure);
  if (failure.empty()) {
    pieces = gather_pieces(pieces);
    if (parts_.rank == 0) {
      try {
        store_.commit(state.step, run_, attributes, pieces);
      } catch (const std::exception& e) {
        failure = e.what();
      }
    }
    failure = first_failure(parts_, failure);
  }
  SavedCheckpoint saved;
  saved.where = store_.where(state.step);
  if (!failure.empty()) {
    if (parts_.rank == 0) store_.rollback(state.step);
    parts_.log.warning("the checkpoint of step " + std::to_string(state.step) + " failed and counts for nothing: " + failure +
                       " Earlier checkpoints are as they were.");
    return saved;
  }
  if (parts_.rank == 0) store_.prune(keep_, keep_every_);
  saved.good = true;
  double sums[2] = {static_cast<double>(bytes_to_put()), static_cast<double>(after.sync - before.sync + after.replica - before.replica)};
  all_reduce_now(parts_.groups.world(), parts_.wait, sums);
  saved.bytes = static_cast<int64_t>(sums[0]);
  saved.mean_bytes = sums[1];
  return saved;
}

}  // namespace nsp
