#include "comm/self.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "comm/sum_ranks.hpp"
#include "nsp/plugin.hpp"

namespace nsp {

class SelfCommunicator::SelfWork final : public Work {
 public:
  bool done() override {
    if (!failure.empty()) throw Error(ErrorKind::comm, failure);
    return finished;
  }
  bool started() const noexcept override { return false; }  // there are no others to wait for
  After after;
  void* to = nullptr;
  const void* from = nullptr;
  int64_t bytes = 0;
  uint64_t sequence = 0;
  std::unique_ptr<Event> copied;  // while the device copies
  bool finished = false;
  std::string failure;
};

SelfCommunicator::SelfCommunicator(std::string name, CollectiveRing& ring, Device* device, Abort abort)
    : name_(std::move(name)),
      ring_(ring),
      device_(device),
      staged_(device != nullptr && !device->host_addressable()),
      abort_(std::move(abort)) {
  if (staged_) stream_ = std::make_unique<Stream>(*device_);
}

SelfCommunicator::~SelfCommunicator() {
  for (const auto& work : active_) {
    work->failure = "a communicator was closed early";
    ring_.finished(work->sequence);
  }
}

WorkPtr SelfCommunicator::enter(const char* op, TensorView in, TensorView out, After after) {
  NSP_REQUIRE(in.elements() == out.elements() && in.dense() && out.dense(), "a rank alone gets from itself as many elements as it gives");
  NSP_REQUIRE(in.elements() == 0 || (in.dtype() == out.dtype() && in.data() != nullptr && out.data() != nullptr),
              "input and output of a collective are there and have one dtype");
  auto work = std::make_shared<SelfWork>();
  work->after = std::move(after);
  if (in.data() != out.data()) {
    work->to = out.data();
    work->from = in.data();
    work->bytes = in.elements() > 0 ? in.bytes() : 0;
  }
  work->sequence = ring_.entered({0, name_, op, in.elements(), in.dtype(), number_++, "its own input"});
  if (!advance(*work)) active_.push_back(work);
  return work;
}

bool SelfCommunicator::advance(SelfWork& work) {
  if (work.after.event && work.after.event->query()) work.after.event.reset();
  if (work.after.work && work.after.work->done()) work.after.work.reset();
  if (work.after.event || work.after.work) return false;
  if (work.bytes > 0 && staged_) {
    if (free_events_.empty()) free_events_.push_back(std::make_unique<Event>(*device_, "copy of a communicator"));
    stream_->copy(work.to, work.from, work.bytes);
    work.bytes = 0;
    work.copied = std::move(free_events_.back());
    free_events_.pop_back();
    work.copied->record(*stream_);
  } else if (work.bytes > 0) {
    std::memmove(work.to, work.from, static_cast<size_t>(work.bytes));
    work.bytes = 0;
  }
  if (work.copied) {
    if (!work.copied->query()) return false;
    free_events_.push_back(std::move(work.copied));
  }
  work.finished = true;
  ring_.finished(work.sequence);
  ++moves_;
  return true;
}

bool SelfCommunicator::progress() {
  // In two passes: advance may throw, which erase_if does not survive.
  for (const auto& work : active_) advance(*work);
  std::erase_if(active_, [](const std::shared_ptr<SelfWork>& work) { return work->finished; });
  return !active_.empty();
}

namespace {

void check_sum(const char* op, DType dtype) {
  if (!summable(dtype))
    throw Error(ErrorKind::internal,
                std::string(op) + " cannot sum " + name_of(dtype) + ". Sums over ranks are made in fp32, fp64, int32 or int64.");
}

void check_one(const std::vector<int64_t>& counts, const TensorView& view) {
  NSP_REQUIRE(counts.size() == 1 && counts[0] == view.elements(), "a collective has one count per rank, that of its tensor");
}

[[noreturn]] void fail_alone(const std::string& name) {
  throw Error(ErrorKind::internal,
              "communicator '" + name +
                  "' has one rank, which can neither send nor receive. This is a bug in nsp or in a plug-in; please report it.");
}

// The job is this process.
void end_process(int code, const std::string& reason) {
  if (!reason.empty()) std::fprintf(stderr, "nsp: the job ends: %s\n", reason.c_str());
  std::fflush(nullptr);
  std::_Exit(code);
}

class SelfProvider final : public CommProvider {
 public:
  explicit SelfProvider(const PluginContext&) {}
  std::unique_ptr<Communicator> open(const CommContext& context) override {
    return std::make_unique<SelfCommunicator>("world", context.ring, nullptr, end_process);
  }
  void close() noexcept override {}
};

}  // namespace

WorkPtr SelfCommunicator::all_reduce(TensorView data, After after) {
  check_sum("all_reduce", data.dtype());
  return enter("all_reduce", data, data, std::move(after));
}

WorkPtr SelfCommunicator::reduce_scatter(TensorView in, std::vector<int64_t> counts, TensorView out, After after) {
  check_one(counts, in);
  check_sum("reduce_scatter", in.dtype());
  return enter("reduce_scatter", in, out, std::move(after));
}

WorkPtr SelfCommunicator::all_gather(TensorView own, std::vector<int64_t> counts, TensorView out, After after) {
  check_one(counts, own);
  return enter("all_gather", own, out, std::move(after));
}

WorkPtr SelfCommunicator::all_to_all(TensorView in, std::vector<int64_t> in_counts, TensorView out, std::vector<int64_t> out_counts,
                                     After after) {
  check_one(in_counts, in);
  check_one(out_counts, out);
  return enter("all_to_all", in, out, std::move(after));
}

WorkPtr SelfCommunicator::broadcast(TensorView data, int root, After after) {
  NSP_REQUIRE(root == 0, "the root of a broadcast is a rank of the group");
  return enter("broadcast", data, data, std::move(after));
}

WorkPtr SelfCommunicator::send(TensorView, int, After) {
  fail_alone(name_);
}

WorkPtr SelfCommunicator::recv(TensorView, int, After) {
  fail_alone(name_);
}

std::unique_ptr<Communicator> SelfCommunicator::split(int, int, const std::string& name, Device* device) {
  return std::make_unique<SelfCommunicator>(name, ring_, device, abort_);
}

void SelfCommunicator::abort(int code, const std::string& reason) {
  abort_(code, reason);
  std::_Exit(code);  // not reached
}

NSP_BUILTIN_PLUGIN(nsp_builtin_comm_self, "comm", "self", NSP_VERSION, "one process, nothing is sent", CommProvider, SelfProvider,
                   no_options);

}  // namespace nsp
