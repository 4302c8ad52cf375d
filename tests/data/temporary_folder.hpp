// A folder of one test, removed with everything in it at the end of the test.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "nsp_data_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder can be made");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline std::string write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Names of all entries below a folder, sorted.
inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The text of the nsp::Error of a kind that an expression throws; "" and a failure if it throws none or another kind.
#define ERROR_TEXT(expected_kind, ...)                                                            \
  [&]() -> std::string {                                                                          \
    try {                                                                                         \
      __VA_ARGS__;                                                                                \
    } catch (const nsp::Error& error) {                                                           \
      EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(expected_kind)) << error.what(); \
      return error.what();                                                                        \
    }                                                                                             \
    ADD_FAILURE() << "no nsp::Error from " #__VA_ARGS__;                                          \
    return "";                                                                                    \
  }()

#define EXPECT_SAYS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << "in: " << (text) << "\nmissing: " << (part)
