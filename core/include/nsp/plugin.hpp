// How a C++ plug-in is written: a class that implements the interface of its kind and has a constructor from
// `const nsp::PluginContext&`, and one NSP_PLUGIN line.
//
//   class Sgd : public nsp::Optimizer { public: explicit Sgd(const nsp::PluginContext& context); ... };
//   static const nsp_option rows[] = {{"momentum", "float", "0.9", "momentum factor"}};
//   NSP_PLUGIN("optimizer", "sgd", "0.1.0", "SGD with momentum", nsp::Optimizer, Sgd, rows);
#pragma once

#include "nsp/abi.h"
#include "nsp/log.hpp"
#include "nsp/options.hpp"

namespace nsp {

// What a plug-in's constructor is given. References stay valid for the plug-in's life.
struct PluginContext {
  const Options& options;  // its own section
  Log& log;
};

// In the place of the rows: a plug-in without options.
struct NoOptions {};
inline constexpr NoOptions no_options;

// Rows and their number, as the descriptor wants them.
constexpr const nsp_option* option_rows(NoOptions) {
  return nullptr;
}
constexpr uint32_t option_count(NoOptions) {
  return 0;
}
template <std::size_t N>
constexpr const nsp_option* option_rows(const nsp_option (&rows)[N]) {
  return rows;
}
template <std::size_t N>
constexpr uint32_t option_count(const nsp_option (&)[N]) {
  return N;
}

template <class Interface, class Class>
void* create_plugin(const void* context) {
  return static_cast<Interface*>(new Class(*static_cast<const PluginContext*>(context)));
}
template <class Interface>
void destroy_plugin(void* object) {
  delete static_cast<Interface*>(object);
}

}  // namespace nsp

// kind, name, version, summary: string literals. rows: an array of nsp_option with static life, or nsp::no_options.
#define NSP_PLUGIN(kind, name, version, summary, Interface, Class, rows)                                               \
  NSP_PLUGIN_DEFINE(NSP_ABI_CXX, 0, kind, name, version, summary, ::nsp::option_rows(rows), ::nsp::option_count(rows), \
                    (::nsp::create_plugin<Interface, Class>), (::nsp::destroy_plugin<Interface>), nullptr)

// The same for a plug-in that is built into libnsp.so: defines a descriptor of the given variable name instead of module note and symbol.
#define NSP_BUILTIN_PLUGIN(variable, kind, name, version, summary, Interface, Class, rows) \
  extern const nsp_plugin_v1 variable;                                                     \
  const nsp_plugin_v1 variable = {NSP_PLUGIN_MAGIC,                                        \
                                  (uint32_t)sizeof(nsp_plugin_v1),                         \
                                  NSP_ABI_CXX,                                             \
                                  NSP_ABI_MAJOR,                                           \
                                  NSP_ABI_MINOR,                                           \
                                  ::nsp::option_count(rows),                               \
                                  0,                                                       \
                                  kind,                                                    \
                                  name,                                                    \
                                  version,                                                 \
                                  NSP_STAMP,                                               \
                                  summary,                                                 \
                                  ::nsp::option_rows(rows),                                \
                                  (::nsp::create_plugin<Interface, Class>),                \
                                  (::nsp::destroy_plugin<Interface>),                      \
                                  nullptr}
