#include "core/bench/op_case.hpp"

#include <algorithm>

namespace nsp::bench {

int64_t Operand::elements() const {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return n;
}

int64_t Operand::bytes() const {
  return elements() * static_cast<int64_t>(size_of(dtype));
}

int64_t Operand::moved() const {
  const int64_t once = (touched < 0 ? elements() : touched) * static_cast<int64_t>(size_of(dtype));
  return access == Access::update ? 2 * once : once;
}

double OpCase::bytes() const {
  double sum = 0;
  for (const Operand& operand : operands) sum += static_cast<double>(operand.moved());
  return sum;
}

int64_t range_elements(const ModelSpec& spec) {
  return std::min<int64_t>(spec.parameters(), int64_t{1} << 24);
}

double matmul_flops(int64_t m, int64_t n, int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

double attention_pairs(int64_t tokens, int64_t window) {
  const double t = static_cast<double>(tokens), w = static_cast<double>(window > 0 ? std::min(window, tokens) : tokens);
  return w * (w + 1) / 2 + (t - w) * w;
}

double attention_forward_flops(const StepShape& step) {
  return 4.0 * static_cast<double>(step.micro_batch * step.spec.attention_width()) * attention_pairs(step.context, step.spec.window);
}

double attention_backward_flops(const StepShape& step) {
  return 2.5 * attention_forward_flops(step);
}

std::vector<OpCase> op_cases(const StepShape& step, DType dtype) {
  std::vector<OpCase> cases;
  add_layer_cases(&cases, step, dtype);
  add_matrix_cases(&cases, step, dtype);
  add_range_cases(&cases, step, dtype);
  std::stable_sort(cases.begin(), cases.end(), [](const OpCase& a, const OpCase& b) { return a.op < b.op; });
  return cases;
}

std::string shape_of(const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t size : sizes) {
    if (!text.empty()) text += 'x';
    text += std::to_string(size);
  }
  return text;
}

}  // namespace nsp::bench
