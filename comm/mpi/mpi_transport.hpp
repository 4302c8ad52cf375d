// The transport over MPI. Only this folder knows MPI.
//
// No call blocks inside MPI except start-up, the making of communicators and MPI_Finalize; whatever has to wait tests and
// yields. MPI is asked for MPI_THREAD_SERIALIZED and every call is made under one mutex.
#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <vector>

#include "comm/transport.hpp"

namespace nsp {

// MPI from MPI_Init to MPI_Finalize.
class MpiSession {
 public:
  MpiSession();  // throws Error(comm)
  std::mutex& mutex() noexcept { return mutex_; }
  bool active() const noexcept { return active_; }
  // Waits for all ranks and ends MPI. No transport may be used afterwards.
  void finalize() noexcept;

 private:
  std::mutex mutex_;
  bool active_ = false;
};

// Throws Error(comm) with MPI's own words unless code is MPI_SUCCESS. what: "sending a message".
void check_mpi(int code, const char* what);

class MpiTransport final : public Transport {
 public:
  // Takes over comm. session is shared, as transports and the provider end in any order.
  MpiTransport(std::shared_ptr<MpiSession> session, MPI_Comm comm);
  ~MpiTransport() override;
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return static_cast<int>(world_ranks_.size()); }
  int world_rank(int rank) const noexcept override { return world_ranks_[rank]; }
  void isend(const void* data, int64_t bytes, int peer, int tag, uint32_t id) override;
  void irecv(void* data, int64_t bytes, int peer, int tag, uint32_t id) override;
  void test_some(std::vector<uint32_t>& finished) override;
  std::unique_ptr<Transport> split(int color, int key) override;
  [[noreturn]] void abort(int code, const std::string& reason) override;

 private:
  struct Pending {
    uint32_t id;
    int peer;
    int receive_bytes;  // expected; -1 for a send
  };
  void check_arrived(const Pending& pending, MPI_Status& status) const;

  std::shared_ptr<MpiSession> session_;
  MPI_Comm comm_;
  int rank_ = 0;
  std::vector<int> world_ranks_;
  std::vector<MPI_Request> requests_;
  std::vector<Pending> pending_;  // as requests_
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace nsp
