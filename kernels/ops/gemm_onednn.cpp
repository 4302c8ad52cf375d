#include <omp.h>

#include <cstring>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>
#include <vector>

#include "ops/gemm.hpp"

namespace nsp::cpu {

namespace {

using Key = std::tuple<int64_t, int64_t, int64_t, bool, bool, int64_t, int64_t, int64_t, bool, bool, bool>;

// oneDNN plans a product for as many threads as it may use when it is made; each of ours runs on one.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

dnnl::memory::desc matrix(int64_t rows, int64_t columns, bool transposed, int64_t stride, bool bf16) {
  const dnnl::memory::dims strides = transposed ? dnnl::memory::dims{1, stride} : dnnl::memory::dims{stride, 1};
  return dnnl::memory::desc({rows, columns}, bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32, strides);
}

struct Kernel {
  dnnl::matmul primitive;
  dnnl::memory::desc a, b, c, scratchpad;
};

}  // namespace

struct OnednnKernels::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::map<Key, int> index;
  std::vector<Kernel> kernels;
  int add(const Gemm& gemm);  // as prepare()
};

bool OnednnKernels::available() {
  return true;
}
namespace {
// The sets are bit masks: a wider one has all bits of those that it includes.
bool uses(dnnl::cpu_isa set) {
  const auto needed = static_cast<unsigned>(set);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}
}  // namespace
bool OnednnKernels::has_bf16() {
  return uses(dnnl::cpu_isa::avx512_core_bf16);
}
bool OnednnKernels::has_bf16_tiles() {
  return uses(dnnl::cpu_isa::avx512_core_amx);
}
OnednnKernels::OnednnKernels() : state_(std::make_unique<State>()) {}
OnednnKernels::~OnednnKernels() = default;

void OnednnKernels::make_room() {
  constexpr std::size_t kMost = 1024;
  if (state_->index.size() < kMost) return;
  state_->index.clear();
  state_->kernels.clear();
}

int OnednnKernels::prepare(const Gemm& g) {
  const Key key{g.m, g.n, g.k, g.transpose_a, g.transpose_b, g.lda, g.ldb, g.ldc, g.beta != 0.0f, g.bf16_factors, g.bf16_result};
  const auto found = state_->index.find(key);
  if (found != state_->index.end()) return found->second;
  const int result = state_->add(g);
  state_->index.emplace(key, result);
  return result;
}

int OnednnKernels::State::add(const Gemm& g) try {
  const OneThread one_thread;
  Kernel kernel;
  kernel.a = matrix(g.m, g.k, g.transpose_a, g.lda, g.bf16_factors);
  kernel.b = matrix(g.k, g.n, g.transpose_b, g.ldb, g.bf16_factors);
  kernel.c = matrix(g.m, g.n, false, g.ldc, g.bf16_result);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // several threads run one kernel at the same time
  if (g.beta != 0.0f) {
    dnnl::post_ops add;
    add.append_sum(1.0f);
    attributes.set_post_ops(add);
  }
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc description(engine, kernel.a, kernel.b, kernel.c, attributes);
#else
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(kernel.a, kernel.b, kernel.c), attributes, engine);
#endif
  if (g.bf16_factors && std::strncmp(description.impl_info_str(), "ref", 3) == 0) return -1;
  kernel.primitive = dnnl::matmul(description);
  kernel.scratchpad = description.scratchpad_desc();
  kernels.push_back(std::move(kernel));
  return static_cast<int>(kernels.size()) - 1;
} catch (const dnnl::error&) {
  if (g.bf16_factors) return -1;
  throw;
}

void OnednnKernels::run(int index, const void* a, const void* b, void* c) const {
  const OneThread one_thread;
  const Kernel& kernel = state_->kernels[static_cast<std::size_t>(index)];
  dnnl::stream stream(state_->engine);
  const dnnl::memory scratchpad(kernel.scratchpad, state_->engine);
  kernel.primitive.execute(stream, {{DNNL_ARG_SRC, dnnl::memory(kernel.a, state_->engine, const_cast<void*>(a))},
                                    {DNNL_ARG_WEIGHTS, dnnl::memory(kernel.b, state_->engine, const_cast<void*>(b))},
                                    {DNNL_ARG_DST, dnnl::memory(kernel.c, state_->engine, c)},
                                    {DNNL_ARG_SCRATCHPAD, scratchpad}});
  stream.wait();
}

}  // namespace nsp::cpu
