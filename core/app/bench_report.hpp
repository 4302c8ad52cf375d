// What `nsp_app bench ops` prints: an aligned table, or one JSON object a line.
#pragma once

#include <string>
#include <vector>

#include "core/bench/measure.hpp"
#include "core/bench/reference.hpp"

namespace nsp {

// What the shares are of. Of one dtype; the stream rate is the same for all.
struct BenchReferences {
  DType dtype = DType::f32;
  double matmul_gflops = 0;  // 0 = not measured
  double fma_gflops = 0;     // the same
  bench::StreamRate stream;
};

struct BenchHeader {
  DeviceInfo device;
  std::string backend, model;  // "cpu_native"; "gpt2, 12 layers of 768"
  bench::StepShape step;
  int64_t working_set = 0;
};

// A measured call beside its reference. Fields that do not apply are NaN; JsonLine writes null for them.
struct BenchRow {
  BenchRow(const bench::OpCase& op_case, const bench::OpTime& time, const BenchReferences& references);
  double milliseconds, gigaflops, gigabytes;
  double share, fma_share;  // 1 = the reference itself, the FMA peak itself
};

// Rows are printed as they are measured, so widths come from the cases.
class BenchTable {
 public:
  explicit BenchTable(const std::vector<bench::OpCase>& cases);
  std::string head() const;
  std::string row(const bench::OpCase& op_case, const bench::OpTime& time, const BenchReferences& references) const;

 private:
  std::string cells(const std::string& op, const std::string& what, const std::string& shape, const std::string& dtype) const;
  std::size_t what_ = 0, shape_ = 0;
};

std::string header_text(const BenchHeader& header);
std::string references_text(const BenchReferences& references);

// One JSON object each, without the newline: kinds "bench", "reference" and "op".
std::string header_json(const BenchHeader& header);
std::string references_json(const BenchReferences& references);
std::string row_json(const bench::OpCase& op_case, const bench::OpTime& time, const BenchReferences& references);

}  // namespace nsp
