#include "io/memory_store.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/piece_reader.hpp"
#include "nsp/xxhash64.hpp"

namespace nsp {
namespace {

using PieceKey = std::pair<std::string, int64_t>;  // name, offset
using Bytes = std::map<PieceKey, std::vector<char>>;

std::string place(int64_t step) {
  return "memory:step_" + std::to_string(step);
}

struct Committed {
  std::string run;
  Attributes attributes;
  std::vector<PieceRecord> pieces;
  Bytes bytes;
  bool torn = false;
};

}  // namespace

struct MemoryStore::State {
  std::mutex mutex;
  std::map<int64_t, Committed> committed;
  std::map<int64_t, std::map<int, Bytes>> uncommitted;  // step -> rank -> pieces
  std::map<Operation, int> fail_after;                  // calls left until the one that fails
  int64_t free_bytes = INT64_MAX;
  int64_t last_commit = -1;  // of the run that writes

  // REQUIRES mutex held.
  void count(Operation operation, const std::string& what) {
    auto at = fail_after.find(operation);
    if (at == fail_after.end() || --at->second > 0) return;
    fail_after.erase(at);
    throw Error(ErrorKind::io, what + " failed. A fault was injected by a test. Remove the fault.");
  }
  Committed& find(int64_t step) {
    auto at = committed.find(step);
    NSP_REQUIRE(at != committed.end(), "the test names a committed step");
    return at->second;
  }
};

class MemoryStore::Writer : public ShardWriter {
 public:
  Writer(std::shared_ptr<State> state, int64_t step, int rank) : state_(std::move(state)), step_(step), rank_(rank) {}
  ~Writer() override {
    if (finished_) return;
    std::lock_guard lock(state_->mutex);
    auto at = state_->uncommitted.find(step_);
    if (at == state_->uncommitted.end()) return;
    at->second.erase(rank_);
    if (at->second.empty()) state_->uncommitted.erase(at);
  }
  void put(const std::string& name, DType dtype, const std::vector<int64_t>& shape, int64_t offset, const void* data,
           int64_t count) override {
    NSP_REQUIRE(!finished_, "nothing is put into a finished shard");
    require_storable(name, shape, offset, count);
    const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype);
    std::lock_guard lock(state_->mutex);
    state_->count(Operation::put, "writing " + name + " to " + place(step_));
    auto from = static_cast<const char*>(data);
    Bytes& shard = state_->uncommitted[step_][rank_];
    if (count > 0) NSP_REQUIRE(shard.try_emplace({name, offset}, from, from + bytes).second, "a piece is put once");
    pieces_.push_back({name, dtype, shape, offset, count, rank_, xxhash64(data, bytes)});
  }
  std::vector<PieceRecord> finish() override {
    NSP_REQUIRE(!finished_, "a shard is finished once");
    std::lock_guard lock(state_->mutex);
    state_->count(Operation::finish, "finishing the shard of rank " + std::to_string(rank_) + " of " + place(step_));
    finished_ = true;
    return pieces_;
  }

 private:
  std::shared_ptr<State> state_;  // see MemoryStore
  int64_t step_;
  int rank_;
  bool finished_ = false;
  std::vector<PieceRecord> pieces_;
};

class MemoryStore::Reader : public PieceReader {
 public:
  Reader(int64_t step, Committed content)
      : PieceReader(step, place(step), std::move(content.attributes), PieceIndex(std::move(content.pieces), ErrorKind::input, place(step))),
        bytes_(std::move(content.bytes)) {}

 protected:
  void read(const PieceRecord& piece, int64_t lo, int64_t count, void* out) override {
    if (count == 0) return;
    const auto at = bytes_.find({piece.name, piece.offset});
    if (at == bytes_.end())
      throw Error(ErrorKind::input,
                  "checkpoint " + place(step()) + " is damaged: " + describe(piece) + " is missing. Use an earlier checkpoint.");
    const std::size_t size = size_of(piece.dtype);
    std::memcpy(out, at->second.data() + static_cast<std::size_t>(lo) * size, static_cast<std::size_t>(count) * size);
  }
  std::string file_of(const PieceRecord& piece) const override { return "rank_" + std::to_string(piece.rank); }

 private:
  Bytes bytes_;  // a copy: damage done after open() is not seen
};

MemoryStore::MemoryStore() : state_(std::make_shared<State>()) {}
MemoryStore::~MemoryStore() = default;

std::unique_ptr<ShardWriter> MemoryStore::begin(int64_t step, int rank, const std::string&, int64_t bytes) {
  std::lock_guard lock(state_->mutex);
  if (bytes > state_->free_bytes)
    throw Error(ErrorKind::io, "checkpoint " + place(step) + " cannot be written. It needs " + std::to_string(bytes) + " bytes and " +
                                   std::to_string(state_->free_bytes) + " are free. Free some space.");
  auto& shards = state_->uncommitted[step];
  shards.erase(rank);
  return std::make_unique<Writer>(state_, step, rank);
}

void MemoryStore::commit(int64_t step, const std::string& run, const Attributes& attributes, const std::vector<PieceRecord>& pieces) {
  PieceIndex index(pieces, ErrorKind::inconsistent, "checkpoint " + place(step));
  if (const std::string gap = index.first_gap(); !gap.empty())
    throw Error(ErrorKind::inconsistent,
                "checkpoint " + place(step) + " is incomplete. " + gap + ". A rank did not write its part; please report it.");
  std::lock_guard lock(state_->mutex);
  state_->count(Operation::commit, "committing " + place(step));
  Committed made{run, attributes, index.pieces(), {}, false};
  auto& shards = state_->uncommitted[step];
  for (const PieceRecord& piece : made.pieces) {
    if (piece.count == 0) continue;
    const Bytes& shard = shards[piece.rank];
    const auto at = shard.find({piece.name, piece.offset});
    NSP_REQUIRE(at != shard.end(), "every piece of a commit lies in a finished shard");
    made.bytes.insert(*at);
  }
  state_->uncommitted.erase(step);
  state_->committed[step] = std::move(made);
  state_->last_commit = step;
}

void MemoryStore::rollback(int64_t step) noexcept {
  std::lock_guard lock(state_->mutex);
  state_->uncommitted.erase(step);
}

std::vector<int64_t> MemoryStore::list() {
  std::lock_guard lock(state_->mutex);
  std::vector<int64_t> steps;
  for (const auto& [step, content] : state_->committed) steps.push_back(step);
  return steps;
}

std::unique_ptr<CheckpointReader> MemoryStore::open(int64_t step) {
  std::lock_guard lock(state_->mutex);
  const auto at = state_->committed.find(step);
  if (at == state_->committed.end())
    throw Error(ErrorKind::input, "there is no checkpoint " + place(step) + ". It was never committed or was pruned. Use another step.");
  if (at->second.torn)
    throw Error(ErrorKind::input, "checkpoint " + place(step) + " is torn. Its manifest cannot be read. Use an earlier checkpoint.");
  return std::make_unique<Reader>(step, at->second);
}

void MemoryStore::prune(int keep, int64_t keep_every) {
  std::lock_guard lock(state_->mutex);
  if (state_->last_commit >= 0) state_->committed.erase(state_->committed.upper_bound(state_->last_commit), state_->committed.end());
  int kept = 0;
  bool newest_found = false;
  std::vector<int64_t> gone;
  for (auto at = state_->committed.rbegin(); at != state_->committed.rend(); ++at) {
    const auto& [step, content] = *at;
    if (content.torn) {
      if (newest_found) gone.push_back(step);
      continue;
    }
    newest_found = true;
    if (kept++ >= std::max(keep, 1) && !(keep_every > 0 && step % keep_every == 0)) gone.push_back(step);
  }
  for (int64_t step : gone) state_->committed.erase(step);
  const int64_t newest = state_->committed.empty() ? -1 : state_->committed.rbegin()->first;
  std::erase_if(state_->uncommitted, [newest](const auto& shards) { return shards.first < newest; });
}

std::string MemoryStore::where(int64_t step) const {
  return place(step);
}

void MemoryStore::fail(Operation operation, int nth) {
  std::lock_guard lock(state_->mutex);
  state_->fail_after[operation] = nth;
}

void MemoryStore::set_free_bytes(int64_t bytes) {
  std::lock_guard lock(state_->mutex);
  state_->free_bytes = bytes;
}

void MemoryStore::corrupt_piece(int64_t step, const std::string& name, int64_t offset) {
  std::lock_guard lock(state_->mutex);
  auto& bytes = state_->find(step).bytes;
  auto at = bytes.find({name, offset});
  NSP_REQUIRE(at != bytes.end(), "the test names a piece of the checkpoint");
  at->second[at->second.size() / 2] ^= 1;
}

void MemoryStore::drop_piece(int64_t step, const std::string& name, int64_t offset) {
  std::lock_guard lock(state_->mutex);
  NSP_REQUIRE(state_->find(step).bytes.erase({name, offset}) == 1, "the test names a piece of the checkpoint");
}

void MemoryStore::tear_manifest(int64_t step) {
  std::lock_guard lock(state_->mutex);
  state_->find(step).torn = true;
}

std::size_t MemoryStore::uncommitted_pieces() const {
  std::lock_guard lock(state_->mutex);
  std::size_t count = 0;
  for (const auto& [step, shards] : state_->uncommitted) {
    for (const auto& [rank, shard] : shards) count += shard.size();
  }
  return count;
}

}  // namespace nsp
