#include "core/train/restore.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "core/tensor/core_states.hpp"
#include "core/train/checkpoint_names.hpp"
#include "core/train/checkpointer.hpp"
#include "nsp/bf16.hpp"

namespace nsp {
namespace {

constexpr int64_t merge_block = 1 << 20;  // elements of two replicas that a merge holds at a time

const std::string& attribute(const Attributes& attributes, const std::string& key) {
  const auto it = attributes.find(key);
  if (it == attributes.end())
    throw Error(ErrorKind::input, "the checkpoint has no attribute " + key +
                                      ". It was written by another version of nsp or is damaged. Use an older checkpoint.");
  return it->second;
}

std::vector<int64_t> numbers(const std::string& text) {
  std::istringstream in(text);
  std::vector<int64_t> out;
  for (int64_t v; in >> v;) out.push_back(v);
  return out;
}

class Restorer {
 public:
  Restorer(TrainParts& parts, CheckpointReader& reader)
      : parts_(parts),
        reader_(reader),
        differed_(attribute(reader.attributes(), "replicas_differ") == "1"),
        replicas_before_(static_cast<int>(numbers(attribute(reader.attributes(), "replicas")).at(0))),
        keeps_own_(differed_ && parts.replicas_differ() && replicas_before_ == parts.plan.replicas),
        staging_(parts.device, Checkpointer::staging_bytes(), MemoryKind::pinned, "restore staging") {}

  Restored run() {
    Restored out;
    out.replicas_before = replicas_before_;
    out.replicas_now = parts_.plan.replicas;
    out.merged = differed_ && !keeps_own_;
    const std::vector<StateDecl>& decls = parts_.arena.decls();
    for (std::size_t i = 0; i < decls.size(); ++i) {
      if (!decls[i].checkpointed) continue;
      const auto state = static_cast<StateId>(i);
      out.states.push_back({decls[i].kind, source_of(state, decls[i])});
      if (out.states.back().source == StateSource::mean && state != parts_.master && weights_.empty()) read_weights_of_replicas();
      for (std::size_t s = 0; s < parts_.owned().size(); ++s)
        fill(state, out.states.back().source, state == parts_.master ? parts_.owned()[s] : parts_.arena.held(state, static_cast<int>(s)));
    }
    out.dropped = nobody_declares();
    read_counts(out);
    return out;
  }

 private:
  bool has(const std::string& prefix) const { return reader_.has(prefix + parts_.model.table().params().front().name); }

  StateSource source_of(StateId state, const StateDecl& decl) const {
    if (has(replica_prefix(0, decl.kind))) {
      if (keeps_own_ && decl.scope == Scope::per_replica) return StateSource::own;
      if (decl.merge == Merge::identical) return StateSource::first_replica;
      return decl.merge == Merge::reset ? StateSource::reset : StateSource::mean;
    }
    if (has(common_prefix(decl.kind))) return StateSource::common;
    if (state == parts_.master)
      throw Error(ErrorKind::input,
                  "the checkpoint has no weights of this model. It was written by a run of another model or is damaged. Use another "
                  "--run.dir, or an earlier checkpoint.");
    return StateSource::absent;
  }

  void fill(StateId state, StateSource source, Range range) {
    const std::string& kind = parts_.arena.decls()[static_cast<std::size_t>(state)].kind;
    switch (source) {
      case StateSource::own:
        return read_range(state, range, replica_prefix(parts_.replica(), kind), false);
      case StateSource::first_replica:
        return read_range(state, range, replica_prefix(0, kind), false);
      case StateSource::common:
        return read_range(state, range, common_prefix(kind), false);
      case StateSource::mean:  // that of the weights lies in the checkpoint
        return state == parts_.master ? read_range(state, range, model_prefix, false) : read_range(state, range, "", true);
      case StateSource::reset:
      case StateSource::absent:
        return;  // arenas start with zeros
    }
  }

  // A range of a state, tensor by tensor: as it lies under a prefix, or the mean of the replicas'.
  void read_range(StateId state, Range range, const std::string& prefix, bool mean) {
    if (range.empty()) return;
    const ParamTable& table = parts_.model.table();
    const TensorView view = parts_.cache.acquire(state, range, parts_.stream);
    NSP_REQUIRE(view.dtype() == DType::f32, "states are fp32");
    const std::string& kind = parts_.arena.decls()[static_cast<std::size_t>(state)].kind;
    for (const ParamPiece& piece : table.pieces(range)) {
      const Param& param = table.param(piece.param);
      check_shape((mean ? replica_prefix(0, kind) : prefix) + param.name, param);
      upload(parts_.device, parts_.stream, parts_.wait, staging_, view.slice(piece.range.lo - range.lo, piece.range.hi - range.lo),
             [&](int64_t offset, int64_t count, float* out) {
               const int64_t at = piece.offset_in_param + offset;
               if (mean)
                 read_mean(kind, param, at, count, out);
               else
                 reader_.get(prefix + param.name, DType::f32, at, count, out);
             });
    }
    parts_.cache.release(state, range, true);
  }

  void check_shape(const std::string& name, const Param& param) const {
    if (reader_.shape(name) != param.shape)
      throw Error(
          ErrorKind::input,
          "the checkpoint's " + name + " has another shape than this model. The run directory holds another model. Use another --run.dir.");
  }

  // x_0 + sum_m w_m (x_m - x_0) in replica order: WeightedMean's formula in its order and precision, so it gives the same bits.
  void read_mean(const std::string& kind, const Param& param, int64_t offset, int64_t count, float* out) {
    for (int64_t done = 0; done < count; done += merge_block) {
      const int64_t n = std::min(merge_block, count - done);
      first_.resize(static_cast<std::size_t>(n));
      other_.resize(static_cast<std::size_t>(n));
      reader_.get(replica_prefix(0, kind) + param.name, DType::f32, offset + done, n, first_.data());
      float* mean = out + done;
      std::copy(first_.begin(), first_.end(), mean);
      for (int m = 1; m < replicas_before_; ++m) {
        reader_.get(replica_prefix(m, kind) + param.name, DType::f32, offset + done, n, other_.data());
        const float weight = weights_[static_cast<std::size_t>(m)];
        for (int64_t i = 0; i < n; ++i) {
          const auto j = static_cast<std::size_t>(i);
          mean[i] = mean[i] + weight * (other_[j] - first_[j]);
        }
      }
    }
  }

  // By the shares of the run that wrote the checkpoint.
  void read_weights_of_replicas() {
    const std::map<std::string, std::string> plan = plan_values(attribute(reader_.attributes(), "plan"));
    const std::vector<int64_t> shares = numbers(attribute(plan, "shares"));
    const auto batch = static_cast<double>(numbers(attribute(plan, "global_batch")).at(0));
    for (int64_t share : shares) weights_.push_back(static_cast<float>(static_cast<double>(share) / batch));
    if (static_cast<int>(weights_.size()) != replicas_before_)
      throw Error(ErrorKind::input, "the checkpoint's plan has shares of " + std::to_string(weights_.size()) + " replicas, and " +
                                        std::to_string(replicas_before_) + " wrote it. It is damaged. Use an earlier checkpoint.");
  }

  std::vector<std::string> nobody_declares() const {
    std::set<std::string> kinds;
    for (const PieceRecord& piece : reader_.pieces()) kinds.insert(kind_in(piece.name));
    kinds.erase("");
    for (const StateDecl& decl : parts_.arena.decls())
      if (decl.checkpointed) kinds.erase(decl.kind);
    return {kinds.begin(), kinds.end()};
  }

  void read_counts(Restored& out) const {
    const auto of_replica = [&](const char* key) {
      const std::vector<int64_t> values = numbers(attribute(reader_.attributes(), key));
      if (keeps_own_) return values.at(static_cast<std::size_t>(parts_.replica()));
      return differed_ ? *std::max_element(values.begin(), values.end()) : values.at(0);
    };
    out.state.step = numbers(attribute(reader_.attributes(), "step")).at(0);
    out.state.updates = of_replica("optimizer_updates");
    out.state.bad_in_a_row = of_replica("bad_steps_in_a_row");
    const auto due = reader_.attributes().find("evaluation_due");
    out.state.evaluation_due = due != reader_.attributes().end() && due->second == "1";
    // Bias corrections belong to moments: moments that start again need a count that starts again.
    out.optimizer_restarted = !parts_.optimizer_states.empty();
    for (const RestoredState& state : out.states)
      for (const NamedState& named : parts_.optimizer_states)
        if (named.decl.kind == state.kind && state.source != StateSource::absent && state.source != StateSource::reset)
          out.optimizer_restarted = false;
    if (out.optimizer_restarted) out.state.updates = 0;
  }

  TrainParts& parts_;
  CheckpointReader& reader_;
  const bool differed_;        // replicas of the checkpoint
  const int replicas_before_;  // that wrote it
  const bool keeps_own_;       // as many replicas as then, which differ then and now
  Buffer staging_;
  std::vector<float> weights_;  // of the replicas that wrote it; read when first needed
  std::vector<float> first_, other_;
};

std::string source_text(StateSource source, int64_t replicas_before) {
  const std::string of = std::to_string(replicas_before) + " replicas";
  switch (source) {
    case StateSource::own:
      return "each replica's own";
    case StateSource::common:
      return "the common one, on every replica";
    case StateSource::first_replica:
      return "that of replica 0 of " + of;
    case StateSource::mean:
      return "weighted mean of " + of;
    case StateSource::reset:
      return "reset, since " + of + " are merged";
    case StateSource::absent:
      return "not in the checkpoint, starts as new";
  }
  return "";
}

std::string source_name(StateSource source, int64_t replicas_before) {
  switch (source) {
    case StateSource::own:
      return "replica";
    case StateSource::common:
      return "common";
    case StateSource::first_replica:
      return "replica 0";
    case StateSource::mean:
      return "mean of " + std::to_string(replicas_before);
    case StateSource::reset:
      return "reset";
    case StateSource::absent:
      return "new";
  }
  return "";
}

}  // namespace

Restored restore_states(TrainParts& parts, CheckpointReader& reader) {
  Restored out;
  std::string failure;
  try {
    out = Restorer(parts, reader).run();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::input) throw;
    failure = e.what();
  }
  failure = first_failure(parts, failure);
  if (!failure.empty()) throw Error(ErrorKind::input, failure);
  gather_weights(parts);
  return out;
}

std::vector<std::string> restored_lines(const Restored& r) {
  std::vector<std::string> lines;
  const auto add = [&lines](const std::string& what, const std::string& text) {
    std::string line(2, ' ');
    lines.push_back(line.append(what).append(": ").append(text));
  };
  for (const RestoredState& state : r.states) add(state.kind, source_text(state.source, r.replicas_before));
  for (const std::string& kind : r.dropped) add(kind, "dropped, nothing in this run uses it");
  if (r.optimizer_restarted)
    add("optimizer updates", "counted from 0 again, since its states are new");
  else if (r.merged)
    add("optimizer updates", std::to_string(r.state.updates) + ", the most that any replica had made");
  return lines;
}

JsonLine resume_record(const Restored& r) {
  std::vector<JsonLine> states;
  for (const RestoredState& state : r.states)
    states.push_back(JsonLine().add("kind", state.kind).add("from", source_name(state.source, r.replicas_before)));
  return JsonLine()
      .add("kind", std::string("resume"))
      .add("step", r.state.step)
      .add("replicas_before", r.replicas_before)
      .add("replicas", r.replicas_now)
      .add("optimizer_updates", r.state.updates)
      .add("states", states)
      .add("dropped", r.dropped);
}

namespace {
// n floats become n bf16 numbers at the same place. Each is read before the shorter one behind it is written.
void round_in_place(Buffer& staging, int64_t n) {
  auto* bytes = static_cast<char*>(staging.data());
  for (int64_t i = 0; i < n; ++i) {
    float value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof value), sizeof value);
    const uint16_t rounded = to_bf16(value);
    std::memcpy(bytes + i * static_cast<int64_t>(sizeof rounded), &rounded, sizeof rounded);
  }
}
}  // namespace

void upload(Device& device, Stream& stream, HostWait& wait, Buffer& staging, TensorView view,
            const std::function<void(int64_t offset, int64_t count, float* out)>& values) {
  const int64_t chunk = staging.bytes() / 4;
  for (int64_t at = 0; at < view.elements(); at += chunk) {
    const int64_t n = std::min(chunk, view.elements() - at);
    values(at, n, static_cast<float*>(staging.data()));
    if (view.dtype() == DType::bf16) round_in_place(staging, n);
    stream.copy(view.slice(at, at + n).data(), staging.data(), n * static_cast<int64_t>(size_of(view.dtype())));
    wait.wait(*record_event(device, stream, "upload"));
  }
}

void set_weights(TrainParts& parts, const WeightSource& values) {
  Buffer staging(parts.device, Checkpointer::staging_bytes(), MemoryKind::pinned, "weights staging");
  const ParamTable& table = parts.model.table();
  for (const Range& own : parts.owned()) {
    if (own.empty()) continue;
    const TensorView view = parts.cache.acquire(parts.master, own, parts.stream);
    for (const ParamPiece& piece : table.pieces(own))
      upload(
          parts.device, parts.stream, parts.wait, staging, view.slice(piece.range.lo - own.lo, piece.range.hi - own.lo),
          [&](int64_t offset, int64_t count, float* out) { values(table.param(piece.param), piece.offset_in_param + offset, count, out); });
    parts.cache.release(parts.master, own, true);
  }
  gather_weights(parts);
}

void restore_model(TrainParts& parts, CheckpointReader& reader) {
  set_weights(parts, [&](const Param& param, int64_t offset, int64_t count, float* out) {
    reader.get(model_prefix + param.name, DType::f32, offset, count, out);
  });
}

}  // namespace nsp
