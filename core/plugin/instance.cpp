#include "core/plugin/instance.hpp"

#include <cstddef>
#include <exception>

#include "nsp/error.hpp"

namespace nsp {
namespace {

[[noreturn]] void fail_start(const PluginEntry& plugin, const std::string& text) {
  throw Error(ErrorKind::plugin, "The plug-in " + plugin.note.name + " failed to start: " + text);
}

}  // namespace

void* create_object(const PluginEntry& plugin, const PluginContext& context) {
  NSP_REQUIRE(plugin.state == PluginEntry::State::loaded && plugin.descriptor->abi_class == NSP_ABI_CXX,
              "only a loaded C++ plug-in makes objects");
  void* object = nullptr;
  try {
    object = plugin.descriptor->create(&context);
  } catch (const std::exception& e) {
    fail_start(plugin, e.what());
  } catch (...) {
    fail_start(plugin, "it threw something that is not an exception. Throw nsp::Error from it.");
  }
  if (object == nullptr) fail_start(plugin, "it made no object. Correct its create function.");
  return object;
}

Options default_options(const PluginEntry& plugin) {
  std::map<std::string, Options::Value> values;
  for (uint32_t i = 0; i < plugin.descriptor->option_count; ++i) {
    const nsp_option& row = plugin.descriptor->options[i];
    values[row.name] = {row.default_value, "default", row.type};
  }
  return Options(plugin.note.name, std::move(values));
}

const nsp_backend& backend_table(const PluginEntry& plugin) {
  NSP_REQUIRE(plugin.state == PluginEntry::State::loaded && plugin.descriptor->abi_class == NSP_ABI_C, "only a loaded backend has a table");
  const auto* table = static_cast<const nsp_backend*>(plugin.descriptor->create(nullptr));
  if (table == nullptr) fail_start(plugin, "it gives no table. Correct its create function.");
  // Everything up to the vendor's handle was in the first release; what came later is optional.
  if (table->abi_major != NSP_ABI_MAJOR || table->size < offsetof(nsp_backend, native_handle) || table->ops == nullptr) {
    fail_start(plugin, "its table is of ABI " + std::to_string(table->abi_major) + "." + std::to_string(table->abi_minor) +
                           " or incomplete. Build it again.");
  }
  return *table;
}

}  // namespace nsp
