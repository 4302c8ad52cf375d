#include "tests/cli/run_files.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "io/hdf5_store.hpp"
#include "tests/cli/command.hpp"

namespace nsp::test {

std::vector<std::string> records(const std::string& run_dir, const std::string& kind) {
  std::istringstream in(read_file(run_dir + "/metrics.jsonl"));
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);)
    if (line.find("\"kind\":\"" + kind + "\"") != std::string::npos) out.push_back(line);
  return out;
}

std::string field(const std::string& line, const std::string& name) {
  const std::string key = "\"" + name + "\":";
  const std::size_t at = line.find(key);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size();
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

double number(const std::string& line, const std::string& name) {
  const std::string text = field(line, name);
  return text.empty() || text == "null" ? std::nan("") : std::strtod(text.c_str(), nullptr);
}

std::vector<std::string> losses(const std::string& run_dir, int64_t steps) {
  std::vector<std::string> out;
  std::vector<int64_t> found, wanted(static_cast<std::size_t>(steps));
  for (const std::string& line : records(run_dir, "step")) {
    found.push_back(std::atoll(field(line, "step").c_str()));
    out.push_back(field(line, "loss"));
  }
  std::iota(wanted.begin(), wanted.end(), int64_t{1});
  EXPECT_EQ(found, wanted) << "steps in " << run_dir << "/metrics.jsonl";
  return out;
}

double sum_of(const std::string& run_dir, const std::string& name, int64_t first_step, int64_t last_step) {
  double sum = 0;
  int64_t counted = 0;
  for (const std::string& line : records(run_dir, "step")) {
    const double step = number(line, "step");
    if (step < static_cast<double>(first_step) || step > static_cast<double>(last_step)) continue;
    sum += number(line, name);
    ++counted;
  }
  EXPECT_EQ(counted, last_step - first_step + 1);
  return sum;
}

Tensors read_checkpoint(const std::string& run_dir, int64_t step) {
  Hdf5Store store(run_dir + "/checkpoints");
  const std::unique_ptr<CheckpointReader> reader = store.open(step);
  Tensors out;
  for (const PieceRecord& piece : reader->pieces()) {
    std::vector<float>& values = out[piece.name];
    if (!values.empty()) continue;
    values.resize(static_cast<std::size_t>(
        std::accumulate(piece.shape.begin(), piece.shape.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; })));
    reader->get(piece.name, DType::f32, 0, static_cast<int64_t>(values.size()), values.data());
  }
  return out;
}

std::string differences(const Tensors& a, const Tensors& b) {
  std::string text;
  for (const auto& [name, values] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.size() != values.size()) {
      text += name + " is missing or of another size; ";
      continue;
    }
    if (std::memcmp(values.data(), other->second.data(), values.size() * sizeof(float)) == 0) continue;
    std::size_t i = 0;
    while (std::memcmp(&values[i], &other->second[i], sizeof(float)) == 0) ++i;
    text += name + "[" + std::to_string(i) + "]: " + std::to_string(values[i]) + " and " + std::to_string(other->second[i]) + "; ";
  }
  for (const auto& [name, values] : b)
    if (a.count(name) == 0) text += name + " is only in the second; ";
  return text;
}

std::map<std::string, std::string> read_scalars(const std::string& run_dir, int64_t step) {
  Hdf5Store store(run_dir + "/checkpoints");
  const Attributes attributes = store.open(step)->attributes();
  std::map<std::string, std::string> out;
  for (const char* name : {"step", "replicas", "replicas_differ", "optimizer_updates", "bad_steps_in_a_row", "data.position"}) {
    EXPECT_EQ(attributes.count(name), 1u) << name;
    out[name] = attributes.count(name) ? attributes.at(name) : "";
  }
  return out;
}

std::string with(const std::string& command, const std::string& option, const std::string& value) {
  const std::size_t at = command.find(option + " ");
  if (at == std::string::npos) throw std::invalid_argument(option);
  const std::size_t begin = at + option.size() + 1;
  return command.substr(0, begin) + value + command.substr(command.find(' ', begin));
}

std::string ranks(int n) {
  return "env OMP_NUM_THREADS=1 NSP_TRAIN_THREADS=1 mpirun -np " + std::to_string(n) + " $NSP";
}

std::string step_text(int step, int steps) {
  char text[64];
  std::snprintf(text, sizeof text, "step %6d/%d ", step, steps);
  return text;
}

std::string step_folder(const std::string& run_dir, int step) {
  char text[32];
  std::snprintf(text, sizeof text, "/checkpoints/step_%08d", step);
  return run_dir + text;
}

void expect_good_checkpoints(const std::string& run_dir) {
  const Said said = run("$NSP checkpoint verify " + run_dir, 300);
  EXPECT_EQ(said.code, 0) << said.out;
}

void pause_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

bool wait_for_unfinished(const std::string& folder) {
  for (int ms = 0; ms < 1000 * 300; ++ms) {
    if (std::filesystem::exists(folder + "/manifest.h5")) return false;
    if (std::filesystem::exists(folder)) return true;
    pause_ms(1);
  }
  return false;
}

}  // namespace nsp::test
