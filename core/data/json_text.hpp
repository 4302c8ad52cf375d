// The text of one line of a JSONL file: one string member of one JSON object (RFC 8259), without a JSON library. Any thread.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace nsp {

class JsonTextError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The value of the member `key` of the object, as UTF-8; the last one if there are several. Other members are checked and
// passed over. Throws JsonTextError that says what is wrong at which column (bytes, from 1): not UTF-8, no object, no such member, not a
// string, bad escape, half of a surrogate pair (which is no character), no JSON, nested deeper than 1000, cut off.
std::string json_text(std::string_view line, std::string_view key);

}  // namespace nsp
