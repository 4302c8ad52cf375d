/* The binary contract of every nsp module. Compiles as C11 and as C++20 (tests/abi proves it).
 *
 * A module is a shared object libnsp_<kind>_<name>.so. It carries
 *   - an ELF note (section .note.nsp), read from the *file* before dlopen, so that a module of another ABI,
 *     another build or another processor is refused before any of its code has run, and
 *   - one exported data symbol, nsp_plugin, which repeats the same facts and adds options and entry points.
 * The macro NSP_PLUGIN_DEFINE writes both. It must stand in a source file of the module itself: an object in a
 * static archive without a reference would be dropped by the linker.
 *
 * Two ABI classes:
 *   NSP_ABI_C    backends: C tables that only grow at the end (same major, minor >= what core needs).
 *   NSP_ABI_CXX  all other kinds: C++ interfaces; the build stamp must match exactly.
 */
#ifndef NSP_ABI_H
#define NSP_ABI_H

#ifdef __cplusplus
#include <cstddef> /* defines _GLIBCXX_USE_CXX11_ABI, which the stamp needs; without it stamps differ by include order */
#include <cstdint>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#define NSP_STR_(x) #x
#define NSP_STR(x) NSP_STR_(x)

#define NSP_VERSION "0.1.0"
#define NSP_ABI_MAJOR 1
#define NSP_ABI_MINOR 0
#define NSP_ABI_C 1
#define NSP_ABI_CXX 2

#define NSP_PLUGIN_MAGIC 0x4e53504dU /* "NSPM" */
#define NSP_NOTE_TYPE 0x6e737001     /* note name "nsp" */

/* CPU features that a module needs, as bits of its note. Plain literals: they are pasted into assembly. */
#define NSP_CPU_X86_64_V2 1
#define NSP_CPU_X86_64_V3 2
#define NSP_CPU_X86_64_V4 4
#define NSP_CPU_AVX512_BF16 8
#define NSP_CPU_AVX512_VNNI 16

#ifdef __cplusplus
#define NSP_EXTERN_C extern "C"
#define NSP_LANG_STAMP "c++" NSP_STR(__cplusplus)
#else
#define NSP_EXTERN_C extern
#define NSP_LANG_STAMP "c"
#endif
#if defined(_GLIBCXX_USE_CXX11_ABI)
#define NSP_CXX11_STAMP "cxx11abi=" NSP_STR(_GLIBCXX_USE_CXX11_ABI)
#else
#define NSP_CXX11_STAMP "cxx11abi=-"
#endif
#if defined(__clang__)
#define NSP_COMPILER_STAMP "clang" NSP_STR(__clang_major__)
#else
#define NSP_COMPILER_STAMP "gcc" NSP_STR(__GNUC__)
#endif
/* What must agree between core and a C++ module. A module may append to it (comm_mpi: the MPI flavour). */
#ifndef NSP_STAMP_SUFFIX
#define NSP_STAMP_SUFFIX ""
#endif
#define NSP_STAMP_BASE "nsp" NSP_VERSION ";" NSP_COMPILER_STAMP ";" NSP_CXX11_STAMP ";" NSP_LANG_STAMP
#define NSP_STAMP NSP_STAMP_BASE NSP_STAMP_SUFFIX

/* One option of a plug-in: --<plug-in>.<name>. type: "int", "size" (takes k, M, G), "float", "bool", "string",
 * "time" (takes s, m, h), "period" (a whole number >= 1, or inf), "choice:a|b|c", or "auto|int" etc. (the word auto too).
 * The default must parse as the type. */
typedef struct nsp_option {
  const char *name;
  const char *type;
  const char *default_value;
  const char *help;
} nsp_option;

/* What a module is. All strings are static. Members are only ever added at the end; `size` says how many are there. */
typedef struct nsp_plugin_v1 {
  uint32_t magic;     /* NSP_PLUGIN_MAGIC */
  uint32_t size;      /* sizeof(nsp_plugin_v1) in the module */
  uint32_t abi_class; /* NSP_ABI_C or NSP_ABI_CXX */
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t option_count;
  uint64_t cpu_features; /* NSP_CPU_* bits */
  const char *kind;      /* "backend", "sync", "parallel", "memory", "optimizer", "comm" */
  const char *name;      /* unique over all kinds */
  const char *version;   /* the module's own */
  const char *stamp;     /* NSP_STAMP */
  const char *summary;   /* one line for `nsp_app plugins` */
  const nsp_option *options; /* option_count rows, may be NULL */
  /* NSP_ABI_C: context is NULL, returns the static `const nsp_backend *`; never throws.
   * NSP_ABI_CXX: context is a `const nsp::PluginContext *` (plugin.hpp); returns the interface object of the kind; may throw. */
  void *(*create)(const void *context);
  void (*destroy)(void *object);
  /* Backends: > 0 = this module runs here, the highest wins; 0 = not here, with the reason in text. NULL: always 1. */
  int64_t (*probe)(char *reason, uint64_t reason_size);
} nsp_plugin_v1;

/* The note's descriptor: fixed words (class, major, minor, 0, cpu features), then four NUL-terminated strings.
 * No symbol and no relocation: readable from the file alone. Arguments must be plain literals. */
#define NSP_NOTE_ASM(cls, cpu, kind, name, version)                                                  \
  __asm__(".pushsection .note.nsp,\"a\",%note\n\t.balign 4\n\t"                                      \
          ".long 4\n\t.long 992f-991f\n\t.long " NSP_STR(NSP_NOTE_TYPE) "\n\t.asciz \"nsp\"\n991:\n\t" \
          ".long " NSP_STR(cls) "\n\t.long " NSP_STR(NSP_ABI_MAJOR) "\n\t.long " NSP_STR(            \
              NSP_ABI_MINOR) "\n\t.long 0\n\t.quad " NSP_STR(cpu) "\n\t"                             \
          ".asciz \"" kind "\"\n\t.asciz \"" name "\"\n\t.asciz \"" version "\"\n\t.asciz \"" NSP_STAMP "\"\n" \
          "992:\n\t.balign 4\n\t.popsection\n")

/* Defines note and symbol. cls, cpu: integer literals or macros of them; kind, name, version: string literals. */
#define NSP_PLUGIN_DEFINE(cls, cpu, kind, name, version, summary, options, option_count, create, destroy, probe) \
  NSP_NOTE_ASM(cls, cpu, kind, name, version);                                                        \
  NSP_EXTERN_C __attribute__((visibility("default"))) const nsp_plugin_v1 nsp_plugin;                 \
  const nsp_plugin_v1 nsp_plugin __attribute__((used)) = {NSP_PLUGIN_MAGIC, (uint32_t)sizeof(nsp_plugin_v1), \
      cls, NSP_ABI_MAJOR, NSP_ABI_MINOR, option_count, cpu, kind, name, version, NSP_STAMP, summary, options, \
      create, destroy, probe}

/* --- plain values that cross the C border ------------------------------------------------------------- */

typedef enum nsp_dtype { NSP_F32 = 0, NSP_BF16 = 1, NSP_F64 = 2, NSP_I32 = 3, NSP_U8 = 4, NSP_I64 = 5 } nsp_dtype;

typedef enum nsp_status {
  NSP_OK = 0,
  NSP_ERR_ARGUMENT = 1,    /* a shape, stride or pointer that the op does not take */
  NSP_ERR_UNSUPPORTED = 2, /* this backend lacks the op for this dtype */
  NSP_ERR_MEMORY = 3,      /* allocation failed */
  NSP_ERR_DEVICE = 4       /* anything else; see last_error */
} nsp_status;

#define NSP_MAX_RANK 5
/* A view: never owns. Sizes and strides in elements; data may be a device address. data == NULL and rank == 0: absent. */
typedef struct nsp_tensor {
  void *data;
  int32_t dtype; /* nsp_dtype */
  int32_t rank;  /* 0 ... NSP_MAX_RANK */
  int64_t size[NSP_MAX_RANK];
  int64_t stride[NSP_MAX_RANK];
} nsp_tensor;

#endif
