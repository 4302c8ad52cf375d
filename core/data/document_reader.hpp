// The documents of a text file as a stream of pieces, so that files of any size take little memory. A file is one document; a file
// named *.jsonl has one a line: the string member text_key of its object (blank lines and a byte-order mark at the start are passed over;
// one line of at most 64 MiB is held in memory). Text files are taken byte for byte, in whatever encoding and with whatever line ends;
// JSON is UTF-8 by definition, and a line that is not is an error.
// Errors: Error(input) that names the file (and line). Any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace nsp {

enum class FileContent { text, empty, binary };

// binary: a NUL byte within the first 8 KiB.
FileContent content_of(const std::string& path);

// piece(text, ends): consecutive pieces of a document, `ends` with its last one, which may be empty. read(bytes), if there: told of each
// block that is done.
void read_documents(const std::string& path, const std::string& text_key, const std::function<void(std::string_view, bool)>& piece,
                    const std::function<void(std::size_t)>& read = {});

}  // namespace nsp
