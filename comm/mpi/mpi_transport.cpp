#include "comm/mpi/mpi_transport.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <utility>

namespace nsp {
namespace {

// Waits for all ranks of comm without blocking inside MPI, where some libraries spin on the core that another rank needs.
void barrier(std::mutex& mutex, MPI_Comm comm) {
  MPI_Request request;
  {
    std::lock_guard lock(mutex);
    check_mpi(MPI_Ibarrier(comm, &request), "starting a barrier");
  }
  for (int round = 0;; ++round) {
    int done = 0;
    {
      std::lock_guard lock(mutex);
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "waiting for a barrier");
    }
    if (done) return;
    if (round < 1000) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
}

std::string mpi_text(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "MPI error " + std::to_string(code);
  return std::string(text, length);
}

}  // namespace

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  throw Error(ErrorKind::comm,
              std::string("MPI failed in ") + what + ". It says: " + mpi_text(code) +
                  ". A rank or its host may be gone: look at the output of the other ranks. The same command resumes from the "
                  "last checkpoint.");
}

MpiSession::MpiSession() {
  int started = 0;
  MPI_Initialized(&started);
  if (started)
    throw Error(ErrorKind::comm, "MPI is started already. It can be started once in a process, by the communicator module alone.");
  // Open MPI then gives the core away while it waits, in the few calls that block. mpirun sets the opposite where it counts enough cores
  // for the ranks, but their computing threads need those, so this overrides it.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  active_ = true;
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "setting up error returns");
  int *tag_limit = nullptr, found = 0;
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &found), "asking for the largest tag");
  const bool tags_fit = found && *tag_limit >= kMaxTag;
  if (provided >= MPI_THREAD_SERIALIZED && tags_fit) return;
  finalize();
  throw Error(ErrorKind::comm, std::string("this MPI library cannot be used. ") +
                                   (tags_fit ? "It does not offer MPI_THREAD_SERIALIZED" : "Its message tags end below 2^28") +
                                   ". Build the mpi communicator with another MPI.");
}

void MpiSession::finalize() noexcept {
  if (!active_) return;
  try {
    barrier(mutex_, MPI_COMM_WORLD);
  } catch (const std::exception&) {
    // Some rank is gone; MPI_Finalize decides what that means.
  }
  std::lock_guard lock(mutex_);
  active_ = false;
  MPI_Finalize();
}

MpiTransport::MpiTransport(std::shared_ptr<MpiSession> session, MPI_Comm comm) : session_(std::move(session)), comm_(comm) {
  std::lock_guard lock(session_->mutex());
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "setting up error returns");
  int size = 0;
  check_mpi(MPI_Comm_rank(comm_, &rank_), "asking for the rank");
  check_mpi(MPI_Comm_size(comm_, &size), "asking for the size");
  std::vector<int> own(size);
  std::iota(own.begin(), own.end(), 0);
  world_ranks_.resize(size);
  MPI_Group group, world;
  check_mpi(MPI_Comm_group(comm_, &group), "asking for the group");
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "asking for the group");
  check_mpi(MPI_Group_translate_ranks(group, size, own.data(), world, world_ranks_.data()), "translating ranks");
  MPI_Group_free(&group);
  MPI_Group_free(&world);
}

MpiTransport::~MpiTransport() {
  if (!session_->active()) return;
  std::lock_guard lock(session_->mutex());
  if (requests_.empty()) {
    MPI_Comm_free(&comm_);
    return;
  }
  // Only after an error. The communicator is left to the end of the process: others may still send on it.
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (pending_[i].receive_bytes >= 0) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
}

void MpiTransport::isend(const void* data, int64_t bytes, int peer, int tag, uint32_t id) {
  std::lock_guard lock(session_->mutex());
  MPI_Request request;
  check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &request), "sending a message");
  requests_.push_back(request);
  pending_.push_back({id, peer, -1});
}

void MpiTransport::irecv(void* data, int64_t bytes, int peer, int tag, uint32_t id) {
  std::lock_guard lock(session_->mutex());
  MPI_Request request;
  check_mpi(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &request), "receiving a message");
  requests_.push_back(request);
  pending_.push_back({id, peer, static_cast<int>(bytes)});
}

void MpiTransport::check_arrived(const Pending& pending, MPI_Status& status) const {
  if (pending.receive_bytes < 0) return;
  int bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "asking for the size of a message");
  if (bytes == pending.receive_bytes) return;
  throw Error(ErrorKind::comm,
              "rank " + std::to_string(world_rank(pending.peer)) + " sent " + std::to_string(bytes) + " bytes where rank " +
                  std::to_string(world_rank(rank_)) + " expects " + std::to_string(pending.receive_bytes) +
                  ". The ranks have entered different collectives. Check that all ranks run the same program with the same "
                  "configuration.");
}

void MpiTransport::test_some(std::vector<uint32_t>& finished) {
  if (requests_.empty()) return;
  const int n = static_cast<int>(requests_.size());
  indices_.resize(n);
  statuses_.resize(n);
  std::lock_guard lock(session_->mutex());
  int done = 0;
  const int code = MPI_Testsome(n, requests_.data(), &done, indices_.data(), statuses_.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (int i = 0; i < done; ++i) check_mpi(statuses_[i].MPI_ERROR, "a message");
  }
  check_mpi(code, "testing for messages");
  if (done <= 0) return;
  for (int i = 0; i < done; ++i) {
    check_arrived(pending_[indices_[i]], statuses_[i]);
    finished.push_back(pending_[indices_[i]].id);
  }
  // MPI has set the completed requests to null.
  size_t kept = 0;
  for (int i = 0; i < n; ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    pending_[kept++] = pending_[i];
  }
  requests_.resize(kept);
  pending_.resize(kept);
}

std::unique_ptr<Transport> MpiTransport::split(int color, int key) {
  barrier(session_->mutex(), comm_);
  MPI_Comm child = MPI_COMM_NULL;
  {
    std::lock_guard lock(session_->mutex());
    check_mpi(MPI_Comm_split(comm_, color, key, &child), "splitting a communicator");
  }
  return std::make_unique<MpiTransport>(session_, child);
}

void MpiTransport::abort(int code, const std::string& reason) {
  if (!reason.empty()) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    std::fprintf(stderr, "nsp: rank %d on %s ends the job: %s\n", world_rank(rank_), host, reason.c_str());
  }
  std::fflush(nullptr);
  if (session_->active()) MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace nsp
