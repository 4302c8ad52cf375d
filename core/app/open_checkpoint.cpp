#include "core/app/open_checkpoint.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "core/app/world.hpp"
#include "core/train/checkpoint_names.hpp"
#include "io/hdf5_store.hpp"

namespace nsp {
namespace {

using Clock = std::chrono::steady_clock;

// The share of one rank in looking at a checkpoint: every `ranks`-th piece.
class Share {
 public:
  Share(CheckpointReader& reader, Needed needed, int rank, int ranks)
      : reader_(reader), needed_(needed), next_(static_cast<std::size_t>(rank)), stride_(static_cast<std::size_t>(ranks)) {}
  bool done() const { return next_ >= reader_.pieces().size(); }
  // Goes on until the share is done or the time is over. Error(input) for the first piece that is bad.
  void go_on(Clock::time_point until) {
    // The first read of a piece compares its checksum, however little is asked for.
    for (char element[8]; !done() && Clock::now() < until; next_ += stride_) {
      const PieceRecord& piece = reader_.pieces()[next_];
      if (piece.count == 0 || (needed_ == Needed::model && piece.name.rfind(model_prefix, 0) != 0)) continue;
      reader_.get(piece.name, piece.dtype, piece.offset, 1, element);
    }
  }

 private:
  CheckpointReader& reader_;
  Needed needed_;
  std::size_t next_, stride_;
};

// Empty, or what is wrong with a checkpoint; the same on every rank. reader: empty where it could not be opened, with the reason.
std::string damage_of(World* world, CheckpointReader* reader, std::string damage, Needed needed) {
  std::optional<Share> share;
  if (reader) share.emplace(*reader, needed, world ? world->rank() : 0, world ? world->comm().size() : 1);
  const std::chrono::duration<double> slice(world ? std::min(5.0, world->timeout() / 4) : 5.0);
  for (;;) {
    try {
      if (share) share->go_on(Clock::now() + std::chrono::duration_cast<Clock::duration>(slice));
    } catch (const Error& e) {
      damage = e.what();
    }
    double state[2] = {share && !share->done() ? 1.0 : 0.0, damage.empty() ? 0.0 : 1.0};  // ranks that have more to read; that found damage
    if (world) all_reduce_now(world->comm(), world->wait(), state);
    if (state[1] > 0) return world ? world->first_failure(damage) : damage;
    if (state[0] == 0) return "";
  }
}

}  // namespace

CheckpointPath checkpoint_path(const std::string& path) {
  const std::filesystem::path plain = std::filesystem::path(path + "/.").lexically_normal().parent_path();
  const std::string name = plain.filename().string();
  if (name.rfind("step_", 0) != 0) return {path + "/checkpoints", -1};
  const std::string digits = name.substr(5);
  if (digits.empty() || digits.size() > 18 || !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    throw Error(
        ErrorKind::usage,
        path + " is not a checkpoint. A checkpoint's folder is named step_ and eight digits. Name one of them, or a run directory.");
  const std::string parent = plain.parent_path().string();
  return {parent.empty() ? "." : parent, std::stoll(digits)};
}

std::string text_of(CheckpointStore& store, const PassedOver& bad) {
  return "the checkpoint " + store.where(bad.step) + " cannot be used and is passed over: " + bad.why;
}

std::vector<int64_t> newest_first(CheckpointStore& store) {
  std::vector<int64_t> steps = store.list();
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::unique_ptr<CheckpointReader> first_good(World* world, CheckpointStore& store, const std::vector<int64_t>& steps, Needed needed,
                                             std::vector<PassedOver>& passed_over) {
  for (const int64_t step : steps) {
    std::unique_ptr<CheckpointReader> reader;
    std::string damage;
    try {
      reader = store.open(step);
    } catch (const Error& e) {
      damage = e.what();
    }
    damage = damage_of(world, reader.get(), std::move(damage), needed);
    if (damage.empty()) return reader;
    passed_over.push_back({step, std::move(damage)});
  }
  return nullptr;
}

std::unique_ptr<CheckpointReader> open_checkpoint(World* world, const std::string& path, Log& log) {
  const CheckpointPath place = checkpoint_path(path);
  Hdf5Store store(place.folder);
  std::vector<int64_t> steps = place.step >= 0 ? std::vector<int64_t>{place.step} : newest_first(store);
  if (world) steps = world->of_first_rank(std::move(steps));  // another rank might see a newer one by now
  std::vector<PassedOver> passed_over;
  std::unique_ptr<CheckpointReader> reader = first_good(world, store, steps, Needed::model, passed_over);
  if (!reader && place.step >= 0) throw Error(ErrorKind::input, passed_over.front().why);
  if (!reader)
    throw Error(ErrorKind::input,
                "no usable checkpoint in " + path + ". " +
                    (passed_over.empty() ? "There is none in it." : "The newest: " + text_of(store, passed_over.front())) +
                    " Name a run directory that holds one (--run.dir), or train first.");
  for (const PassedOver& bad : passed_over) log.warning(text_of(store, bad));
  return reader;
}

}  // namespace nsp
