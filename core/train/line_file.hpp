// A text file that grows line by line and survives a file system that is full or read-only for a while: what cannot be written is
// kept and written later, so that a log has no hole.
#pragma once

#include <cstdint>
#include <string>

namespace nsp {

class LineFile {
 public:
  // append: goes on behind what the file holds; else it starts empty. Error(io) if it cannot be opened for writing.
  LineFile(const std::string& path, bool append);
  ~LineFile() noexcept;  // one last flush; what is written is durable then
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  void add(const std::string& line);  // without its newline; written by the next flush
  // Hands all lines to the operating system. False: not all could be written; the next flush tries the rest again. The file is
  // open only meanwhile, so that a file system that went away and came back is no hindrance.
  bool flush() noexcept;
  // Why the last flush failed, for a message; empty if it did not.
  const std::string& failure() const noexcept { return failure_; }
  // Lines that were given up, since more than `most_kept` bytes waited.
  int64_t given_up() const noexcept { return given_up_; }
  static constexpr std::size_t most_kept = std::size_t{64} << 20;

 private:
  std::string path_, waiting_, failure_;  // waiting_ may begin in the middle of a line
  int64_t given_up_ = 0;
};

// Replaces a file as a whole by another text, or leaves it as it is. Error(io).
void replace_file(const std::string& path, const std::string& text);

}  // namespace nsp
