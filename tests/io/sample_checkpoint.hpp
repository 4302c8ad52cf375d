// A small checkpoint whose pieces start and end in the middle of rows, written by a few ranks into any store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nsp/checkpoint_store.hpp"

namespace nsp::test {

struct SampleTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
};

inline const std::string sample_run = "r7";

// Matrices, a vector, a 4-D tensor, each element type, an empty tensor.
const std::vector<SampleTensor>& sample_tensors();
int64_t elements_in(const SampleTensor& tensor);
// The bytes of elements [lo, hi): a function of step, name and element index.
std::vector<char> sample_bytes(const SampleTensor& tensor, int64_t step, int64_t lo, int64_t hi);
// The rank's cut of each tensor: uneven, some empty.
void sample_cut(const SampleTensor& tensor, int rank, int ranks, int64_t* lo, int64_t* hi);
// Bytes that all ranks together put.
int64_t sample_size();
Attributes sample_attributes(int64_t step);

// One rank's pieces, not finished.
void put_sample(ShardWriter& shard, int64_t step, int rank, int ranks);
// begin, put, finish on every rank; returns all pieces.
std::vector<PieceRecord> write_shards(CheckpointStore& store, int64_t step, int ranks);
// And commit.
void write_sample(CheckpointStore& store, int64_t step, int ranks);
// "" or the first tensor that does not read back.
std::string compare_sample(CheckpointReader& reader, int64_t step);

}  // namespace nsp::test
