// The documents of a text file as a stream of pieces, so that files of any size take little memory. A file is one document; a file
// named *.jsonl has one a line: the string member text_key of its object (blank lines are passed over; one line is held in memory).
// Errors: Error(input) that names the file (and line). Any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace nsp {

enum class FileContent { text, empty, binary };

// binary: a NUL byte within the first 8 KiB.
FileContent content_of(const std::string& path);

// piece(text, ends): consecutive pieces of a document, `ends` with its last one, which may be empty.
void read_documents(const std::string& path, const std::string& text_key, const std::function<void(std::string_view, bool)>& piece);

}  // namespace nsp
