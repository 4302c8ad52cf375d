#include "core/bench/operand_data.hpp"

#include <algorithm>

#include "core/device/byte_text.hpp"
#include "nsp/bf16.hpp"

namespace nsp::bench {
namespace {

constexpr int64_t kAlign = 256;  // bytes, of each tensor
constexpr int64_t kMostSets = 4096;
constexpr int64_t kBlock = 1 << 18;  // numbers that are made once and copied again and again

int64_t room_for(const Operand& operand) {
  return (operand.bytes() + kAlign - 1) / kAlign * kAlign;
}

// splitmix64 (Steele et al., OOPSLA 2014): a number that looks random for each i.
uint64_t mixed(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

TensorView view_of(void* data, const Operand& operand) {
  const std::vector<int64_t>& s = operand.sizes;
  NSP_REQUIRE(!s.empty() && s.size() <= 4, "a tensor of a benchmark has one to four dimensions");
  if (s.size() == 1) return TensorView(data, operand.dtype, {s[0]});
  if (s.size() == 2) return TensorView(data, operand.dtype, {s[0], s[1]});
  if (s.size() == 3) return TensorView(data, operand.dtype, {s[0], s[1], s[2]});
  return TensorView(data, operand.dtype, {s[0], s[1], s[2], s[3]});
}

// Fills tensors from blocks on the host; the blocks live until finish().
class Filler {
 public:
  explicit Filler(Stream& stream) : stream_(stream) {}

  void fill(const TensorView& tensor, const Operand& operand) {
    if (operand.fill == Fill::zeros) {
      stream_.fill(tensor.data(), 0, tensor.bytes());
    } else if (tensor.dtype() == DType::i32) {
      fill_indices(tensor, operand);
    } else {
      fill_numbers(tensor, operand.fill);
    }
  }

 private:
  void fill_indices(const TensorView& tensor, const Operand& operand) {
    std::vector<int32_t>& values = indices_.emplace_back(static_cast<std::size_t>(tensor.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const uint64_t number = operand.fill == Fill::positions ? i : mixed(drawn_++);
      values[i] = static_cast<int32_t>(number % static_cast<uint64_t>(operand.below));
    }
    stream_.copy(tensor.data(), values.data(), tensor.bytes());
  }

  void fill_numbers(const TensorView& tensor, Fill fill) {
    NSP_REQUIRE(tensor.dtype() == DType::f32 || tensor.dtype() == DType::bf16, "numbers of a benchmark are fp32 or bf16");
    const std::vector<char>& block = block_of(tensor.dtype(), fill == Fill::positive ? 0.5f : -0.5f);
    const auto length = static_cast<int64_t>(block.size());
    for (int64_t at = 0; at < tensor.bytes(); at += length)
      stream_.copy(static_cast<char*>(tensor.data()) + at, block.data(), std::min(length, tensor.bytes() - at));
  }

  const std::vector<char>& block_of(DType dtype, float low) {
    std::vector<char>& block = blocks_[dtype == DType::bf16 ? 1 : 0][low > 0 ? 1 : 0];
    if (!block.empty()) return block;
    block.resize(kBlock * size_of(dtype));
    for (int64_t i = 0; i < kBlock; ++i) {
      const float value = low + static_cast<float>(mixed(static_cast<uint64_t>(i)) >> 40) * 0x1p-24f;
      if (dtype == DType::f32)
        reinterpret_cast<float*>(block.data())[i] = value;
      else
        reinterpret_cast<uint16_t*>(block.data())[i] = to_bf16(value);
    }
    return block;
  }

  Stream& stream_;
  uint64_t drawn_ = 0;
  std::vector<char> blocks_[2][2];
  std::vector<std::vector<int32_t>> indices_;
};

int64_t sets_for(int64_t of_a_set, int64_t working_set) {
  return std::clamp<int64_t>((working_set + of_a_set - 1) / std::max<int64_t>(of_a_set, 1), 1, kMostSets);
}

}  // namespace

void finish(Stream& stream) {
  Event event(stream.device(), "benchmark");
  event.record(stream);
  while (!event.wait_for(1000000)) {
  }
}

OperandData::OperandData(Stream& stream, const OpCase& op_case, int64_t working_set) : stream_(stream) {
  int64_t common = 0, own = 0, data = 0;  // data: own without what aligns it
  for (const Operand& operand : op_case.operands) {
    (operand.shared ? common : own) += room_for(operand);
    if (!operand.shared) data += operand.bytes();
  }
  const int64_t sets = sets_for(data, working_set), bytes = common + sets * own;
  if (const int64_t free = stream.device().info().memory_free; bytes > free)
    throw Error(ErrorKind::memory, op_name(op_case.op) + " (" + op_case.what + ") needs " + byte_text(bytes) +
                                       " of memory. The device has " + byte_text(free) +
                                       " left. Give a smaller --working-set, --train.micro_batch or model.");
  buffer_ = Buffer(stream.device(), bytes, MemoryKind::device, "benchmark of " + op_name(op_case.op));
  Filler filler(stream);
  char* next = static_cast<char*>(buffer_.data());
  const auto place = [&](const Operand& operand) {
    const TensorView view = view_of(next, operand);
    filler.fill(view, operand);
    next += room_for(operand);
    return view;
  };
  std::vector<TensorView> first(op_case.operands.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    if (op_case.operands[i].shared) first[i] = place(op_case.operands[i]);
  for (int64_t s = 0; s < sets; ++s) {
    views_.push_back(first);
    for (std::size_t i = 0; i < first.size(); ++i)
      if (!op_case.operands[i].shared) views_.back()[i] = place(op_case.operands[i]);
  }
  finish(stream);
}

OperandData::~OperandData() {
  try {
    finish(stream_);
  } catch (const std::exception&) {  // the device has failed, and whoever waited for it has said so
  }
}

}  // namespace nsp::bench
