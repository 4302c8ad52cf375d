#include "core/plugin/dynlib.hpp"

#include <dlfcn.h>

#include "nsp/error.hpp"

namespace nsp {

// A path without a slash would make dlopen search the system's folders instead.
Dynlib::Dynlib(const std::string& path)
    : handle_(::dlopen((path.find('/') == std::string::npos ? "./" + path : path).c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* text = ::dlerror();
  throw Error(ErrorKind::plugin, text != nullptr ? text : "unknown reason");
}

const void* Dynlib::symbol(const char* name) const noexcept {
  return ::dlsym(handle_, name);
}

}  // namespace nsp
