#include "bench.hpp"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <stdexcept>

#include "tests/support/module_file.hpp"

namespace nsp_ops {

namespace {

constexpr unsigned char kCanary = 0xff;  // NaN as fp32, bf16 and fp64

struct Found {
  Found() = default;
  ~Found() {
    for (const Backend& backend : backends) backend.table->close(backend.device);
  }
  Found(const Found&) = delete;
  Found& operator=(const Found&) = delete;
  std::vector<Backend> backends;
  std::vector<std::string> refusals;
};

void load(const std::string& path, Found& found) {
  if (!nsp::test::module_runs_here(path.substr(path.rfind('/') + 1))) {
    found.refusals.push_back(path + ": for another processor");
    return;
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    found.refusals.push_back(path + ": " + dlerror());
    return;
  }
  const auto* plugin = static_cast<const nsp_plugin_v1*>(dlsym(handle, "nsp_plugin"));
  if (plugin == nullptr || plugin->magic != NSP_PLUGIN_MAGIC || std::string(plugin->kind) != "backend") {
    found.refusals.push_back(path + ": not a backend");
    return;
  }
  char reason[256] = "";
  if (plugin->probe != nullptr && plugin->probe(reason, sizeof reason) <= 0) {
    found.refusals.push_back(path + ": " + reason);
    return;
  }
  Backend backend{plugin->name, static_cast<const nsp_backend*>(plugin->create(nullptr)), nullptr};
  // Each module has another number of threads, so that the comparison of modules is one of thread counts as well.
  const int threads = compute_threads() + static_cast<int>(found.backends.size());
  const nsp_device_config config{sizeof(nsp_device_config), threads, 0};
  if (backend.table->open(0, &config, &backend.device) != NSP_OK) {
    found.refusals.push_back(path + ": " + backend.table->last_error(nullptr));
    return;
  }
  found.backends.push_back(backend);
}

void find_all(Found& found) {
  const char* path = std::getenv("NSP_PLUGIN_PATH");
  std::stringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    glob_t files{};
    if (glob((folder + "/libnsp_backend_*.so").c_str(), 0, nullptr, &files) == 0) {
      for (std::size_t i = 0; i < files.gl_pathc; ++i) load(files.gl_pathv[i], found);
    }
    globfree(&files);
  }
}

const Found& all() {
  struct FoundOnce : Found {
    FoundOnce() { find_all(*this); }
  };
  static const FoundOnce found;
  return found;
}

std::size_t bytes_of(int32_t dtype) {
  switch (dtype) {
    case NSP_F32:
    case NSP_I32:
      return 4;
    case NSP_BF16:
      return 2;
    case NSP_F64:
    case NSP_I64:
      return 8;
    default:
      return 1;
  }
}

template <class T>
void store(unsigned char* at, double value) {
  const T typed = static_cast<T>(value);
  std::memcpy(at, &typed, sizeof typed);
}
template <class T>
double fetch(const unsigned char* at) {
  T typed;
  std::memcpy(&typed, at, sizeof typed);
  return static_cast<double>(typed);
}

void encode(unsigned char* at, int32_t dtype, double value) {
  switch (dtype) {
    case NSP_F32:
      return store<float>(at, value);
    case NSP_F64:
      return store<double>(at, value);
    case NSP_I32:
      return store<int32_t>(at, value);
    case NSP_I64:
      return store<int64_t>(at, value);
    case NSP_U8:
      return store<uint8_t>(at, value);
    default: {  // bf16: the upper half of an fp32; tests give values that it holds exactly
      const float wide = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &wide, sizeof bits);
      return store<uint16_t>(at, static_cast<double>(bits >> 16));
    }
  }
}

double decode(const unsigned char* at, int32_t dtype) {
  switch (dtype) {
    case NSP_F32:
      return fetch<float>(at);
    case NSP_F64:
      return fetch<double>(at);
    case NSP_I32:
      return fetch<int32_t>(at);
    case NSP_I64:
      return fetch<int64_t>(at);
    case NSP_U8:
      return fetch<uint8_t>(at);
    default: {
      const uint32_t bits = static_cast<uint32_t>(fetch<uint16_t>(at)) << 16;
      float wide;
      std::memcpy(&wide, &bits, sizeof wide);
      return static_cast<double>(wide);
    }
  }
}

// f(logical index, element offset) for all elements.
void for_each_element(const nsp_tensor& t, const std::function<void(std::size_t, int64_t)>& f) {
  int64_t n = 1;
  for (int32_t d = 0; d < t.rank; ++d) n *= t.size[d];
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, at = 0;
    for (int32_t d = t.rank - 1; d >= 0; --d) {
      at += rest % t.size[d] * t.stride[d];
      rest /= t.size[d];
    }
    f(static_cast<std::size_t>(i), at);
  }
}

}  // namespace

int compute_threads() {
  const char* text = std::getenv("NSP_OPS_THREADS");
  return text == nullptr ? 2 : std::atoi(text);
}

const std::vector<Backend>& backends() {
  return all().backends;
}
const std::vector<std::string>& refusals() {
  return all().refusals;
}

float rounded(float value, nsp_dtype dtype) {
  if (dtype != NSP_BF16 || std::isnan(value)) return value;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t low = bits & 0xffffu, odd = (bits >> 16) & 1u;
  bits -= low;
  if (low > 0x8000u || (low == 0x8000u && odd == 1u)) bits += 0x10000u;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

Array stored(Array a, nsp_dtype dtype) {
  for (double& x : a.v) x = static_cast<double>(rounded(static_cast<float>(x), dtype));
  return a;
}

std::vector<int64_t> gapped_strides(const std::vector<int64_t>& shape, int64_t gap) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d] + gap;
  return strides;
}

Bench::Bench(const Backend& backend) : backend_(backend) {
  if (table().stream_create(device(), &stream_) != NSP_OK) throw std::runtime_error("no stream: " + error());
}

Bench::~Bench() {
  table().stream_destroy(stream_);
  for (const auto& placed : placed_) table().release(device(), placed->t.data, NSP_MEMORY_DEVICE);
}

Placed& Bench::place(const std::vector<int64_t>& shape, nsp_dtype dtype, const std::vector<int64_t>& strides) {
  auto placed = std::make_unique<Placed>();
  placed->t.dtype = dtype;
  placed->t.rank = static_cast<int32_t>(shape.size());
  int64_t last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    placed->t.size[d] = shape[d];
    placed->t.stride[d] = strides[d];
    last += (shape[d] - 1) * strides[d];
  }
  placed->bytes = Array::count(shape) == 0 ? 0 : (last + 1) * static_cast<int64_t>(bytes_of(dtype));
  if (table().allocate(device(), static_cast<uint64_t>(placed->bytes), NSP_MEMORY_DEVICE, &placed->t.data) != NSP_OK) {
    throw std::runtime_error("no memory: " + error());
  }
  placed_.push_back(std::move(placed));
  return *placed_.back();
}

nsp_tensor Bench::in(const Array& a, nsp_dtype dtype, int64_t gap) {
  return in_strided(a, dtype, gapped_strides(a.shape, gap));
}

nsp_tensor Bench::in_strided(const Array& a, nsp_dtype dtype, const std::vector<int64_t>& strides) {
  Placed& placed = place(a.shape, dtype, strides);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(placed.bytes), kCanary);
  const std::size_t width = bytes_of(dtype);
  for_each_element(placed.t, [&](std::size_t i, int64_t at) { encode(&bytes[static_cast<std::size_t>(at) * width], dtype, a.v[i]); });
  EXPECT_EQ(table().copy(stream_, placed.t.data, bytes.data(), bytes.size()), NSP_OK) << error();
  wait();  // `bytes` goes out of scope
  return placed.t;
}

nsp_tensor Bench::out(const std::vector<int64_t>& shape, nsp_dtype dtype, int64_t gap) {
  return out_strided(shape, dtype, gapped_strides(shape, gap));
}

nsp_tensor Bench::out_strided(const std::vector<int64_t>& shape, nsp_dtype dtype, const std::vector<int64_t>& strides) {
  Placed& placed = place(shape, dtype, strides);
  EXPECT_EQ(table().fill(stream_, placed.t.data, kCanary, static_cast<uint64_t>(placed.bytes)), NSP_OK) << error();
  return placed.t;
}

void Bench::wait() {
  nsp_event* event = nullptr;
  ASSERT_EQ(table().event_create(device(), &event), NSP_OK) << error();
  EXPECT_EQ(table().event_record(stream_, event), NSP_OK) << error();
  int32_t reached = 0;
  while (reached == 0) reached = table().event_wait(event, 1000000);
  EXPECT_EQ(reached, 1) << error();
  table().event_destroy(event);
}

const Placed& Bench::find(const nsp_tensor& t) const {
  for (const auto& placed : placed_) {
    if (placed->t.data == t.data) return *placed;
  }
  throw std::logic_error("read: that tensor is not of this bench");
}

std::vector<unsigned char> Bench::download(const Placed& placed) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(placed.bytes));
  EXPECT_EQ(table().copy(stream_, bytes.data(), placed.t.data, bytes.size()), NSP_OK) << error();
  wait();
  for (unsigned char byte : bytes) hash_ = (hash_ ^ byte) * 1099511628211ull;
  return bytes;
}

Array Bench::read(const nsp_tensor& t) {
  const Placed& placed = find(t);
  const std::vector<unsigned char> bytes = download(placed);
  Array result(std::vector<int64_t>(t.size, t.size + t.rank));
  const std::size_t width = bytes_of(t.dtype);
  std::vector<bool> used(bytes.size());
  for_each_element(t, [&](std::size_t i, int64_t at) {
    const std::size_t first = static_cast<std::size_t>(at) * width;
    result.v[i] = decode(&bytes[first], t.dtype);
    for (std::size_t b = 0; b < width; ++b) used[first + b] = true;
  });
  for (std::size_t b = 0; b < bytes.size(); ++b) {
    if (!used[b] && bytes[b] != kCanary) {
      ADD_FAILURE() << "byte " << b << " between the rows of a tensor was written";
      break;
    }
  }
  return result;
}

std::vector<uint32_t> Bench::read_bits(const nsp_tensor& t) {
  const std::vector<unsigned char> bytes = download(find(t));
  const std::size_t width = bytes_of(t.dtype);
  std::vector<uint32_t> result(bytes.size() / width);
  for (std::size_t i = 0; i < result.size(); ++i) {  // bf16 is the upper half of an fp32, which is the last one here
    std::memcpy(reinterpret_cast<unsigned char*>(&result[i]) + (4 - width), &bytes[i * width], width);
  }
  return result;
}

}  // namespace nsp_ops
