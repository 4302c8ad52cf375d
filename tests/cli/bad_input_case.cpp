#include "tests/cli/bad_input_case.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace nsp::test {
namespace {

namespace fs = std::filesystem;
constexpr const char* mark = "nsp_app: error: ";

Said must_work(const std::string& command) {
  Said said = run(command);
  if (said.code != 0) throw std::runtime_error(command + " ended with " + std::to_string(said.code) + ":\n" + said.out);
  return said;
}

const TempFolder& base() {
  static const TempFolder folder;
  return folder;
}

std::string step_folder(const std::string& run_dir, int step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%08d", step);
  return run_dir + "/checkpoints/" + name;
}

std::string copy(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive);
  return to;
}

}  // namespace

void expect_refusal(const Said& said, int code, const std::vector<std::string>& cause, const std::string& cure) {
  SCOPED_TRACE(said.out);
  EXPECT_FALSE(said.timed_out);
  EXPECT_EQ(said.code, code);
  ASSERT_EQ(said.count("nsp_app: error:"), 1);
  const std::size_t begin = said.out.find(mark);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t text = begin + std::string(mark).size();
  const std::string line = said.out.substr(text, said.out.find('\n', text) - text);
  for (const std::string& part : cause) EXPECT_NE(line.find(part), std::string::npos) << "no cause: " << part;
  EXPECT_NE(line.find(cure), std::string::npos) << "no cure: " << cure;
  // Not by another rank and not under another name either.
  EXPECT_EQ(said.count(line.substr(0, line.find(" (rank "))), 1);
}

std::string tiny(const Keys& changed) {
  Keys keys = {{"model.layers", "1"},       {"model.hidden", "32"},          {"model.heads", "2"},     {"model.context", "32"},
               {"train.global_batch", "4"}, {"train.threads", "1"},          {"train.warmup", "0"},    {"train.eval_batches", "1"},
               {"train.steps", "4"},        {"train.checkpoint_every", "2"}, {"run.log_every", "1000"}};
  for (const auto& [key, value] : changed) keys[key] = value;
  std::string text;
  for (const auto& [key, value] : keys)
    if (!value.empty()) text += " --" + key + " '" + value + "'";
  return text;
}

const std::string& prepared_data() {
  static const std::string data = [] {
    const std::string folder = base() / "data";
    must_work("$NSP prepare --input '" + std::string(std::getenv("NSP_TEST_SOURCE_DIR")) + "/core/include/nsp/*.hpp' --output " + folder);
    return folder;
  }();
  return data;
}

std::string copy_of_data(const TempFolder& folder) {
  return copy(prepared_data(), folder / "data");
}

std::string copy_of_run(const TempFolder& folder) {
  static const std::string trained = [] {
    const std::string dir = base() / "run";
    must_work("$NSP" + tiny({{"data.path", prepared_data()}, {"run.dir", dir}}));
    return dir;
  }();
  return copy(trained, folder / "run");
}

Written written(const std::string& run_dir) {
  Written out;
  for (const auto& entry : fs::recursive_directory_iterator(run_dir + "/checkpoints"))
    if (entry.is_regular_file()) out[entry.path()] = read_file(entry.path());
  out["metrics"] = read_file(run_dir + "/metrics.jsonl");
  return out;
}

void expect_nothing_lost(const std::string& run_dir, const Written& before) {
  ASSERT_GE(before.size(), 5u) << "two checkpoints and a log";
  EXPECT_TRUE(written(run_dir) == before) << "checkpoints or metrics of " << run_dir << " changed";
  const Said verified = run("$NSP checkpoint verify " + run_dir);
  EXPECT_EQ(verified.code, 0) << verified.out;
  EXPECT_TRUE(verified.contains("step 2: good")) << verified.out;
  EXPECT_TRUE(verified.contains("step 4: good")) << verified.out;
  EXPECT_FALSE(fs::exists(run_dir + "/lock"));
}

std::string shard_of(const std::string& run_dir, int step) {
  for (const auto& entry : fs::directory_iterator(step_folder(run_dir, step)))
    if (entry.path().filename() != "manifest.h5") return entry.path();
  throw std::runtime_error("no shard of step " + std::to_string(step));
}

std::string manifest_of(const std::string& run_dir, int step) {
  return step_folder(run_dir, step) + "/manifest.h5";
}

void cut(const std::string& path, int bytes) {
  fs::resize_file(path, fs::file_size(path) - static_cast<std::size_t>(bytes));
}

void flip(const std::string& path, std::size_t position) {
  std::string content = read_file(path);
  content.at(position) = static_cast<char>(content.at(position) ^ 1);
  write_file(path, content);
}

std::string golden(const std::string& name) {
  return std::string(std::getenv("NSP_TEST_SOURCE_DIR")) + "/tests/golden/llmc_tiny/" + name;
}

}  // namespace nsp::test
