// nsp_app bench ops: every op in every dtype, in words and in JSON, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "nsp/backend.h"
#include "tests/cli/bad_input_case.hpp"

namespace nsp::test {
namespace {

const std::string kModel =
    "$NSP bench ops --working-set 64k --train.micro_batch 2 --train.threads 1 "
    "--model.layers 1 --model.hidden 16 --model.heads 2 --model.ffn 32 --model.vocab 50 --model.context 8 ";
const std::string kBench = kModel + "--seconds 0.001 ";

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names = {
#define NSP_OP_NAME(name, tensors) #name,
      NSP_OP_LIST(NSP_OP_NAME)
#undef NSP_OP_NAME
  };
  return names;
}

// The members of one object without nesting, as text; fails the test on what is no such object.
std::map<std::string, std::string> members_of(const std::string& line) {
  std::map<std::string, std::string> members;
  std::size_t at = 0;
  const auto fail = [&] {
    ADD_FAILURE() << "no JSON at " << at << ": " << line;
    return members;
  };
  const auto quoted = [&](std::string* text) {
    if (at >= line.size() || line[at] != '"') return false;
    const std::size_t end = line.find('"', at + 1);
    if (end == std::string::npos) return false;
    *text = line.substr(at + 1, end - at - 1);
    at = end + 1;
    return true;
  };
  for (char next = '{'; at < line.size() && line[at] == next; next = ',') {
    ++at;
    std::string key, value;
    if (!quoted(&key) || line[at++] != ':') return fail();
    if (!quoted(&value)) {
      const std::size_t end = line.find_first_of(",}", at);
      if (end == std::string::npos) return fail();
      value = line.substr(at, end - at);
      at = end;
      char* rest = nullptr;
      std::strtod(value.c_str(), &rest);
      if (value.empty() || (*rest != 0 && value != "null" && value != "true" && value != "false")) return fail();
    }
    if (!members.emplace(key, value).second) return fail();
  }
  return line.substr(at) == "}" ? members : fail();
}

std::vector<std::map<std::string, std::string>> objects(const Said& said) {
  EXPECT_EQ(said.code, 0) << said.out;
  std::vector<std::map<std::string, std::string>> all;
  std::istringstream lines(said.out);
  for (std::string line; std::getline(lines, line);) all.push_back(members_of(line));
  return all;
}

bool positive(const std::string& number) {
  const double value = std::strtod(number.c_str(), nullptr);
  return std::isfinite(value) && value > 0;
}

TEST(Bench, JsonHasEveryOpInEveryDtype) {
  for (const char* family : {"gpt2", "llama"}) {
    std::set<std::string> measured, missing;
    std::map<std::string, bool> has_fma;
    int headers = 0, references = 0;
    for (auto& o : objects(run(kBench + "--json --all-dtypes --model.family " + family))) {
      headers += o["kind"] == "bench";
      references += o["kind"] == "reference" && positive(o["matmul_gflops"]) && positive(o["stream_gbytes"]) && positive(o["triad_gbytes"]);
      if (o["kind"] == "reference") has_fma[o["dtype"]] = positive(o["fma_gflops"]);
      if (o["kind"] != "op") continue;
      const std::string name = o["op"] + " " + o["dtype"];
      if (o["supported"] != "true") {
        missing.insert(name);
        EXPECT_EQ(o["ms"] + o["share"] + o["gbytes"], "nullnullnull") << name;
        continue;
      }
      measured.insert(name);
      for (const char* key : {"ms", "bytes", "gbytes", "share", "working_set", "calls"})
        EXPECT_TRUE(positive(o[key])) << key << " of " << name;
      EXPECT_GE(std::atoi(o["samples"].c_str()), 5) << name;
      EXPECT_EQ(positive(o["gflops"]), o["reference"] == "matmul") << name;
      EXPECT_EQ(positive(o["fma_share"]), o["reference"] == "matmul" && has_fma[o["dtype"]]) << name;
    }
    EXPECT_EQ(headers, 1);
    EXPECT_EQ(references, 2);
    EXPECT_TRUE(has_fma["fp32"]);  // not every processor has one for bf16
    EXPECT_EQ(missing, (std::set<std::string>{"adamw bf16", "sgd bf16"}));
    for (const std::string& op : op_names())
      for (const char* dtype : {" fp32", " bf16"}) EXPECT_TRUE(measured.count(op + dtype) + missing.count(op + dtype) == 1) << op << dtype;
  }
}

TEST(Bench, TableHasEveryOpOfTheDtype) {
  for (const std::string dtype : {"fp32", "bf16"}) {
    const Said said = run(kBench + "--train.dtype " + dtype);
    ASSERT_EQ(said.code, 0) << said.out;
    for (const std::string& op : op_names()) EXPECT_TRUE(said.contains("\n" + op + " ")) << op << "\n" << said.out;
    EXPECT_TRUE(said.contains("backend cpu_") && said.contains("1 thread on ") && said.contains("built as ")) << said.out;
    EXPECT_TRUE(said.contains(dtype + ": measured matmul peak ") && said.contains("FMA peak") && said.contains("measured stream rate "))
        << said.out;
    EXPECT_TRUE(said.contains("% of matmul") && said.contains("% of stream")) << said.out;
    EXPECT_EQ(said.count("not supported by the backend"), dtype == "bf16" ? 2 : 0) << said.out;
    EXPECT_FALSE(said.contains(dtype == "bf16" ? "  fp32 " : "  bf16 ")) << said.out;
    EXPECT_TRUE(said.contains("16x48x16") && said.contains("B2 T8 H2 D8")) << said.out;  // the shapes of this model
    EXPECT_TRUE(said.contains("norm * ") && said.contains("\n* not an op of this model")) << said.out;
  }
}

TEST(Bench, OnlySomeOps) {
  const Said some = run(kBench + "--only adamw,matmul");
  EXPECT_EQ(some.code, 0);
  for (const std::string& op : op_names())
    EXPECT_EQ(some.contains("\n" + op + " "), op == "adamw" || op == "matmul") << op << "\n" << some.out;
  EXPECT_FALSE(some.contains("not an op of this model")) << some.out;
  const Said none = run(kBench + "--only references");
  EXPECT_EQ(none.code, 0);
  EXPECT_TRUE(none.contains("fp32: measured matmul peak ")) << none.out;
  EXPECT_FALSE(none.contains("share of the reference")) << none.out;
  EXPECT_EQ(objects(run(kBench + "--json --all-dtypes --only references")).size(), 3u);  // the header and a line for each dtype
}

TEST(Bench, Refusals) {
  expect_refusal(run("$NSP bench"), 2, {"Nothing follows it"}, "nsp_app bench ops");
  expect_refusal(run("$NSP bench op"), 2, {"'op' is not ops"}, "nsp_app bench ops");
  expect_refusal(run("mpirun -np 2 " + kBench), 2, {"bench ops is for a single process", "Open MPI started 2"}, "Start it without");
  expect_refusal(run(kBench + "--train.context 9"), 2, {"train.context = 9", "model.context = 8"}, "Lower train.context");
  expect_refusal(run(kModel + "--seconds -1"), 2, {"seconds = -1", "too small"}, "at least 0");
  expect_refusal(run("$NSP bench ops --working-set many"), 2, {"'many' is not a size"}, "auto is allowed");
  expect_refusal(run(kBench + "--only adamw,matmull"), 2, {"names matmull", "matmul, bias_gradient, rope"}, "--only references");
  expect_refusal(run(kBench + "--train.lr 1"), 2, {"--train.lr has no effect on the verb bench"}, "Leave it out");
  expect_refusal(run("$NSP bench ops --working-set 900000G"), 1, {"copy (reference) needs", "left"}, "Give a smaller --working-set");
  expect_refusal(run(kBench + "--backend nothing"), 2, {"nothing"}, "");
  expect_refusal(run(kBench + ">/dev/full"), 1, {"cannot write standard output"}, "write to another place");
}

}  // namespace
}  // namespace nsp::test
