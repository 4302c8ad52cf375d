#include "sample_checkpoint.hpp"

#include <algorithm>
#include <cstring>

namespace nsp::test {
namespace {

// Values are small whole numbers, so that every type holds them exactly and a script can repeat the rule.
int64_t sample_value(const SampleTensor& tensor, int64_t step, int64_t i) {
  return (i * 7 + static_cast<int64_t>(tensor.name.size()) * 3 + step) % 251;
}

uint16_t bf16_bits(float value) {  // exact for whole numbers below 256
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

template <class T>
void store_as(char* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

}  // namespace

const std::vector<SampleTensor>& sample_tensors() {
  static const std::vector<SampleTensor> tensors = {
      {"/model/embedding.wte", DType::f32, {50, 8}},
      {"/model/blocks.0.ln1.weight", DType::f32, {8}},
      {"/model/blocks.0.mixer", DType::f32, {3, 4, 5, 6}},
      {"/model/half", DType::bf16, {9, 7}},
      {"/state/adamw.m/embedding.wte", DType::f64, {50, 8}},
      {"/replica_0000/count", DType::i64, {1}},
      {"/replica_0001/count", DType::i32, {3}},
      {"/replica_0001/flags", DType::u8, {5, 3}},
      {"/state/none", DType::f32, {0, 4}},
  };
  return tensors;
}

int64_t elements_in(const SampleTensor& tensor) {
  int64_t n = 1;
  for (int64_t size : tensor.shape) n *= size;
  return n;
}

std::vector<char> sample_bytes(const SampleTensor& tensor, int64_t step, int64_t lo, int64_t hi) {
  const std::size_t size = size_of(tensor.dtype);
  std::vector<char> bytes(static_cast<std::size_t>(hi - lo) * size);
  for (int64_t i = lo; i < hi; ++i) {
    char* out = bytes.data() + static_cast<std::size_t>(i - lo) * size;
    const int64_t value = sample_value(tensor, step, i);
    switch (tensor.dtype) {
      case DType::f32:
        store_as(out, static_cast<float>(value));
        break;
      case DType::bf16:
        store_as(out, bf16_bits(static_cast<float>(value)));
        break;
      case DType::f64:
        store_as(out, static_cast<double>(value));
        break;
      case DType::i32:
        store_as(out, static_cast<int32_t>(value));
        break;
      case DType::u8:
        store_as(out, static_cast<uint8_t>(value));
        break;
      case DType::i64:
        store_as(out, value);
        break;
    }
  }
  return bytes;
}

void sample_cut(const SampleTensor& tensor, int rank, int ranks, int64_t* lo, int64_t* hi) {
  const int64_t n = elements_in(tensor);
  const auto cut = [&](int64_t r) { return r == 0 ? 0 : r == ranks ? n : std::min(n, n * r / ranks + 3); };  // + 3: not at row borders
  *lo = cut(rank), *hi = cut(rank + 1);
}

int64_t sample_size() {
  int64_t bytes = 0;
  for (const SampleTensor& tensor : sample_tensors()) bytes += elements_in(tensor) * static_cast<int64_t>(size_of(tensor.dtype));
  return bytes;
}

Attributes sample_attributes(int64_t step) {
  return {{"config", "[model]\nlayers = 1\n"}, {"empty", ""},       {"plan/values 100%", "a"}, {".", "dot"}, {"step", std::to_string(step)},
          {"long", std::string(200000, 'x')},  {"text", "\xc3\xa4"}};
}

void put_sample(ShardWriter& shard, int64_t step, int rank, int ranks) {
  for (const SampleTensor& tensor : sample_tensors()) {
    int64_t lo = 0, hi = 0;
    sample_cut(tensor, rank, ranks, &lo, &hi);
    const std::vector<char> bytes = sample_bytes(tensor, step, lo, hi);
    shard.put(tensor.name, tensor.dtype, tensor.shape, lo, bytes.data(), hi - lo);
  }
}

std::vector<PieceRecord> write_shards(CheckpointStore& store, int64_t step, int ranks) {
  std::vector<PieceRecord> all;
  for (int rank = 0; rank < ranks; ++rank) {
    auto shard = store.begin(step, rank, sample_run, sample_size());
    put_sample(*shard, step, rank, ranks);
    const std::vector<PieceRecord> pieces = shard->finish();
    const std::vector<char> sent = serialize(pieces);  // as a communicator would carry it
    const std::vector<PieceRecord> got = deserialize_pieces(sent.data(), sent.size());
    all.insert(all.end(), got.begin(), got.end());
  }
  return all;
}

void write_sample(CheckpointStore& store, int64_t step, int ranks) {
  store.commit(step, sample_run, sample_attributes(step), write_shards(store, step, ranks));
}

std::string compare_sample(CheckpointReader& reader, int64_t step) {
  for (const SampleTensor& tensor : sample_tensors()) {
    const int64_t n = elements_in(tensor);
    if (!reader.has(tensor.name) || reader.shape(tensor.name) != tensor.shape) return tensor.name + ": shape";
    const std::vector<char> expected = sample_bytes(tensor, step, 0, n);
    std::vector<char> got(expected.size() + 1, '#');  // one more: nothing is written beyond
    reader.get(tensor.name, tensor.dtype, 0, n, got.data());
    if (got.back() != '#' || !std::equal(expected.begin(), expected.end(), got.begin())) return tensor.name + ": values";
  }
  return {};
}

}  // namespace nsp::test
