#include "core/data/document_reader.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "core/data/json_text.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

class TextFile {
 public:
  explicit TextFile(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rbe"), &std::fclose) {
    if (file_ == nullptr) fail();
  }
  // Fewer bytes than asked for at the end of the file only.
  std::size_t read(char* to, std::size_t bytes) {
    const std::size_t got = std::fread(to, 1, bytes, file_.get());
    if (got < bytes && std::ferror(file_.get())) fail();
    return got;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorKind::input, "cannot read " + path_ + ". " + std::strerror(errno) +
                                      ". Change its permissions, or name the inputs so that it is left out.");
  }
  const std::string& path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

constexpr std::size_t block_bytes = std::size_t{1} << 20;
constexpr std::size_t longest_line = std::size_t{64} << 20;  // also in the text of the error

// One line of a JSONL file; nothing for a blank one.
void read_line(const std::string& path, int64_t number, std::string_view line, const std::string& text_key,
               const std::function<void(std::string_view, bool)>& piece) {
  if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (line.find_first_not_of(" \t\r") == line.npos) return;
  try {
    piece(json_text(line, text_key), true);
  } catch (const JsonTextError& error) {
    throw Error(ErrorKind::input, path + " line " + std::to_string(number) + ": " + error.what() +
                                      ". A .jsonl file has one JSON object a line with the text in '" + text_key +
                                      "'. Correct the line, or name the member with --text-key.");
  }
}

// The line as far as it is read, longer by some text.
void lengthen(std::string& line, std::string_view text, const std::string& path, int64_t number) {
  if (line.size() + text.size() > longest_line)
    throw Error(ErrorKind::input,
                path + " line " + std::to_string(number) +
                    ": it is longer than 64 MiB. A .jsonl file has one JSON object a line, and a line is read whole. Put that "
                    "document into a text file of its own, or check that the file has line ends.");
  line += text;
}

void read_jsonl(const std::string& path, const std::string& text_key, const std::function<void(std::string_view, bool)>& piece,
                const std::function<void(std::size_t)>& read) {
  TextFile file(path);
  std::string rest;  // the beginning of a line whose end is not read yet
  std::vector<char> block(block_bytes);
  int64_t number = 0;
  while (const std::size_t got = file.read(block.data(), block.size())) {
    std::string_view text(block.data(), got);
    for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      lengthen(rest, text.substr(0, end), path, number + 1);
      read_line(path, ++number, rest, text_key, piece);
      rest.clear();
    }
    lengthen(rest, text, path, number + 1);
    if (read) read(got);
  }
  read_line(path, ++number, rest, text_key, piece);
}

}  // namespace

FileContent content_of(const std::string& path) {
  TextFile file(path);
  char start[8192];
  const std::size_t got = file.read(start, sizeof start);
  if (got == 0) return FileContent::empty;
  return std::memchr(start, '\0', got) == nullptr ? FileContent::text : FileContent::binary;
}

void read_documents(const std::string& path, const std::string& text_key, const std::function<void(std::string_view, bool)>& piece,
                    const std::function<void(std::size_t)>& read) {
  if (path.ends_with(".jsonl")) return read_jsonl(path, text_key, piece, read);
  TextFile file(path);
  std::vector<char> block(block_bytes);
  for (;;) {
    const std::size_t got = file.read(block.data(), block.size());
    piece(std::string_view(block.data(), got), got < block.size());
    if (read && got > 0) read(got);
    if (got < block.size()) return;
  }
}

}  // namespace nsp
