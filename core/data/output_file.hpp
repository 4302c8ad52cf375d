// A file that appears under its name only when it is whole: written as PATH.tmp-<process>, fsynced, then renamed.
// Owner of the open descriptor; an OutputFile that is destroyed before commit() leaves nothing behind.
// Errors: Error(input) if the file cannot be created (the user named a bad place), Error(io) if a write fails.
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nsp {

class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void append(const void* data, std::size_t bytes);
  void overwrite(uint64_t offset, const void* data, std::size_t bytes);  // REQUIRES offset + bytes <= what was appended
  void commit();                                                         // durable under its name afterwards; nothing may follow
  const std::string& path() const noexcept { return path_; }

 private:
  void flush();
  [[noreturn]] void fail(const char* what) const;
  std::string path_, temporary_;
  std::vector<char> buffer_;  // appended bytes that are not written yet
  int descriptor_ = -1;
};

// Makes a rename or a new entry in this folder durable. A file system that cannot sync folders is not an error.
void sync_folder(const std::string& folder) noexcept;

}  // namespace nsp
