// Objects that plug-ins make.
#pragma once

#include <memory>

#include "core/plugin/registry.hpp"
#include "nsp/backend.h"
#include "nsp/plugin.hpp"

namespace nsp {

// Owns an object of a plug-in and gives it back to the plug-in's own destroy.
template <class Interface>
using PluginPtr = std::unique_ptr<Interface, void (*)(void*)>;

// The interface object of a loaded plug-in of ABI class C++. Throws Error(plugin) "the plug-in X failed to start: <text>"
// whatever its constructor throws. Not for use by itself: see create.
void* create_object(const PluginEntry& plugin, const PluginContext& context);

// REQUIRES a loaded plug-in whose kind has this interface. Everything in context must outlive the object.
template <class Interface>
PluginPtr<Interface> create(const PluginEntry& plugin, const PluginContext& context) {
  return PluginPtr<Interface>(static_cast<Interface*>(create_object(plugin, context)), plugin.descriptor->destroy);
}

// The options of a plug-in that nobody set: its own defaults.
Options default_options(const PluginEntry& plugin);

// The table of a loaded backend; static in its module. Throws Error(plugin) if it gives none or one of another ABI.
const nsp_backend& backend_table(const PluginEntry& plugin);

}  // namespace nsp
