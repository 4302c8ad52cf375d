// Runs the table of cases on every backend that was found.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "cases.hpp"

namespace nsp_ops {

const Cases& all_cases() {
  static const Cases cases = [] {
    Cases c;
    for (auto add : {add_embedding_cases, add_norm_cases, add_matmul_cases, add_rope_cases, add_attention_cases, add_activation_cases,
                     add_classifier_cases, add_copy_cases, add_bits_cases, add_reduce_cases, add_random_cases}) {
      add(c);
    }
    return c;
  }();
  return cases;
}

namespace {

constexpr const char* kOpNames[] = {
#define NSP_NAME(name, tensors) #name,
    NSP_OP_LIST(NSP_NAME)
#undef NSP_NAME
};

struct CaseRun {
  const Backend* backend;
  const Case* test;
};

std::vector<CaseRun> all_runs() {
  std::vector<CaseRun> runs;
  for (const Backend& backend : backends()) {
    for (const Case& test : all_cases()) runs.push_back({&backend, &test});
  }
  return runs;
}

class Ops : public testing::TestWithParam<CaseRun> {};

TEST_P(Ops, AgreesWithTheReference) {
  const CaseRun& run = GetParam();
  if (!run.backend->table->supports(run.backend->device, run.test->op, run.test->dtype)) GTEST_SKIP() << "not supported by this backend";
  Bench bench(*run.backend);
  run.test->run(bench);
}

INSTANTIATE_TEST_SUITE_P(All, Ops, testing::ValuesIn(all_runs()), [](const testing::TestParamInfo<CaseRun>& info) {
  return info.param.backend->name + "_" + info.param.test->name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Ops);

TEST(Suite, FindsABackend) {
  std::string text;
  for (const std::string& refusal : refusals()) text += refusal + "\n";
  ASSERT_FALSE(backends().empty()) << "NSP_PLUGIN_PATH holds no libnsp_backend_*.so that runs here\n" << text;
}

TEST(Suite, CoversEveryOp) {
  std::set<std::pair<int, int>> covered;  // op and dtype
  for (const Case& test : all_cases()) covered.emplace(test.op, test.dtype);
  for (int op = 0; op < NSP_OP_COUNT; ++op) {
    EXPECT_TRUE(covered.count({op, NSP_F32})) << "no case for the op " << kOpNames[op];
    for (const Backend& backend : backends()) {
      if (!backend.table->supports(backend.device, op, NSP_BF16)) continue;
      EXPECT_TRUE(covered.count({op, NSP_BF16})) << "no case for the op " << kOpNames[op] << " in bf16, which " << backend.name << " has";
    }
  }
}

TEST(Suite, ProcessorBackendsHaveEveryOp) {
  for (const Backend& backend : backends()) {
    if (backend.name.rfind("cpu", 0) != 0) continue;
    ASSERT_GE(backend.table->ops->size, sizeof(nsp_op_table));
    for (int op = 0; op < NSP_OP_COUNT; ++op) {
      EXPECT_TRUE(backend.table->supports(backend.device, op, NSP_F32)) << kOpNames[op];
      // Updates are made on master weights.
      const bool bf16 = op != NSP_OP_adamw && op != NSP_OP_sgd;
      EXPECT_EQ(backend.table->supports(backend.device, op, NSP_BF16) != 0, bf16) << kOpNames[op];
    }
  }
}

// Not a test by itself: prints a hash of the results of every case, for the test below.
TEST(Bits, DISABLED_Print) {
  for (const CaseRun& run : all_runs()) {
    Bench bench(*run.backend);
    run.test->run(bench);
    std::printf("HASH %s %s %016llx\n", run.backend->name.c_str(), run.test->name.c_str(), static_cast<unsigned long long>(bench.hash()));
  }
}

std::map<std::string, std::string> hashes_with_threads(int threads) {
  const std::string command = "NSP_OPS_THREADS=" + std::to_string(threads) + " /proc/" + std::to_string(getpid()) +
                              "/exe --gtest_also_run_disabled_tests --gtest_filter=Bits.DISABLED_Print";
  std::map<std::string, std::string> result;
  FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) return result;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), line.size(), output) != nullptr) {
    std::array<char, 128> backend{}, test{}, hash{};
    if (std::sscanf(line.data(), "HASH %127s %127s %127s", backend.data(), test.data(), hash.data()) == 3) {
      result[std::string(backend.data()) + " " + test.data()] = hash.data();
    }
  }
  pclose(output);
  return result;
}

TEST(Bits, DoNotDependOnTheNumberOfThreads) {
  const auto one = hashes_with_threads(1), three = hashes_with_threads(3);
  ASSERT_EQ(one.size(), all_runs().size());
  EXPECT_EQ(one, three);
}

}  // namespace
}  // namespace nsp_ops
