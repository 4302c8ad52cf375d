// The backends that are tested, and what a case needs of one: tensors in its memory, a stream, the op table.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "array.hpp"
#include "nsp/backend.h"

namespace nsp_ops {

struct Backend {
  std::string name;  // "cpu_native"
  const nsp_backend* table = nullptr;
  nsp_device* device = nullptr;  // shared by all cases; a test that makes a device fail opens its own
};

// Every libnsp_backend_*.so in NSP_PLUGIN_PATH that this machine can run; loaded at the first call. The first has
// NSP_OPS_THREADS compute threads (default 2), each further one has one more.
const std::vector<Backend>& backends();
// Modules that were left out, with the reason.
const std::vector<std::string>& refusals();
int compute_threads();

// A tensor in device memory. The gaps between its rows hold a canary that must survive.
struct Placed {
  nsp_tensor t{};
  int64_t bytes = 0;
};

class Bench {
 public:
  explicit Bench(const Backend& backend);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // A tensor with the values of a. gap: elements left free behind each row and each outer block.
  nsp_tensor in(const Array& a, nsp_dtype dtype = NSP_F32, int64_t gap = 0);
  // The same with strides of the caller's (in elements).
  nsp_tensor in_strided(const Array& a, nsp_dtype dtype, const std::vector<int64_t>& strides);
  // A tensor whose elements are NaN (all bits set) until they are written.
  nsp_tensor out(const std::vector<int64_t>& shape, nsp_dtype dtype = NSP_F32, int64_t gap = 0);
  nsp_tensor out_strided(const std::vector<int64_t>& shape, nsp_dtype dtype, const std::vector<int64_t>& strides);
  // Waits for the stream, checks the canary, adds the bits to hash().
  Array read(const nsp_tensor& t);
  std::vector<uint32_t> read_bits(const nsp_tensor& t);  // dense; bf16 as the fp32 of the same value

  template <class Args>
  nsp_status call(nsp_status (*op)(nsp_stream*, const Args*), Args args) {
    args.size = sizeof(Args);
    return op(stream_, &args);
  }
  template <class Args>
  void run(nsp_status (*op)(nsp_stream*, const Args*), const Args& args) {
    ASSERT_EQ(call(op, args), NSP_OK) << error();
  }
  void wait();
  std::string error() const { return backend_.table->last_error(backend_.device); }
  const nsp_op_table& ops() const { return *backend_.table->ops; }
  const nsp_backend& table() const { return *backend_.table; }
  nsp_stream* stream() const { return stream_; }
  nsp_device* device() const { return backend_.device; }
  uint64_t hash() const { return hash_; }

 private:
  Placed& place(const std::vector<int64_t>& shape, nsp_dtype dtype, const std::vector<int64_t>& strides);
  std::vector<unsigned char> download(const Placed& placed);
  const Placed& find(const nsp_tensor& t) const;
  Backend backend_;
  nsp_stream* stream_ = nullptr;
  std::vector<std::unique_ptr<Placed>> placed_;
  uint64_t hash_ = 14695981039346656037ull;  // FNV-1a
};

// The nearest number of the dtype, ties to even (fp32: the value itself). Scalar code of its own, to hold backends against.
float rounded(float value, nsp_dtype dtype);
// What a tensor holds of these values: a reference starts from the same numbers as the backend.
Array stored(Array a, nsp_dtype dtype);

// Strides of a row-major tensor with a gap of `gap` elements behind each row and each outer block.
std::vector<int64_t> gapped_strides(const std::vector<int64_t>& shape, int64_t gap);

}  // namespace nsp_ops
