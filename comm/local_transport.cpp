#include "comm/local_transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace nsp {
namespace {

// Copies the message and checks that both sides mean the same one. Called with the mailbox locked.
void deliver(const LocalGroup::Posted& send, const LocalGroup::Posted& receive, int from, int to) {
  if (send.bytes != receive.bytes) {
    throw Error(ErrorKind::comm, "rank " + std::to_string(from) + " sent " + std::to_string(send.bytes) + " bytes where rank " +
                                     std::to_string(to) + " expects " + std::to_string(receive.bytes) +
                                     ". The ranks have entered different collectives. Compare the order of their calls.");
  }
  std::memcpy(receive.data, send.data, static_cast<size_t>(send.bytes));
}

// The first posted message with the tag, taken out of the list.
bool take(std::vector<LocalGroup::Posted>& list, int tag, LocalGroup::Posted& found) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const LocalGroup::Posted& p) { return p.tag == tag; });
  if (it == list.end()) return false;
  found = *it;
  list.erase(it);
  return true;
}

}  // namespace

void LocalJob::abort(int rank, int code, const std::string& reason) {
  std::lock_guard lock(mutex_);
  if (aborted()) return;
  text_ = "rank " + std::to_string(rank) + " ended the job with code " + std::to_string(code) + ". " + reason;
  aborted_.store(true, std::memory_order_release);
}

void LocalJob::check() const {
  if (!aborted()) return;
  std::lock_guard lock(mutex_);
  throw Error(ErrorKind::comm, text_);
}

LocalGroup::LocalGroup(std::shared_ptr<LocalJob> job, std::vector<int> world_ranks)
    : job_(std::move(job)),
      world_ranks_(std::move(world_ranks)),
      mailboxes_(world_ranks_.size() * world_ranks_.size()),
      choices_(world_ranks_.size()),
      formed_(world_ranks_.size()) {}

std::pair<std::shared_ptr<LocalGroup>, int> LocalGroup::split(int rank, int color, int key) {
  const int size = static_cast<int>(world_ranks_.size());
  std::unique_lock lock(split_mutex_);
  const auto wait = [&](auto condition) {
    // In slices, as an abort does not know who waits here.
    while (!split_done_.wait_for(lock, std::chrono::milliseconds(20), condition)) job_->check();
  };
  wait([&] { return left_ == 0; });
  choices_[rank] = {color, key};
  if (++arrived_ == size) {
    form_groups();
    arrived_ = 0;
    left_ = size;
    split_done_.notify_all();
  } else {
    wait([&] { return left_ > 0 && formed_[rank].first != nullptr; });
  }
  auto result = std::move(formed_[rank]);
  formed_[rank].first.reset();
  if (--left_ == 0) split_done_.notify_all();
  return result;
}

void LocalGroup::form_groups() {
  std::map<int, std::vector<int>> members;  // color -> ranks by key, then by rank
  for (int r = 0; r < static_cast<int>(choices_.size()); ++r) members[choices_[r].color].push_back(r);
  for (auto& [color, ranks] : members) {
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return choices_[a].key < choices_[b].key; });
    std::vector<int> world;
    for (int r : ranks) world.push_back(world_ranks_[r]);
    const auto group = std::make_shared<LocalGroup>(job_, std::move(world));
    for (size_t i = 0; i < ranks.size(); ++i) formed_[ranks[i]] = {group, static_cast<int>(i)};
  }
}

LocalTransport::LocalTransport(std::shared_ptr<LocalGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}

LocalTransport::~LocalTransport() {
  // Nobody may read or write this rank's memory from now on.
  for (int peer = 0; peer < size(); ++peer) {
    LocalGroup::Mailbox& out = group_->mailbox(rank_, peer);
    {
      std::lock_guard lock(out.mutex);
      out.sends.clear();
    }
    LocalGroup::Mailbox& in = group_->mailbox(peer, rank_);
    std::lock_guard lock(in.mutex);
    in.receives.clear();
  }
}

void LocalTransport::isend(const void* data, int64_t bytes, int peer, int tag, uint32_t id) {
  group_->job().check();
  LocalGroup::Mailbox& box = group_->mailbox(rank_, peer);
  const LocalGroup::Posted send{id, tag, const_cast<void*>(data), bytes};
  LocalGroup::Posted receive;
  std::lock_guard lock(box.mutex);
  if (take(box.receives, tag, receive)) {
    deliver(send, receive, world_rank(rank_), world_rank(peer));
    box.sent.push_back(id);
    box.received.push_back(receive.id);
  } else {
    box.sends.push_back(send);
  }
  ++outstanding_;
}

void LocalTransport::irecv(void* data, int64_t bytes, int peer, int tag, uint32_t id) {
  group_->job().check();
  LocalGroup::Mailbox& box = group_->mailbox(peer, rank_);
  const LocalGroup::Posted receive{id, tag, data, bytes};
  LocalGroup::Posted send;
  std::lock_guard lock(box.mutex);
  if (take(box.sends, tag, send)) {
    deliver(send, receive, world_rank(peer), world_rank(rank_));
    box.received.push_back(id);
    box.sent.push_back(send.id);
  } else {
    box.receives.push_back(receive);
  }
  ++outstanding_;
}

void LocalTransport::test_some(std::vector<uint32_t>& finished) {
  group_->job().check();
  if (outstanding_ == 0) return;
  const size_t before = finished.size();
  const auto drain = [&](std::mutex& mutex, std::vector<uint32_t>& ids) {
    std::lock_guard lock(mutex);
    finished.insert(finished.end(), ids.begin(), ids.end());
    ids.clear();
  };
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    LocalGroup::Mailbox &out = group_->mailbox(rank_, peer), &in = group_->mailbox(peer, rank_);
    drain(out.mutex, out.sent);
    drain(in.mutex, in.received);
  }
  outstanding_ -= static_cast<int64_t>(finished.size() - before);
}

std::unique_ptr<Transport> LocalTransport::split(int color, int key) {
  group_->job().check();
  auto [group, rank] = group_->split(rank_, color, key);
  return std::make_unique<LocalTransport>(std::move(group), rank);
}

void LocalTransport::abort(int code, const std::string& reason) {
  group_->job().abort(world_rank(rank_), code, reason);
  group_->job().check();
  throw Error(ErrorKind::comm, reason);
}

}  // namespace nsp
