// A device whose memory the host cannot touch and whose streams are late, around a real CPU backend. Code that runs on it
// with right results neither dereferences device memory nor assumes that an enqueued op is done, so it is fit for a GPU.
//
// What it finds, and how:
//   - the host touches a device address                          the process dies by SIGSEGV
//   - an op gets host memory that is not pinned, memory that was
//     released, or a view that leaves its allocation             NSP_ERR_ARGUMENT with a text, nothing is enqueued
//   - memory is released while queued work uses it, or the real
//     backend refuses an op                                      the device has failed: all later calls say so
//   - memory is read before it was written, or after release     NaN (all-ones bytes)
//   - a host wait, an event or a stream order is missing         wrong results: one task in eight is delayed at random
//   - objects outlive their device, memory is released twice     abort with a text
// Copies to and from ordinary host memory are allowed; their source is read late, as with cudaMemcpyAsync.
#pragma once

#include <cstdint>
#include <memory>

#include "nsp/backend.h"

namespace nsp::test {

class FakeBackend {
 public:
  virtual ~FakeBackend() = default;
  // For Device and everything else that takes a backend; lives as long as this object. Each open() makes a device of its own,
  // with memory of its own, so ranks as threads may share one table.
  virtual const nsp_backend* table() const = 0;
};

// real: the backend that computes; it must be host addressable, and outlives the result. capacity_bytes: device memory of each
// device (address space only until it is used). seed: of the delays. At most 64 may exist at the same time in a process.
std::unique_ptr<FakeBackend> make_fake_backend(const nsp_backend* real, uint64_t capacity_bytes, unsigned seed);

}  // namespace nsp::test
