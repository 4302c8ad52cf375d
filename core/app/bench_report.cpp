#include "core/app/bench_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/device/byte_text.hpp"
#include "core/train/json_line.hpp"
#include "core/version.hpp"

namespace nsp {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kOpWidth = 18;  // "embedding_backward", the longest name of the table

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text + "  ";
}

// Characters as people see them do not matter here: all texts are ASCII.
std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string what_of(const bench::OpCase& c) {
  return c.in_family ? c.what : c.what + " *";
}

}  // namespace

BenchRow::BenchRow(const bench::OpCase& c, const bench::OpTime& time, const BenchReferences& references)
    : milliseconds(kNone), gigaflops(kNone), gigabytes(kNone), share(kNone), fma_share(kNone) {
  if (!time.supported) return;
  milliseconds = 1e3 * time.seconds;
  gigabytes = 1e-9 * c.bytes() / time.seconds;
  if (c.flops > 0) {
    gigaflops = 1e-9 * c.flops / time.seconds;
    if (references.matmul_gflops > 0) share = gigaflops / references.matmul_gflops;
    if (references.fma_gflops > 0) fma_share = gigaflops / references.fma_gflops;
  } else if (references.stream.gigabytes > 0) {
    share = gigabytes / references.stream.gigabytes;
  }
}

BenchTable::BenchTable(const std::vector<bench::OpCase>& cases) {
  for (const bench::OpCase& c : cases) {
    what_ = std::max(what_, what_of(c).size());
    shape_ = std::max(shape_, c.shape.size());
  }
}

std::string BenchTable::cells(const std::string& op, const std::string& what, const std::string& shape, const std::string& dtype) const {
  return padded(op, kOpWidth) + padded(what, what_) + padded(shape, shape_) + padded(dtype, 5);
}

std::string BenchTable::head() const {
  return cells("op", "what", "shape", "dtype") + "       over          ms          rate  share of the reference  of FMA\n";
}

std::string BenchTable::row(const bench::OpCase& c, const bench::OpTime& time, const BenchReferences& references) const {
  const std::string start = cells(op_name(c.op), what_of(c), c.shape, name_of(c.dtype));
  if (!time.supported) return start + "not supported by the backend\n";
  const BenchRow r(c, time, references);
  const bool computes = c.flops > 0;
  const std::string share = std::isnan(r.share) ? "     -" : number("%5.1f%%", 100 * r.share) + (computes ? " of matmul" : " of stream");
  const std::string fma = std::isnan(r.fma_share) ? "" : number("        %5.1f%%", 100 * r.fma_share);
  std::string over = byte_text(time.working_set);
  over.insert(0, over.size() < 9 ? 9 - over.size() : 0, ' ');
  return start + over + number("  %10.4f  ", r.milliseconds) + number("%8.1f", computes ? r.gigaflops : r.gigabytes) +
         (computes ? " GFLOP/s  " : " GB/s     ") + share + fma + "\n";
}

std::string header_text(const BenchHeader& h) {
  return "backend " + h.backend + ", " + std::to_string(h.device.threads) + (h.device.threads == 1 ? " thread" : " threads") + " on " +
         h.device.name + "; nsp " + version() + ", built as " + build_stamp() + "\nmodel " + h.model + "; micro-batch " +
         std::to_string(h.step.micro_batch) + ", context " + std::to_string(h.step.context) +
         "\nops that are judged by bytes go round over " + byte_text(h.working_set) + " or more\n";
}

std::string references_text(const BenchReferences& r) {
  const std::string matmul =
      r.matmul_gflops > 0 ? "measured matmul peak " + number("%.1f GFLOP/s", r.matmul_gflops) : std::string("no matmul peak");
  const std::string stream = r.stream.gigabytes > 0
                                 ? "measured stream rate " + number("%.1f GB/s", r.stream.gigabytes) + " (" + r.stream.by + ")"
                                 : "no stream rate";
  const std::string fma = r.fma_gflops > 0 ? "FMA peak " + number("%.1f GFLOP/s", r.fma_gflops) : std::string("no FMA peak");
  return std::string("\n") + name_of(r.dtype) + ": " + matmul + ", " + fma + ", " + stream + "\n";
}

std::string header_json(const BenchHeader& h) {
  return JsonLine()
      .add("kind", std::string("bench"))
      .add("backend", h.backend)
      .add("device", h.device.name)
      .add("threads", static_cast<int64_t>(h.device.threads))
      .add("version", std::string(version()))
      .add("build", std::string(build_stamp()))
      .add("model", h.model)
      .add("micro_batch", h.step.micro_batch)
      .add("context", h.step.context)
      .add("working_set", h.working_set)
      .text();
}

std::string references_json(const BenchReferences& r) {
  return JsonLine()
      .add("kind", std::string("reference"))
      .add("dtype", std::string(name_of(r.dtype)))
      .add("matmul_gflops", r.matmul_gflops > 0 ? r.matmul_gflops : kNone)
      .add("stream_gbytes", r.stream.gigabytes > 0 ? r.stream.gigabytes : kNone)
      .add("stream_by", r.stream.by)
      .add("fma_gflops", r.fma_gflops > 0 ? r.fma_gflops : kNone)
      .add("triad_gbytes", r.stream.triad > 0 ? r.stream.triad : kNone)
      .text();
}

std::string row_json(const bench::OpCase& c, const bench::OpTime& time, const BenchReferences& references) {
  const BenchRow r(c, time, references);
  return JsonLine()
      .add("kind", std::string("op"))
      .add("op", op_name(c.op))
      .add("what", c.what)
      .add("shape", c.shape)
      .add("dtype", std::string(name_of(c.dtype)))
      .add("in_family", c.in_family)
      .add("supported", time.supported)
      .add("ms", r.milliseconds)
      .add("flops", c.flops > 0 ? c.flops : kNone)
      .add("bytes", time.supported ? c.bytes() : kNone)
      .add("gflops", r.gigaflops)
      .add("gbytes", r.gigabytes)
      .add("share", r.share)
      .add("fma_share", r.fma_share)
      .add("reference", std::string(c.flops > 0 ? "matmul" : "stream"))
      .add("working_set", time.working_set)
      .add("samples", time.samples)
      .add("calls", time.calls)
      .text();
}

}  // namespace nsp
