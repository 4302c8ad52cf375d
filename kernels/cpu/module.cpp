// Descriptor and probe of a CPU backend module. Compiled without arch flags and without LTO, and free of library
// templates: it runs before it is known that this processor has the instructions of the other files.
#include "module_config.h"
#include "nsp/abi.h"
#include "nsp/backend.h"

namespace nsp::cpu {
const nsp_backend* backend_table();  // cpu/backend.cpp
}

namespace {

// The first feature that this module needs and this processor lacks, or null.
const char* missing_feature() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#define NSP_NEED(feature) \
  if (!__builtin_cpu_supports(feature)) return feature;
  NSP_MODULE_CPU_CHECKS
#undef NSP_NEED
#endif
  return nullptr;
}

void append(char* text, uint64_t size, uint64_t& used, const char* part) {
  while (*part != 0 && used + 1 < size) text[used++] = *part++;
  if (size > 0) text[used] = 0;
}

int64_t probe(char* reason, uint64_t reason_size) {
  const char* missing = missing_feature();
  if (missing == nullptr) return NSP_MODULE_SCORE;
  if (reason != nullptr) {
    uint64_t used = 0;
    append(reason, reason_size, used, "this processor lacks ");
    append(reason, reason_size, used, missing);
  }
  return 0;
}

void* create(const void*) {
  return const_cast<nsp_backend*>(nsp::cpu::backend_table());
}
void destroy(void*) {}  // the table is static

}  // namespace

NSP_PLUGIN_DEFINE(NSP_ABI_C, NSP_MODULE_CPU_BITS, "backend", NSP_MODULE_NAME, NSP_MODULE_VERSION, NSP_MODULE_SUMMARY, nullptr, 0, create,
                  destroy, probe);
