// Messages between threads: a mailbox for each pair of ranks, where the second of sender and receiver to arrive makes the copy.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport.hpp"

namespace nsp {

// What all groups of one LocalWorld share: whether a rank has ended the job.
class LocalJob {
 public:
  void abort(int rank, int code, const std::string& reason);
  void check() const;  // throws Error(comm) once the job was aborted
  bool aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;
  std::string text_;
};

// The mailboxes of one group, and the meeting place of its splits.
class LocalGroup {
 public:
  // world_ranks: of the group's ranks. Shared because the ranks of a group end in any order.
  LocalGroup(std::shared_ptr<LocalJob> job, std::vector<int> world_ranks);

  struct Posted {
    uint32_t id;
    int tag;
    void* data;  // of a send only read
    int64_t bytes;
  };
  struct Mailbox {
    std::mutex mutex;
    std::vector<Posted> sends, receives;   // not matched yet, in order
    std::vector<uint32_t> sent, received;  // matched and copied
  };

  Mailbox& mailbox(int from, int to) noexcept { return mailboxes_[from * static_cast<int>(world_ranks_.size()) + to]; }
  const std::vector<int>& world_ranks() const noexcept { return world_ranks_; }
  LocalJob& job() noexcept { return *job_; }
  // Blocks until all ranks have called. Returns the new group of this rank and its rank there.
  std::pair<std::shared_ptr<LocalGroup>, int> split(int rank, int color, int key);

 private:
  struct Choice {
    int color = 0, key = 0;
  };
  void form_groups();

  std::shared_ptr<LocalJob> job_;
  std::vector<int> world_ranks_;
  std::vector<Mailbox> mailboxes_;  // [from * size + to]

  std::mutex split_mutex_;
  std::condition_variable split_done_;
  std::vector<Choice> choices_;
  int arrived_ = 0, left_ = 0;  // left_ > 0: ranks that have not fetched the result of the last split
  std::vector<std::pair<std::shared_ptr<LocalGroup>, int>> formed_;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalGroup> group, int rank);
  ~LocalTransport() override;
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return static_cast<int>(group_->world_ranks().size()); }
  int world_rank(int rank) const noexcept override { return group_->world_ranks()[rank]; }
  void isend(const void* data, int64_t bytes, int peer, int tag, uint32_t id) override;
  void irecv(void* data, int64_t bytes, int peer, int tag, uint32_t id) override;
  void test_some(std::vector<uint32_t>& finished) override;
  std::unique_ptr<Transport> split(int color, int key) override;
  [[noreturn]] void abort(int code, const std::string& reason) override;

 private:
  std::shared_ptr<LocalGroup> group_;
  int rank_;
  int64_t outstanding_ = 0;
};

}  // namespace nsp
