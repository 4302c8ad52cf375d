#include "core/train/checkpointer.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <sstream>

#include "core/tensor/core_states.hpp"

namespace nsp {
namespace {

constexpr int64_t staging_elements = 4 << 20;  // a piece of a tensor in a shard is at most 16 MiB

std::string padded(int64_t number, int width) {
  std::string text = std::to_string(number);
  return std::string(std::max<std::size_t>(static_cast<std::size_t>(width), text.size()) - text.size(), '0') + text;
}

std::string joined(const std::vector<int64_t>& values) {
  std::string text;
  for (int64_t v : values) text += (text.empty() ? "" : " ") + std::to_string(v);
  return text;
}

std::vector<int64_t> numbers(const Attributes& attributes, const std::string& key) {
  const auto it = attributes.find(key);
  if (it == attributes.end())
    throw Error(ErrorKind::input, "the checkpoint has no attribute " + key +
                                      ". It was written by another version of nsp or is damaged. Use an older checkpoint.");
  std::istringstream in(it->second);
  std::vector<int64_t> out;
  for (int64_t v; in >> v;) out.push_back(v);
  return out;
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

std::string Checkpointer::replica_prefix(const std::string& kind) const {
  return "/replica_" + padded(parts_.replica(), 4) + "/" + kind + "/";
}

int64_t Checkpointer::bytes_to_put() const {
  int64_t bytes = 0;
  for (const StateDecl& decl : parts_.arena.decls()) {
    if (!decl.checkpointed) continue;
    for (const Range& owned : parts_.owned()) {
      const int64_t own = owned.size(), part = part_of_replica(owned).size();
      const int64_t elements = parts_.replicas_differ() ? own + (decl.kind == weights_decl().kind ? part : 0) : part;
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
        put_state(writer, state, replica_prefix(decls[i].kind), owned);
        if (state == weights_state) put_state(writer, parts_.spare, "/model/", part_of_replica(owned));
      } else {
        put_state(writer, state, state == weights_state ? "/model/" : "/state/" + decls[i].kind + "/", part_of_replica(owned));
      }
    }
  }
}

std::string Checkpointer::agree(const std::string& failure) {
  constexpr int64_t length = 1024;
  std::vector<char> own(length, 0);
  std::memcpy(own.data(), failure.data(), std::min<std::size_t>(failure.size(), length - 1));
  const std::vector<char> all = gather_now(parts_.groups.world(), parts_.wait, own.data(), length);
  for (int r = 0; r < parts_.plan.ranks; ++r)
    if (all[static_cast<std::size_t>(r * length)] != 0)
      return std::string(&all[static_cast<std::size_t>(r * length)]) + " (rank " + std::to_string(r) + ")";
  return "";
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
  attributes["data.position"] = data_position;
  attributes["written"] = std::to_string(std::time(nullptr));
  std::string failure;
  std::vector<PieceRecord> pieces;
  try {
    const std::unique_ptr<ShardWriter> writer = store_.begin(state.step, parts_.rank, run_, bytes_to_put());
    put_all(*writer);
    pieces = writer->finish();
  } catch (const Error& e) {
    failure = e.what();
  }
  failure = agree(failure);
  if (failure.empty()) {
    pieces = gather_pieces(pieces);
    if (parts_.rank == 0) {
      try {
        store_.commit(state.step, run_, attributes, pieces);
      } catch (const Error& e) {
        failure = e.what();
      }
    }
    failure = agree(failure);
  }
  SavedCheckpoint saved;
  saved.where = store_.where(state.step);
  if (!failure.empty()) {
    if (parts_.rank == 0) store_.rollback(state.step);
    parts_.log.warning("the checkpoint of step " + std::to_string(state.step) + " failed and was removed: " + failure +
                       ". Earlier checkpoints are as they were.");
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

void upload(Device& device, Stream& stream, HostWait& wait, Buffer& staging, TensorView view,
            const std::function<void(int64_t offset, int64_t count, float* out)>& values) {
  const int64_t chunk = staging.bytes() / 4;
  for (int64_t at = 0; at < view.elements(); at += chunk) {
    const int64_t n = std::min(chunk, view.elements() - at);
    values(at, n, static_cast<float*>(staging.data()));
    stream.copy(view.slice(at, at + n).data(), staging.data(), 4 * n);
    wait.wait(*record_event(device, stream, "upload"));
  }
}

void Checkpointer::get_state(CheckpointReader& reader, StateId state, const std::string& prefix, Range range) {
  if (range.empty()) return;
  const ParamTable& table = parts_.model.table();
  const TensorView view = parts_.cache.acquire(state, range, parts_.stream);
  NSP_REQUIRE(view.dtype() == DType::f32, "states are fp32");
  for (const ParamPiece& piece : table.pieces(range)) {
    const Param& param = table.param(piece.param);
    if (reader.shape(prefix + param.name) != param.shape)
      throw Error(ErrorKind::input,
                  "the checkpoint's " + prefix + param.name +
                      " has another shape than this model. The run directory holds another model. Use another --run.dir.");
    upload(parts_.device, parts_.stream, parts_.wait, staging_, view.slice(piece.range.lo - range.lo, piece.range.hi - range.lo),
           [&](int64_t offset, int64_t count, float* out) {
             reader.get(prefix + param.name, DType::f32, piece.offset_in_param + offset, count, out);
           });
  }
  parts_.cache.release(state, range, true);
}

TrainState Checkpointer::restore(CheckpointReader& reader) {
  const Attributes& attributes = reader.attributes();
  const bool differ = attributes.count("replicas_differ") != 0 && attributes.at("replicas_differ") == "1";
  const std::vector<int64_t> replicas = numbers(attributes, "replicas");
  if (differ != parts_.replicas_differ() || (differ && replicas.at(0) != parts_.plan.replicas))
    throw Error(ErrorKind::usage, "the checkpoint holds " + std::to_string(replicas.at(0)) +
                                      (differ ? " different replicas" : " equal replicas") + ", and this start has " +
                                      std::to_string(parts_.plan.replicas) +
                                      (parts_.replicas_differ() ? " that may differ" : " that stay equal") +
                                      ". Merging replicas on resume is not available. Start with the same --plugins and the same number of "
                                      "replicas, or use another --run.dir.");
  const std::vector<StateDecl>& decls = parts_.arena.decls();
  for (std::size_t i = 0; i < decls.size(); ++i) {
    if (!decls[i].checkpointed) continue;
    const auto state = static_cast<StateId>(i);
    const std::string prefix = differ                   ? replica_prefix(decls[i].kind)
                               : state == weights_state ? "/model/"
                                                        : "/state/" + decls[i].kind + "/";
    for (std::size_t s = 0; s < parts_.owned().size(); ++s) get_state(reader, state, prefix, parts_.arena.held(state, static_cast<int>(s)));
  }
  TrainState out;
  out.step = numbers(attributes, "step").at(0);
  const auto own = [&](const std::string& key) {
    const std::vector<int64_t> values = numbers(attributes, key);
    return values.at(differ ? static_cast<std::size_t>(parts_.replica()) : 0);
  };
  out.updates = own("optimizer_updates");
  out.bad_in_a_row = own("bad_steps_in_a_row");
  return out;
}

void restore_model(TrainParts& parts, CheckpointReader& reader) {
  Buffer staging(parts.device, Checkpointer::staging_bytes(), MemoryKind::pinned, "checkpoint staging");
  for (const Param& param : parts.model.table().params()) {
    const TensorView view = parts.arena.view(weights_state, {param.segment, param.offset, param.offset + param.elements()});
    upload(parts.device, parts.stream, parts.wait, staging, view,
           [&](int64_t offset, int64_t count, float* out) { reader.get("/model/" + param.name, DType::f32, offset, count, out); });
  }
}

}  // namespace nsp
