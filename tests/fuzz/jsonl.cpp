// JSONL files: refused as bad input, or read to the end.
#include <cstdint>
#include <string>

#include "core/data/json_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  // Lines are independent; the file around them is core/data/document_reader.cpp's loop, so each line is one input here.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    try {
      nsp::json_text(text.substr(at, end - at), "text");
    } catch (const nsp::JsonTextError&) {
    }
    at = end + 1;
  }
  return 0;
}
