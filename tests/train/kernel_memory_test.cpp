// What the plan says that kernels allocate, against what they do in whole jobs.
#include "core/plan/kernel_memory.hpp"

#include <gtest/gtest.h>

#include "tests/train/counted_blocks.hpp"
#include "tests/train/llmc_tiny.hpp"

namespace nsp::test {
namespace {

LocalSettings two_steps(const std::string& family, DType dtype, int64_t context, int64_t kv_heads) {
  LocalSettings s = tiny_settings();
  const int64_t vocab = s.spec.vocab;
  s.weights = {};
  s.spec = ModelSpec::of_family(family);
  s.spec.layers = 1;
  s.spec.hidden = 256;
  s.spec.heads = 8;
  s.spec.kv_heads = kv_heads;
  s.spec.vocab = vocab;
  s.spec.context = s.context = context;
  s.dtype = dtype;
  s.threads = 2;
  s.global_batch = s.micro_batch = 2;
  s.train.steps = 2;
  s.train_data = [context] {
    TokenSourceOptions options;
    options.path = golden("llmc_tiny/dev/data/tinyshakespeare/tiny_shakespeare_train.bin");
    options.context = context;
    options.val_fraction = 0;
    return open_train(options);
  };
  return s;
}

int64_t planned_bytes(const MemoryTable& table) {
  for (const MemoryLine& line : table.lines)
    if (line.what == "kernels, at most") return line.bytes;
  return -1;
}

// The working memory of the process stays from job to job, so each of these needs more than those before it.
TEST(KernelMemory, NoJobNeedsMoreThanItsPlanSays) {
  if (!counts_blocks()) GTEST_SKIP() << "a sanitizer stands before the functions that are counted";
  for (const LocalSettings& s :
       {two_steps("gpt2", DType::f32, 64, 8), two_steps("llama", DType::f32, 512, 2), two_steps("gpt2", DType::bf16, 512, 8),
        two_steps("llama", DType::bf16, 512, 2), two_steps("llama", DType::bf16, 2048, 1)}) {
    const LocalResult result = run_local(s);
    const MemoryTable& memory = result.planned.memory();
    const int64_t planned = planned_bytes(memory), measured = most_block_bytes();
    SCOPED_TRACE(s.spec.family + " of " + std::to_string(s.context) + " tokens");
    EXPECT_GE(measured, int64_t{1} << 20);
    EXPECT_LE(measured, planned);
    EXPECT_GE(memory.host_bytes(), planned);
    // Where attention needs most, the bound for matrix products is what is loose.
    if (s.context == 2048) {
      EXPECT_LE(planned, 6 * measured);
    }
  }
}

// One worker for each of two threads: the rows of delta and dq of eight heads, and little else.
TEST(KernelMemory, AttentionBackwardInBf16NeedsItsRows) {
  BatchShape shape;
  shape.micro_batch = 2;
  shape.local_tokens = shape.tokens = 65536;
  shape.local_heads = 8;
  shape.local_kv_heads = 1;
  shape.dtype = DType::bf16;
  const ModelSpec spec = two_steps("llama", DType::bf16, 65536, 1).spec.completed();
  const int64_t rows = 2 * 4 * shape.tokens * 8 * (spec.head_dim + 1);
  const auto bytes = [&](Passes passes) { return kernel_memory(spec, shape, 2, 0, passes); };
  EXPECT_GT(bytes(Passes::forward_and_backward), rows);
  EXPECT_LT(bytes(Passes::forward_and_backward), rows + rows / 8);
  EXPECT_LT(bytes(Passes::forward), rows / 2);
  shape.dtype = DType::f32;
  EXPECT_LT(bytes(Passes::forward_and_backward), rows / 8);
}

TEST(KernelMemory, OnlyProcessorsCountAndTheirMostThreads) {
  JobPlan plan;
  plan.ranks = 4;
  plan.replica_size = 2;
  Topology topology;
  topology.ranks.resize(4);
  for (RankInfo& info : topology.ranks) info.device_kind = "cuda";
  EXPECT_TRUE(cpu_threads_by_position(plan, topology).empty());
  topology.ranks[1].device_kind = topology.ranks[3].device_kind = "cpu";
  topology.ranks[1].threads = 3;
  topology.ranks[3].threads = 8;
  EXPECT_EQ(cpu_threads_by_position(plan, topology), (std::vector<int>{0, 8}));
}

}  // namespace
}  // namespace nsp::test
