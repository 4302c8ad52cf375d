#include "core/train/trainer.hpp"

#include <chrono>
#include <cmath>
#include <cstring>

#include "core/tensor/core_states.hpp"

namespace nsp {
namespace {

using Clock = std::chrono::steady_clock;

// The job vector: sums over all ranks. The first five are entered by the first rank of each group alone.
enum JobSlot {
  job_loss,
  job_tokens,
  job_norm,
  job_skipped,
  job_at_limit,
  job_stop,
  job_checkpoint,
  job_sync,
  job_replica,
  job_control,
  job_slots
};

}  // namespace

Trainer::Trainer(TrainParts& parts, Io io, const TrainSettings& settings, const TrainState& state)
    : parts_(parts), io_(io), settings_(settings), state_(state), scalars_(parts.device, parts.stream, parts.wait, 2, "loss and norm") {
  last_checkpoint_ = state.step > 0 ? state.step : -1;
}

Outcome Trainer::run() {
  struct Total {  // also where the loop is left early
    double& seconds;
    const Clock::time_point begin = Clock::now();
    ~Total() { seconds = std::chrono::duration<double>(Clock::now() - begin).count(); }
  } total{time_.total};
  evaluate_at_start();
  while (state_.step < settings_.steps && !stop_) {
    const int64_t t = state_.step;
    const auto begin = Clock::now();
    const ByteCounts bytes = parts_.groups.bytes();
    const double in_flight = parts_.wait.times().in_flight, exposed = time_.exposed() - time_.vectors;

    parts_.sync.begin_step(t);  // starts the averages that are due; does not block
    forward_and_backward(t);    // gradients are handed to owners and to the policy as segments finish
    {
      TimeScope scope(parts_.wait, time_.compute, time_.averages);
      for (const After& sum : owner_sums_) parts_.wait.wait(sum.work);
      parts_.sync.finish_step(t);  // waits, installs averages
    }
    const GroupResult group = reduce_group_vector();
    update(group);  // optimizer over owned ranges, then weights gathered
    ++state_.step;

    if (pending_) read_job_vector();  // of the step before: its line, and what everybody decided
    start_job_vector(group, t, bytes, std::chrono::duration<double>(Clock::now() - begin).count());
    if (parts_.sync.sums_gradients()) read_job_vector();
    time_.hidden += std::max(0.0, parts_.wait.times().in_flight - in_flight - (time_.exposed() - time_.vectors - exposed));

    const int64_t step = state_.step;
    const bool last = step == settings_.steps;
    const bool evaluate = io_.validation != nullptr && (last || (settings_.eval_every > 0 && step % settings_.eval_every == 0));
    const bool checkpoint =
        last || stop_ || checkpoint_asked_ || (settings_.checkpoint_every > 0 && step % settings_.checkpoint_every == 0);
    const bool verify = settings_.verify_every > 0 && step % settings_.verify_every == 0;
    if (evaluate || checkpoint || verify || diverged_) {
      {
        TimeScope scope(parts_.wait, time_.compute, time_.averages);
        parts_.sync.quiesce();
      }
      if (pending_) read_job_vector();
      throw_if_diverged();
      if (verify) verify_weights(step);
      if (evaluate) evaluate_now(step);
      if (checkpoint || stop_) checkpoint_now(step);
    }
  }
  if (state_.step >= settings_.steps && !state_.evaluation_due) return Outcome::finished;
  if (last_checkpoint_ != state_.step)
    throw Error(ErrorKind::io,
                "the run was asked to stop, and its last checkpoint could not be written. What was trained since the one before is lost. "
                "Make room in the run directory and start again.");
  return Outcome::stopped;
}

// A new run says where it starts from; one that was stopped at an evaluation makes up for it.
void Trainer::evaluate_at_start() {
  const int64_t step = state_.step;
  const bool due = state_.evaluation_due;
  if (!due && !(step == 0 && settings_.eval_every > 0)) return;
  evaluate_now(step);
  // The checkpoint that the run goes on from still says that the evaluation is due; a complete run shall not say so for ever.
  if (due && !stop_ && step >= settings_.steps) last_checkpoint_ = -1;
  if (stop_ || (due && step >= settings_.steps)) checkpoint_now(step);
}

void Trainer::forward_and_backward(int64_t t) {
  const int64_t share = parts_.plan.shares[static_cast<std::size_t>(parts_.replica())],
                first = parts_.plan.first_sequence(parts_.replica());
  const Ops ops(parts_.stream);
  scalars_.zero();
  for (std::size_t s = 0; s < parts_.owned().size(); ++s) ops.zero(parts_.arena.storage(gradients_state, static_cast<int>(s)));
  owner_sums_.clear();
  counted_ = 0;
  std::vector<int64_t> samples;
  for (int64_t at = 0; at < share; at += parts_.plan.micro_batch) {
    samples.clear();
    for (int64_t i = at; i < std::min(at + parts_.plan.micro_batch, share); ++i) samples.push_back(io_.order.sample(t, first + i));
    LoadedBatch loaded;
    {
      TimeScope scope(parts_.wait, time_.compute, time_.exchanges);
      io_.loader.wait_for_slot();
    }
    {
      TimeScope scope(parts_.wait, time_.data, time_.exchanges);
      loaded = io_.loader.load(io_.train, samples);
    }
    counted_ += loaded.counted;
    TimeScope scope(parts_.wait, time_.compute, time_.exchanges);
    const ModelContext context{ops, parts_.workspace, parts_.strategy, parts_.wait, loaded.shape, loaded.batch, true};
    parts_.model.forward(context, parts_.params, scalars_.at(0));
    const bool last = at + parts_.plan.micro_batch >= share;
    parts_.model.backward(context, parts_.params, [&](int segment) {
      if (!last) return;
      const After sum = sum_to_owners(parts_, segment, record_event(parts_.device, parts_.stream, "gradients of a segment"));
      owner_sums_.push_back(sum);
      const Range own = parts_.owned()[static_cast<std::size_t>(segment)];
      parts_.sync.gradient_ready(own, parts_.arena.view(gradients_state, own), sum);
    });
  }
  // Waiting for the device here, with communication going on meanwhile, leaves to finish_step only what is not hidden.
  TimeScope scope(parts_.wait, time_.compute, time_.exchanges);
  parts_.wait.wait(*record_event(parts_.device, parts_.stream, "backward"));
}

Trainer::GroupResult Trainer::reduce_group_vector() {
  const Ops ops(parts_.stream);
  // Under ddp all replicas hold the same sums, so only the first one's owned ranges count.
  if (!parts_.sync.sums_gradients() || parts_.replica() == 0)
    for (const Range& own : parts_.owned())
      if (!own.empty()) ops.sum_of_squares(scalars_.at(1), parts_.arena.view(gradients_state, own), true);
  const double* own;
  {
    TimeScope scope(parts_.wait, time_.compute, time_.exchanges);  // the host is ahead of the device; here it waits for it
    own = scalars_.read();
  }
  double values[3] = {own[0], static_cast<double>(counted_), own[1]};
  {
    TimeScope scope(parts_.wait, time_.compute, time_.vectors);
    all_reduce_now(parts_.groups.group(), parts_.wait, values);
  }
  GroupResult group;
  group.loss_sum = values[0];
  group.tokens = values[1];
  group.norm = std::sqrt(values[2]) / values[1];
  group.bad = !std::isfinite(values[0]) || !std::isfinite(values[2]) || !(values[1] > 0);  // no token: no mean, no gradient
  if (io_.on_group) io_.on_group(state_.step, values[0] / values[1], group.norm);
  return group;
}

void Trainer::update(const GroupResult& group) {
  TimeScope scope(parts_.wait, time_.optimizer, time_.gather);
  if (group.bad) {
    ++state_.bad_in_a_row;
  } else {
    state_.bad_in_a_row = 0;
    ++state_.updates;
    const double clip = settings_.clip > 0 && group.norm > settings_.clip ? settings_.clip / group.norm : 1.0;
    const StepScalars scalars{settings_.schedule.at(state_.step), clip / group.tokens, state_.updates};
    const Ops ops(parts_.stream);
    const ParamTable& table = parts_.model.table();
    for (const Range& own : parts_.owned()) {
      if (own.empty()) continue;
      const TensorView weights = parts_.cache.acquire(parts_.master, own, parts_.stream);
      const TensorView gradients = parts_.cache.acquire(gradients_state, own, parts_.stream);
      std::vector<TensorView> states;
      for (const NamedState& state : parts_.optimizer_states) states.push_back(parts_.cache.acquire(state.id, own, parts_.stream));
      for (const ParamPiece& piece : table.pieces(own)) {
        const int64_t lo = piece.range.lo - own.lo, hi = piece.range.hi - own.lo;
        std::vector<TensorView> parts;
        for (const TensorView& state : states) parts.push_back(state.slice(lo, hi));
        parts_.optimizer.step(ops, {piece.range, table.param(piece.param).role, weights.slice(lo, hi), gradients.slice(lo, hi), parts},
                              scalars);
      }
      for (const NamedState& state : parts_.optimizer_states) parts_.cache.release(state.id, own, true);
      parts_.cache.release(gradients_state, own, false);
      parts_.cache.release(parts_.master, own, true);
    }
  }
  const EventPtr updated = record_event(parts_.device, parts_.stream, "update");
  gather_weights(parts_);
  parts_.wait.wait(*updated);  // so that its time is told from that of what follows
}

void Trainer::start_job_vector(const GroupResult& group, int64_t t, const ByteCounts& before, double seconds) {
  const bool leader = parts_.groups.group().rank() == 0;
  const ByteCounts now = parts_.groups.bytes();
  PendingJob job;
  job.values.assign(job_slots, 0.0);
  if (leader && !group.bad) {
    job.values[job_loss] = group.loss_sum;
    job.values[job_tokens] = group.tokens;
    job.values[job_norm] = group.norm * group.tokens;
  }
  if (leader && group.bad) job.values[job_skipped] = parts_.sync.sums_gradients() ? parts_.plan.replicas : 1;
  if (leader && settings_.max_bad_steps > 0 && state_.bad_in_a_row >= settings_.max_bad_steps) job.values[job_at_limit] = 1;
  job.values[job_stop] = io_.requests.stop() ? 1 : 0;
  job.values[job_checkpoint] = io_.requests.checkpoint() ? 1 : 0;
  job.values[job_sync] = static_cast<double>(now.sync - before.sync);
  job.values[job_replica] = static_cast<double>(now.replica - before.replica);
  job.values[job_control] = static_cast<double>(now.control - before.control);
  job.record.step = t + 1;
  job.record.lr = settings_.schedule.at(t);
  job.record.step_seconds = seconds;
  job.record.synced = parts_.sync.synced(t);
  pending_ = std::move(job);
  pending_->work = parts_.groups.control().all_reduce(TensorView(pending_->values.data(), DType::f64, {job_slots}), {});
}

void Trainer::read_job_vector() {
  {
    TimeScope scope(parts_.wait, time_.compute, time_.vectors);
    parts_.wait.wait(pending_->work);
  }
  const std::vector<double>& v = pending_->values;
  StepRecord& r = pending_->record;
  const double nan = std::nan("");
  r.loss = v[job_tokens] > 0 ? v[job_loss] / v[job_tokens] : nan;
  r.grad_norm = v[job_tokens] > 0 ? v[job_norm] / v[job_tokens] : nan;
  r.tokens = parts_.plan.global_batch * parts_.plan.context;
  r.sync_bytes = v[job_sync];
  r.replica_bytes = v[job_replica];
  r.control_bytes = v[job_control];
  r.skipped_replicas = static_cast<int64_t>(v[job_skipped]);
  if (settings_.peak_flops > 0)
    r.peak_share = settings_.flops_per_token * static_cast<double>(r.tokens) / r.step_seconds / settings_.peak_flops;
  if (v[job_stop] > 0 && !stop_) begin_stop("stopping after this step: ");
  checkpoint_asked_ = checkpoint_asked_ || v[job_checkpoint] > 0;
  diverged_ = diverged_ || v[job_at_limit] > 0;
  io_.metrics.step(r);
  pending_.reset();
}

void Trainer::begin_stop(const std::string& what) {
  stop_ = true;
  const std::string reason = io_.requests.reason();
  parts_.log.info(what + (reason.empty() ? std::string("asked for on another rank") : reason));
}

void Trainer::throw_if_diverged() {
  if (!diverged_) return;
  throw Error(ErrorKind::diverged, "training diverged: " + std::to_string(settings_.max_bad_steps) +
                                       " steps in a row had a loss or gradient that is not finite, the last at step " +
                                       std::to_string(state_.step) +
                                       ". The weights or the data are damaged, or the learning rate is too high. Lower --train.lr or raise "
                                       "--train.warmup, and resume from the last checkpoint.");
}

void Trainer::evaluate_now(int64_t step) {
  if (io_.validation == nullptr || last_evaluation_ == step) return;
  state_.evaluation_due = true;
  if (stop_) return;  // whoever is asked to stop begins nothing long
  TimeScope scope(parts_.wait, time_.evaluation, time_.evaluation);
  const ByteCounts before = parts_.groups.bytes();
  io_.mean.install();
  const EvalResult result = evaluate(parts_, io_.loader, *io_.validation, settings_.eval_batches * parts_.plan.global_batch, scalars_,
                                     [this] { return io_.requests.stop(); });
  io_.mean.restore();
  if (result.left) {
    begin_stop("stopping after this step, in the middle of its evaluation: ");
    return;
  }
  state_.evaluation_due = false;
  const ByteCounts after = parts_.groups.bytes();
  double bytes[1] = {static_cast<double>(after.sync - before.sync + after.replica - before.replica)};
  all_reduce_now(parts_.groups.world(), parts_.wait, bytes);
  last_evaluation_ = step;
  io_.metrics.evaluation(step, result.loss, result.tokens, static_cast<int64_t>(bytes[0]));
  char text[128];
  std::snprintf(text, sizeof text, "step %6lld  validation loss %.4f nats per token (perplexity %.3f) on %lld tokens",
                static_cast<long long>(step), result.loss, std::exp(result.loss), static_cast<long long>(result.tokens));
  parts_.log.info(text);
}

void Trainer::checkpoint_now(int64_t step) {
  checkpoint_asked_ = false;
  if (last_checkpoint_ == step) return;
  io_.metrics.flush();
  double seconds = 0;
  SavedCheckpoint saved;
  {
    TimeScope scope(parts_.wait, seconds, seconds);
    saved = io_.checkpointer.save(state_, io_.order.position(step));
  }
  time_.checkpoint += seconds;
  if (!saved.good) {
    if (step == settings_.steps)
      throw Error(ErrorKind::io,
                  "the last checkpoint of the run could not be written (see above). Make room or choose another --run.dir and start again: "
                  "the run goes on from the checkpoint before.");
    return;
  }
  last_checkpoint_ = step;
  io_.metrics.checkpoint(step, seconds, saved.bytes, static_cast<int64_t>(saved.mean_bytes));
  parts_.log.info("step " + std::to_string(step) + "  checkpoint " + saved.where);
}

namespace {
template <class Word>
uint64_t hash_words(uint64_t hash, const Word* words, int64_t n) {
  for (int64_t i = 0; i < n; ++i) hash = (hash ^ words[i]) * 1099511628211ull;
  return hash;
}
}  // namespace

namespace {

uint64_t hash_of(TrainParts& parts, StateId state, const std::vector<Range>& ranges) {
  uint64_t hash = 1469598103934665603ull;
  constexpr int64_t chunk = 1 << 18;
  Buffer host(parts.device, 4 * chunk, MemoryKind::pinned, "weight hash staging");
  for (const Range& range : ranges) {
    const TensorView all = parts.arena.view(state, range);
    for (int64_t at = 0; at < all.elements(); at += chunk) {
      const TensorView piece = all.slice(at, std::min(at + chunk, all.elements()));
      parts.stream.copy(host.data(), piece.data(), piece.bytes());
      parts.wait.wait(*record_event(parts.device, parts.stream, "weight hash"));
      if (piece.dtype() == DType::bf16)
        hash = hash_words(hash, static_cast<const uint16_t*>(host.data()), piece.elements());
      else
        hash = hash_words(hash, static_cast<const uint32_t*>(host.data()), piece.elements());
    }
  }
  return hash;
}

}  // namespace

uint64_t weight_hash(TrainParts& parts) {
  std::vector<Range> whole;
  for (std::size_t s = 0; s < parts.owned().size(); ++s) whole.push_back(parts.model.table().whole(static_cast<int>(s)));
  return hash_of(parts, weights_state, whole);
}

void Trainer::verify_weights(int64_t step) {
  // Equal weights are promised to the ranks of a replica, and to all ranks if gradients are summed over the replicas. Then ranks of equal
  // position also have equal masters, whose last bits do not show in weights of fewer bits, and which a checkpoint is made of.
  Communicator& group = parts_.groups.group();
  if (group.size() == 1) return;
  const bool masters = parts_.master != weights_state && parts_.sync.sums_gradients();
  struct Hashes {
    uint64_t weights = 0, master = 0;
  };
  const Hashes own{weight_hash(parts_), masters ? hash_of(parts_, parts_.master, parts_.owned()) : 0};
  const std::vector<char> all = gather_now(group, parts_.wait, &own, sizeof own);
  for (int r = 0; r < group.size(); ++r) {
    Hashes other;
    std::memcpy(&other, all.data() + static_cast<std::size_t>(r) * sizeof other, sizeof other);
    const bool master_differs = masters && parts_.plan.position_of(r) == parts_.position() && other.master != own.master;
    if (other.weights == own.weights && !master_differs) continue;
    throw Error(ErrorKind::inconsistent, "the weights of rank " + std::to_string(r) + " of the group differ from rank " +
                                             std::to_string(group.rank()) + "'s at step " + std::to_string(step) +
                                             ", though they must be equal bit for bit. A device or its memory computes wrong values. "
                                             "Resume from the last checkpoint without that host.");
  }
}

}  // namespace nsp
