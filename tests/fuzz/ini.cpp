// INI files: refused with an error of usage, or read; and what is read can be written and read again.
#include <string>

#include "core/config/ini_file.hpp"
#include "nsp/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::vector<nsp::IniEntry> entries;
  try {
    entries = nsp::parse_ini(std::string(reinterpret_cast<const char*>(data), size), "fuzz.ini");
  } catch (const nsp::Error& error) {
    if (error.kind() != nsp::ErrorKind::usage) throw;
    return 0;
  }
  for (const nsp::IniEntry& entry : entries) {
    const std::vector<nsp::IniEntry> again = nsp::parse_ini("k = " + nsp::ini_value(entry.text) + "\n", "again.ini");
    if (again.size() != 1 || again[0].text != entry.text) __builtin_trap();
  }
  return 0;
}
