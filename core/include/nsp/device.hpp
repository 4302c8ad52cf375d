// C++ owners over a backend's C tables: Device, Stream, Event, Buffer, Ops. They check shapes and turn a status into an
// Error. Core computes through them alone and never dereferences device memory unless host_addressable() says it may and
// everything that touches it has been waited for.
//
// Threads: one thread at a time per object. Lifetime: a Device outlives everything made from it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nsp/backend.h"
#include "nsp/types.hpp"

namespace nsp {

class Device;
class Stream;

// A point in a stream. An event that was never recorded counts as reached.
class Event {
 public:
  Event(Device& device, const std::string& name = "");
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(Stream& stream);
  bool query() const;                         // true: reached. Throws Error(device) if the work failed.
  bool wait_for(int64_t microseconds) const;  // sleeps; true: reached
  nsp_event* handle() const noexcept { return event_; }

 private:
  Device& device_;
  nsp_event* event_ = nullptr;
  std::string name_;
};

class Stream {
 public:
  explicit Stream(Device& device);
  ~Stream();  // waits for what is queued
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void wait(const Event& event);  // later work of this stream runs behind the event; the host does not wait
  void copy(void* destination, const void* source, int64_t bytes);  // any direction, asynchronous
  void fill(void* destination, int byte, int64_t bytes);
  Device& device() const noexcept { return device_; }
  nsp_stream* handle() const noexcept { return stream_; }

 private:
  Device& device_;
  nsp_stream* stream_ = nullptr;
};

enum class MemoryKind { device = NSP_MEMORY_DEVICE, pinned = NSP_MEMORY_PINNED };

// Owns one allocation; returns it in the destructor. REQUIRES that nothing enqueued still uses it then.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, int64_t bytes, MemoryKind kind, const std::string& name);  // Error(memory) names it and its size
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  void* data() const noexcept { return data_; }
  int64_t bytes() const noexcept { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::device;
};

struct DeviceInfo {
  std::string name, kind;
  bool host_addressable = false;
  int threads = 0;
  int64_t memory_total = 0, memory_free = 0;  // bytes
};

class Device {
 public:
  // table: a backend's, static. name: the backend's, for messages ("cpu_native").
  Device(const nsp_backend* table, const std::string& name, int index, int threads);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  DeviceInfo info() const;
  bool host_addressable() const noexcept { return host_addressable_; }
  bool supports(nsp_op op, DType dtype) const;  // the op is in the table, and the backend has it in this dtype
  const std::string& name() const noexcept { return name_; }
  const nsp_backend& table() const noexcept { return *table_; }
  nsp_device* handle() const noexcept { return device_; }
  // Throws Error(device) with the backend's text unless status is NSP_OK.
  void check(nsp_status status, const char* what) const;

 private:
  const nsp_backend* table_;
  std::string name_;
  nsp_device* device_ = nullptr;
  bool host_addressable_ = false;
};

// Typed calls of the op table on one stream. Meanings, shapes and sources: nsp/backend.h. Each checks shapes and dtypes and
// throws Error(internal) with the op's name on a mismatch.
class Ops {
 public:
  explicit Ops(Stream& stream) : stream_(&stream) {}
  Stream& stream() const noexcept { return *stream_; }

  void embedding_forward(TensorView out, TensorView tokens, TensorView table, TensorView positions = {},
                         TensorView position_table = {}) const;
  void embedding_backward(TensorView dout, TensorView tokens, TensorView dtable, TensorView positions = {},
                          TensorView dposition_table = {}) const;
  void layernorm_forward(TensorView out, TensorView x, TensorView weight, TensorView bias, TensorView mean, TensorView rstd,
                         float eps) const;
  void layernorm_backward(TensorView dx, TensorView dweight, TensorView dbias, TensorView dout, TensorView x, TensorView weight,
                          TensorView mean, TensorView rstd, bool accumulate_dx) const;
  void rmsnorm_forward(TensorView out, TensorView x, TensorView weight, TensorView rstd, float eps) const;
  void rmsnorm_backward(TensorView dx, TensorView dweight, TensorView dout, TensorView x, TensorView weight, TensorView rstd,
                        bool accumulate_dx) const;
  struct MatmulOptions {
    bool transpose_a = false, transpose_b = false, accumulate = false;
  };
  void matmul(TensorView out, TensorView a, TensorView b, MatmulOptions options, TensorView bias = {}) const;
  void bias_gradient(TensorView dbias, TensorView dout) const;
  void rope(TensorView out, TensorView x, TensorView positions, float theta, bool inverse) const;
  struct AttentionOptions {
    float scale = 1.0f;
    bool causal = true;
    int64_t query_offset = 0;
    int64_t window = 0;
  };
  void attention_forward(TensorView out, TensorView lse, TensorView q, TensorView k, TensorView v, TensorView document_start,
                         AttentionOptions options) const;
  void attention_backward(TensorView dq, TensorView dk, TensorView dv, TensorView dout, TensorView q, TensorView k, TensorView v,
                          TensorView out, TensorView lse, TensorView document_start, AttentionOptions options) const;
  void gelu_forward(TensorView out, TensorView x) const;
  void gelu_backward(TensorView dx, TensorView dout, TensorView x) const;
  void swiglu_forward(TensorView out, TensorView gate, TensorView up) const;
  void swiglu_backward(TensorView dgate, TensorView dup, TensorView dout, TensorView gate, TensorView up) const;
  void classifier(TensorView logits, TensorView targets, TensorView losses, int64_t vocabulary, float gradient_scale,
                  bool write_gradient) const;
  void copy(TensorView out, TensorView x) const;
  void cast(TensorView out, TensorView x) const;
  void scale(TensorView x, float a) const;
  void axpy(TensorView y, TensorView x, float a) const;
  void lerp(TensorView out, TensorView base, TensorView x, TensorView origin, float weight) const;
  void sum(TensorView out, TensorView x, bool accumulate) const;
  void sum_of_squares(TensorView out, TensorView x, bool accumulate) const;
  void all_finite(TensorView bad, TensorView x) const;
  void random_fill(TensorView x, uint64_t seed, uint64_t stream, uint64_t offset, float low, float scale, bool normal) const;
  struct AdamwScalars {
    float lr, beta1, one_minus_beta1, beta2, one_minus_beta2, eps, weight_decay, correction1, correction2, gradient_scale;
  };
  void adamw(TensorView weight, TensorView gradient, TensorView moment1, TensorView moment2, const AdamwScalars& s) const;
  struct SgdScalars {
    float lr, momentum, weight_decay, gradient_scale;
    bool nesterov;
  };
  void sgd(TensorView weight, TensorView gradient, TensorView momentum, const SgdScalars& s) const;
  void zero(TensorView x) const;  // REQUIRES dense

 private:
  Stream* stream_;
};

}  // namespace nsp
