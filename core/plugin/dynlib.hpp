// A shared object of this process.
#pragma once

#include <string>

namespace nsp {

// Opened at once and completely (RTLD_NOW), its symbols hidden from others (RTLD_LOCAL). It is never closed: objects,
// threads and exceptions of a module may outlive every owner that could close it.
class Dynlib {
 public:
  // Throws Error(plugin) with the loader's own text.
  explicit Dynlib(const std::string& path);
  // nullptr if the module has no such symbol.
  const void* symbol(const char* name) const noexcept;

 private:
  void* handle_;
};

}  // namespace nsp
