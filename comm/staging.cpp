#include "comm/staging.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace nsp {
namespace {

constexpr int kLanes = 3;
constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

StagingLane::StagingLane(Device* device) : device_(device) {
  if (device_ != nullptr) event_ = std::make_unique<Event>(*device_, "communicator staging");
}

void StagingLane::grow(int64_t bytes) {
  if (bytes <= bytes_) return;
  data_ = nullptr;
  bytes_ = 0;
  if (device_ != nullptr) {
    pinned_ = Buffer();
    pinned_ = Buffer(*device_, bytes, MemoryKind::pinned, "communicator staging");
    data_ = static_cast<char*>(pinned_.data());
  } else {
    host_.reset();
    const size_t size = (static_cast<size_t>(bytes) + kHugePage - 1) / kHugePage * kHugePage;
    const bool huge = static_cast<size_t>(bytes) >= kHugePage;
    host_.reset(static_cast<char*>(huge ? std::aligned_alloc(kHugePage, size) : std::aligned_alloc(256, (bytes + 255) / 256 * 256)));
    if (!host_) {
      throw Error(ErrorKind::memory, "staging of " + std::to_string(bytes) +
                                         " bytes for a communicator cannot be allocated. This host is out of "
                                         "memory. Start fewer ranks on it, or lower comm.bucket_mib.");
    }
    // Small pages cost more at first touch than the transfer itself; touching them here keeps that out of the steps.
    if (huge) madvise(host_.get(), size, MADV_HUGEPAGE);
    std::memset(host_.get(), 0, static_cast<size_t>(bytes));
    data_ = host_.get();
  }
  bytes_ = bytes;
}

StagingPool::StagingPool(Device* device) : device_(device) {
  for (int i = 0; i < kLanes; ++i) lanes_.push_back(std::make_unique<StagingLane>(device_));
}

int64_t StagingPool::reserve(int64_t bytes) {
  int64_t total = 0;
  for (const auto& lane : lanes_) {
    NSP_REQUIRE(!lane->busy_, "staging is reserved before collectives are started");
    lane->grow(bytes);
    total += lane->bytes_;
  }
  return total;
}

StagingLane* StagingPool::take(int64_t bytes, Claim claim) {
  // The smallest lane that fits, else the largest one, which then has the least to grow.
  StagingLane* best = nullptr;
  int free = 0;
  for (const auto& candidate : lanes_) {
    StagingLane* lane = candidate.get();
    if (lane->busy_) continue;
    ++free;
    if (best == nullptr || (lane->bytes_ >= bytes ? best->bytes_ < bytes || lane->bytes_ < best->bytes_
                                                  : best->bytes_ < bytes && lane->bytes_ > best->bytes_)) {
      best = lane;
    }
  }
  if (claim == Claim::outside && free < 2) {
    lanes_.push_back(std::make_unique<StagingLane>(device_));
    best = lanes_.back().get();
  } else if (free < (claim == Claim::oldest ? 1 : 2)) {
    return nullptr;
  }
  best->grow(bytes);
  best->busy_ = true;
  return best;
}

}  // namespace nsp
