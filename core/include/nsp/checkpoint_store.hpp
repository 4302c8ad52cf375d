// Where checkpoints live: one transaction per step, made of one shard per writing rank and a manifest that is written last
// and makes the checkpoint exist. HDF5 on a file system (io/hdf5_store), and in memory for tests (io/memory_store).
//
// A name is a path such as "/model/blocks.0.qkv.weight". The data set of that name is the whole tensor in its global
// shape, row-major; ranks put disjoint pieces of it as (offset, count) in elements of the flattened tensor.
// Failures: Error(io) for the medium (full disk, permissions), Error(input) for a torn or corrupt checkpoint; both name the
// file and what to do. A failed or rolled-back transaction leaves earlier checkpoints as they were.
// Thread: main thread; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nsp/types.hpp"

namespace nsp {

// One piece as it lies in a shard; exchanged between ranks so that rank 0 can write the manifest.
struct PieceRecord {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // of the whole tensor
  int64_t offset = 0, count = 0;
  int rank = 0;           // whose shard
  uint64_t checksum = 0;  // of the piece's bytes (xxh64-like; the store says which)
};
// To and from bytes, for gathering over a communicator.
std::vector<char> serialize(const std::vector<PieceRecord>& pieces);
std::vector<PieceRecord> deserialize_pieces(const char* data, std::size_t bytes);

// Texts that describe the checkpoint: configuration, plan, data position, counters. Stored in the manifest.
using Attributes = std::map<std::string, std::string>;

// One rank's shard of one checkpoint. Destroying it before finish() removes what it wrote.
class ShardWriter {
 public:
  virtual ~ShardWriter() = default;
  // data: host memory, count elements, dense; read before the call returns.
  virtual void put(const std::string& name, DType dtype, const std::vector<int64_t>& shape, int64_t offset, const void* data,
                   int64_t count) = 0;
  // Makes the shard durable and returns its pieces.
  virtual std::vector<PieceRecord> finish() = 0;
};

class CheckpointReader {
 public:
  virtual ~CheckpointReader() = default;
  virtual int64_t step() const = 0;
  virtual const Attributes& attributes() const = 0;
  virtual const std::vector<PieceRecord>& pieces() const = 0;
  virtual bool has(const std::string& name) const = 0;
  virtual std::vector<int64_t> shape(const std::string& name) const = 0;  // Error(input) if absent
  // Elements [offset, offset + count) of the flattened tensor, from however many pieces. Error(input) if some are missing.
  virtual void get(const std::string& name, DType dtype, int64_t offset, int64_t count, void* out) = 0;
  // Reads every piece and compares checksums; the empty string, or what is wrong and where.
  virtual std::string verify() = 0;
};

class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;
  // Every writing rank. bytes: what the rank will put, for the check of free space (Error(io) if it cannot fit).
  // run: a short id of the run that goes into shard names.
  virtual std::unique_ptr<ShardWriter> begin(int64_t step, int rank, const std::string& run, int64_t bytes) = 0;
  // Rank 0, after all ranks finished: writes the manifest and makes it durable. From then on the checkpoint exists.
  virtual void commit(int64_t step, const std::string& run, const Attributes& attributes, const std::vector<PieceRecord>& pieces) = 0;
  // Rank 0: removes what a failed transaction left.
  virtual void rollback(int64_t step) noexcept = 0;
  // Steps with a manifest, ascending. Does not verify.
  virtual std::vector<int64_t> list() = 0;
  virtual std::unique_ptr<CheckpointReader> open(int64_t step) = 0;  // Error(input) if torn
  // Rank 0: keeps the newest `keep` and those whose step is a multiple of keep_every (0 = none); removes the others and left-overs of torn
  // ones.
  virtual void prune(int keep, int64_t keep_every) = 0;
  // Where a step lies, for messages ("runs/a/checkpoints/step_00000200").
  virtual std::string where(int64_t step) const = 0;
};

}  // namespace nsp
