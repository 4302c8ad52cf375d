// How an ExchangeCommunicator drives its collectives: entry, start, messages, staging, end.
#include <algorithm>
#include <set>
#include <utility>

#include "comm/exchange.hpp"

namespace nsp {
namespace {

using Clock = std::chrono::steady_clock;

// A tag is [1 bit point-to-point][12 bits operation][14 bits block][1 bit result]. An operation that is 2^12 younger than the
// oldest unfinished one waits, and the blocks for one peer are sent in order, so equal tags in flight still match in order.
constexpr uint32_t kNumbers = 1u << 12;
constexpr int64_t kBlocks = int64_t{1} << 14;

int tag_base(bool point_to_point, uint32_t number) {
  return static_cast<int>((point_to_point ? 1u << 27 : 0u) | (number % kNumbers) << 15);
}

int tag_of(const Operation& operation, const Message& message) {
  const bool result = message.kind == MessageKind::result_in || message.kind == MessageKind::result_out;
  return operation.tag_base() | static_cast<int>(message.block % kBlocks) << 1 | (result ? 1 : 0);
}

bool is_done(After& after) {
  if (after.event && after.event->query()) after.event.reset();
  if (after.work && after.work->done()) after.work.reset();
  return !after.event && !after.work;
}

}  // namespace

WorkPtr ExchangeCommunicator::enter(std::shared_ptr<Operation> operation, const char* op, int64_t count, DType dtype, int order,
                                    After after) {
  check_usable();
  Entry entry;
  entry.operation = operation;
  entry.after = std::move(after);
  entry.order = order;
  entry.number = order == kCollectives ? collectives_++ : numbers_[order]++;
  operation->set_tag_base(tag_base(order != kCollectives, entry.number));
  entry.reported = Clock::now();
  entry.sequence = context_.ring.entered({0, name_, op, count, dtype, entry.number, "its own input"});
  active_.push_back(std::move(entry));
  try {
    advance(active_.back());
  } catch (const std::exception& error) {
    fail_all(error.what());
    throw;
  }
  if (active_.back().stage == Stage::done) active_.pop_back();
  return operation;
}

bool ExchangeCommunicator::progress() {
  check_usable();
  try {
    // A few rounds, as a completed message often lets the next step happen at once; bounded, as the caller has its own work.
    for (int round = 0; round < 4 && move_on(); ++round) {
    }
    if (!active_.empty()) report_waiting();
  } catch (const std::exception& error) {
    fail_all(error.what());
    throw;
  }
  return !active_.empty();
}

bool ExchangeCommunicator::in_flight() const noexcept {
  return device_ != nullptr &&
         std::any_of(active_.begin(), active_.end(), [](const Entry& entry) { return entry.stage != Stage::waiting; });
}

bool ExchangeCommunicator::move_on() {
  finished_ids_.clear();
  transport_->test_some(finished_ids_);
  bool moved = !finished_ids_.empty();
  moves_ += finished_ids_.size();
  for (uint32_t id : finished_ids_) {
    const Message message = messages_[id];
    messages_[id].operation = nullptr;
    free_ids_.push_back(id);
    message.operation->finished(*this, message);
  }
  for (Entry& entry : active_) moved = advance(entry) || moved;
  std::erase_if(active_, [](const Entry& entry) { return entry.stage == Stage::done; });
  return moved;
}

bool ExchangeCommunicator::advance(Entry& entry) {
  const Stage before = entry.stage;
  if (entry.stage == Stage::waiting && !(may_start(entry) && is_done(entry.after) && start(entry))) return false;
  if (entry.stage == Stage::staging_in) {
    if (!entry.lane->event().query()) return entry.stage != before;
    entry.operation->begin(*this);
    entry.stage = Stage::exchanging;
    context_.ring.waiting(entry.sequence, "the other ranks");
  }
  if (entry.stage == Stage::exchanging && entry.operation->exchanged()) {
    if (entry.operation->copies_out().empty()) {
      finish(entry);
    } else {
      copy(entry, false);
      entry.stage = Stage::staging_out;
      context_.ring.waiting(entry.sequence, "its own device");
    }
  }
  if (entry.stage == Stage::staging_out && entry.lane->event().query()) finish(entry);
  return entry.stage != before;
}

bool ExchangeCommunicator::may_start(const Entry& entry) const {
  const auto same_order = [&](const Entry& other) { return other.order == entry.order; };
  const Entry& oldest = *std::find_if(active_.begin(), active_.end(), same_order);
  return entry.number - oldest.number < kNumbers;
}

bool ExchangeCommunicator::start(Entry& entry) {
  const int64_t bytes = entry.operation->staging_bytes(staged_);
  if (bytes > 0) {
    const auto collective = [](const Entry& other) { return other.order == kCollectives; };
    const bool ordered = collective(entry);
    const bool oldest = ordered && &*std::find_if(active_.begin(), active_.end(), collective) == &entry;
    using Claim = StagingPool::Claim;
    entry.lane = pool_.take(bytes, !ordered ? Claim::outside : oldest ? Claim::oldest : Claim::younger);
    if (entry.lane == nullptr) return false;
  }
  entry.operation->set_started();
  entry.operation->place(entry.lane != nullptr ? entry.lane->data() : nullptr, staged_);
  if (entry.operation->copies_in().empty()) {
    entry.operation->begin(*this);
    entry.stage = Stage::exchanging;
    context_.ring.waiting(entry.sequence, "the other ranks");
  } else {
    copy(entry, true);
    entry.stage = Stage::staging_in;
  }
  return true;
}

void ExchangeCommunicator::copy(Entry& entry, bool in) {
  for (const StagedCopy& c : in ? entry.operation->copies_in() : entry.operation->copies_out()) {
    stream_->copy(in ? c.staged : c.memory, in ? c.memory : c.staged, c.bytes);
  }
  entry.lane->event().record(*stream_);
}

void ExchangeCommunicator::finish(Entry& entry) {
  if (entry.lane != nullptr) pool_.give_back(entry.lane);
  entry.lane = nullptr;
  entry.stage = Stage::done;
  entry.operation->set_done();
  context_.ring.finished(entry.sequence);
  ++moves_;
}

void ExchangeCommunicator::report_waiting() {
  constexpr auto kInterval = std::chrono::milliseconds(250);
  const Clock::time_point now = Clock::now();
  for (Entry& entry : active_) {
    if (entry.stage != Stage::exchanging || now - entry.reported < kInterval) continue;
    entry.reported = now;
    // Of the missing messages only those that come first in MessageKind: the others wait for these.
    MessageKind kind = MessageKind::result_out;
    std::set<int> ranks;
    for (const Message& message : messages_) {
      if (message.operation != entry.operation.get() || message.kind > kind) continue;
      if (message.kind < kind) ranks.clear();
      kind = message.kind;
      ranks.insert(transport_->world_rank(message.peer));
    }
    std::string text;
    constexpr size_t kNamed = 16;
    size_t named = 0;
    for (int rank : ranks) {
      if (named++ == kNamed) {
        text += " and " + std::to_string(ranks.size() - kNamed) + " more";
        break;
      }
      text += (text.empty() ? (ranks.size() == 1 ? "rank " : "ranks ") : ", ") + std::to_string(rank);
    }
    context_.ring.waiting(entry.sequence, text);
  }
}

uint32_t ExchangeCommunicator::take_message(Operation& operation, const Message& message) {
  if (free_ids_.empty()) {
    free_ids_.push_back(static_cast<uint32_t>(messages_.size()));
    messages_.emplace_back();
  }
  const uint32_t id = free_ids_.back();
  free_ids_.pop_back();
  messages_[id] = message;
  messages_[id].operation = &operation;
  return id;
}

void ExchangeCommunicator::post_send(Operation& operation, const Message& message, const void* data, int64_t bytes) {
  transport_->isend(data, bytes, message.peer, tag_of(operation, message), take_message(operation, message));
  bytes_sent_ += bytes;
}

void ExchangeCommunicator::post_receive(Operation& operation, const Message& message, void* data, int64_t bytes) {
  transport_->irecv(data, bytes, message.peer, tag_of(operation, message), take_message(operation, message));
}

}  // namespace nsp
