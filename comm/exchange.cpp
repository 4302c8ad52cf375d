#include "comm/exchange.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "comm/move_operation.hpp"
#include "comm/reduce_operation.hpp"
#include "comm/ring.hpp"
#include "comm/self.hpp"
#include "comm/sum_ranks.hpp"

namespace nsp {
namespace {

constexpr int64_t kStagingBytes = int64_t{32} << 20;  // that a sum of fp32 should need at most
constexpr int64_t kSmallBlock = 64 * 1024;            // elements; smaller messages cost more than the staging they save
constexpr int kMostBlocks = 8;

BlockPlan plan_blocks(const Transport& transport, int64_t block_elements) {
  NSP_REQUIRE(block_elements >= 1, "a block has at least one element");
  BlockPlan plan{transport.rank(), transport.size(), 0, 0};
  const int64_t peers = std::max(1, plan.size - 1);
  constexpr int64_t kItem = sizeof(float);
  const int64_t fitting = std::max(kSmallBlock, kStagingBytes / (2 * peers * kItem));
  plan.block = std::min({block_elements, fitting, kMaxMessageBytes / static_cast<int64_t>(sizeof(double))});
  plan.window = static_cast<int>(std::clamp<int64_t>(kStagingBytes / (peers * plan.block * kItem), 2, kMostBlocks));
  return plan;
}

int64_t sum(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

void check_counts(const std::vector<int64_t>& counts, int size) {
  NSP_REQUIRE(static_cast<int>(counts.size()) == size, "a collective has one count per rank");
  for (int64_t n : counts) NSP_REQUIRE(n >= 0, "counts of a collective are not negative");
}

void check_summable(const char* op, DType dtype) {
  if (summable(dtype)) return;
  throw Error(ErrorKind::internal,
              std::string(op) + " cannot sum " + name_of(dtype) +
                  ". Sums over ranks are made in fp32, fp64, int32 or int64. Cast the tensor first, or move it with all_to_all.");
}

}  // namespace

ExchangeCommunicator::ExchangeCommunicator(std::unique_ptr<Transport> transport, std::string name, const CommContext& context,
                                           Device* device)
    : name_(std::move(name)),
      context_(context),
      device_(device),
      staged_(device != nullptr && !device->host_addressable()),
      plan_(plan_blocks(*transport, context.block_elements)),
      pool_(staged_ ? device : nullptr),
      numbers_(2 * static_cast<size_t>(plan_.size)),
      transport_(std::move(transport)) {
  if (staged_) stream_ = std::make_unique<Stream>(*device_);
}

ExchangeCommunicator::~ExchangeCommunicator() {
  if (!active_.empty())
    fail_all("communicator '" + name_ + "' was closed before its collectives were done. Wait for a work before its communicator ends.");
}

TensorView ExchangeCommunicator::dense(const char* op, const char* what, TensorView view, int64_t elements) const {
  if (view.dense() && view.elements() == elements && (elements == 0 || view.data() != nullptr)) return view;
  throw Error(ErrorKind::internal, std::string(op) + " on communicator '" + name_ + "': " + what + " has " +
                                       std::to_string(view.elements()) + (view.dense() ? "" : " strided") +
                                       " elements and must be a dense view of " + std::to_string(elements) +
                                       ". This is a bug in nsp or in a plug-in; please report it with this line.");
}

WorkPtr ExchangeCommunicator::all_reduce(TensorView data, After after) {
  const int64_t n = data.elements();
  dense("all_reduce", "data", data, n);
  check_summable("all_reduce", data.dtype());
  std::vector<int64_t> counts(plan_.size);
  for (int64_t j = 0; j < plan_.size; ++j) counts[j] = n * (j + 1) / plan_.size - n * j / plan_.size;
  return enter(std::make_shared<ReduceOperation>(plan_, data, counts, TensorView(), true), "all_reduce", n, data.dtype(), kCollectives,
               std::move(after));
}

WorkPtr ExchangeCommunicator::reduce_scatter(TensorView in, std::vector<int64_t> counts, TensorView out, After after) {
  check_counts(counts, plan_.size);
  dense("reduce_scatter", "in", in, sum(counts));
  dense("reduce_scatter", "out", out, counts[plan_.rank]);
  check_summable("reduce_scatter", in.dtype());
  NSP_REQUIRE(out.elements() == 0 || in.dtype() == out.dtype(), "input and output of reduce_scatter have one dtype");
  return enter(std::make_shared<ReduceOperation>(plan_, in, counts, out, false), "reduce_scatter", in.elements(), in.dtype(), kCollectives,
               std::move(after));
}

WorkPtr ExchangeCommunicator::all_gather(TensorView own, std::vector<int64_t> counts, TensorView out, After after) {
  check_counts(counts, plan_.size);
  dense("all_gather", "own", own, counts[plan_.rank]);
  dense("all_gather", "out", out, sum(counts));
  NSP_REQUIRE(own.elements() == 0 || own.dtype() == out.dtype(), "input and output of all_gather have one dtype");
  const int64_t item = static_cast<int64_t>(size_of(out.dtype()));
  Move move{static_cast<char*>(own.data()), static_cast<char*>(out.data()), own.elements() * item, out.bytes(), plan_.block * item, {}, {}};
  int64_t offset = 0;
  for (int j = 0; j < plan_.size; ++j) {
    move.send.push_back({0, move.in_bytes});
    move.recv.push_back({offset, counts[j] * item});
    offset += counts[j] * item;
  }
  return enter(std::make_shared<MoveOperation>(plan_, std::move(move)), "all_gather", out.elements(), out.dtype(), kCollectives,
               std::move(after));
}

WorkPtr ExchangeCommunicator::all_to_all(TensorView in, std::vector<int64_t> in_counts, TensorView out, std::vector<int64_t> out_counts,
                                         After after) {
  check_counts(in_counts, plan_.size);
  check_counts(out_counts, plan_.size);
  dense("all_to_all", "in", in, sum(in_counts));
  dense("all_to_all", "out", out, sum(out_counts));
  NSP_REQUIRE(in.elements() == 0 || out.elements() == 0 || in.dtype() == out.dtype(), "input and output of all_to_all have one dtype");
  const DType dtype = in.elements() > 0 ? in.dtype() : out.dtype();
  const int64_t item = static_cast<int64_t>(size_of(dtype));
  Move move{static_cast<char*>(in.data()),
            static_cast<char*>(out.data()),
            in.elements() * item,
            out.elements() * item,
            plan_.block * item,
            {},
            {}};
  NSP_REQUIRE(move.in_bytes == 0 || move.out_bytes == 0 || move.in + move.in_bytes <= move.out || move.out + move.out_bytes <= move.in,
              "input and output of all_to_all do not overlap");
  int64_t from = 0, to = 0;
  for (int j = 0; j < plan_.size; ++j) {
    move.send.push_back({from, in_counts[j] * item});
    move.recv.push_back({to, out_counts[j] * item});
    from += in_counts[j] * item;
    to += out_counts[j] * item;
  }
  return enter(std::make_shared<MoveOperation>(plan_, std::move(move)), "all_to_all", in.elements(), dtype, kCollectives, std::move(after));
}

WorkPtr ExchangeCommunicator::broadcast(TensorView data, int root, After after) {
  NSP_REQUIRE(root >= 0 && root < plan_.size, "the root of a broadcast is a rank of the group");
  dense("broadcast", "data", data, data.elements());
  const int64_t item = static_cast<int64_t>(size_of(data.dtype())), bytes = data.elements() * item;
  char* memory = static_cast<char*>(data.data());
  const bool is_root = plan_.rank == root;
  Move move{memory,
            memory,
            is_root ? bytes : 0,
            is_root ? 0 : bytes,
            plan_.block * item,
            std::vector<Piece>(plan_.size),
            std::vector<Piece>(plan_.size)};
  for (int j = 0; j < plan_.size; ++j) {
    if (is_root && j != root) move.send[j] = {0, bytes};
  }
  if (!is_root) move.recv[root] = {0, bytes};
  return enter(std::make_shared<MoveOperation>(plan_, std::move(move)), "broadcast", data.elements(), data.dtype(), kCollectives,
               std::move(after));
}

WorkPtr ExchangeCommunicator::point_to_point(TensorView data, int peer, bool sending, After after) {
  NSP_REQUIRE(peer >= 0 && peer < plan_.size && peer != plan_.rank, "the peer of send and recv is another rank of the group");
  const char* op = sending ? "send" : "recv";
  dense(op, "data", data, data.elements());
  const int64_t item = static_cast<int64_t>(size_of(data.dtype())), bytes = data.elements() * item;
  char* memory = static_cast<char*>(data.data());
  Move move{memory,
            memory,
            sending ? bytes : 0,
            sending ? 0 : bytes,
            plan_.block * item,
            std::vector<Piece>(plan_.size),
            std::vector<Piece>(plan_.size)};
  (sending ? move.send : move.recv)[peer] = {0, bytes};
  return enter(std::make_shared<MoveOperation>(plan_, std::move(move)), op, data.elements(), data.dtype(), 2 * peer + (sending ? 0 : 1),
               std::move(after));
}

WorkPtr ExchangeCommunicator::send(TensorView data, int peer, After after) {
  return point_to_point(data, peer, true, std::move(after));
}

WorkPtr ExchangeCommunicator::recv(TensorView data, int peer, After after) {
  return point_to_point(data, peer, false, std::move(after));
}

int64_t ExchangeCommunicator::reserve(int64_t elements) {
  check_usable();
  NSP_REQUIRE(elements >= 0, "staging is reserved for a number of elements");
  NSP_REQUIRE(active_.empty(), "staging is reserved before collectives are started");
  const int64_t bytes = elements * static_cast<int64_t>(sizeof(float));
  // The largest need of a sum: this rank owns all of it.
  const int64_t slots = std::min(plan_.window * plan_.block, blocks_of(elements, plan_.block) * std::min(plan_.block, elements)) *
                        (plan_.size - 1) * static_cast<int64_t>(sizeof(float));
  // Staged memory: a sum has its data here too, an exchange its input and its output.
  constexpr int64_t kAlignment = 256;
  return pool_.reserve(staged_ ? std::max(bytes + slots, 2 * bytes + kAlignment) : slots);
}

std::unique_ptr<Communicator> ExchangeCommunicator::split(int color, int key, const std::string& name, Device* device) {
  check_usable();
  NSP_REQUIRE(active_.empty(), "a communicator is split while none of its collectives is on the way");
  NSP_REQUIRE(color >= 0, "colors of a split are not negative");
  std::unique_ptr<Transport> transport;
  {
    const BlockingCall splitting(context_.ring, name_, "split");
    transport = transport_->split(color, key);
  }
  if (transport->size() > 1) return std::make_unique<ExchangeCommunicator>(std::move(transport), name, context_, device);
  // Alone in its group: nothing has to be staged or sent; the transport stays only to end the job. Shared because the function is copied.
  std::shared_ptr<Transport> last(std::move(transport));
  return std::make_unique<SelfCommunicator>(name, context_.ring, device,
                                            [last](int code, const std::string& reason) { last->abort(code, reason); });
}

void ExchangeCommunicator::abort(int code, const std::string& reason) {
  transport_->abort(code, reason);
  std::_Exit(code);  // not reached; the compiler does not believe a virtual function that it never returns
}

void ExchangeCommunicator::check_usable() const {
  if (!failure_.empty()) throw Error(ErrorKind::comm, failure_);
}

void ExchangeCommunicator::fail_all(const std::string& text) noexcept {
  try {
    failure_ = text;
    for (Entry& entry : active_) {
      entry.operation->fail(text);
      context_.ring.finished(entry.sequence);
    }
  } catch (...) {
    // Out of memory for a text while failing: the error under way says what matters.
  }
}

}  // namespace nsp
