#include "core/plugin/listing.hpp"

#include <algorithm>

namespace nsp {
namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text + "  ";
}

const char* state_text(PluginEntry::State state) {
  switch (state) {
    case PluginEntry::State::available:
      return "available";
    case PluginEntry::State::loaded:
      return "loaded";
    case PluginEntry::State::refused:
      return "refused";
  }
  return "";
}

std::string lines_of(const PluginEntry& entry) {
  const Note& note = entry.note;
  const bool noted = note.abi_class != 0;
  std::string text = "  " + padded(note.name, 20) + padded(noted ? note.version : "-", 8) + padded(state_text(entry.state), 9);
  text += padded(noted ? "ABI " + std::to_string(note.abi_major) + "." + std::to_string(note.abi_minor) : "-", 8);
  text += padded(entry.score > 0 ? "score " + std::to_string(entry.score) : "", 9) + (entry.path.empty() ? "built in" : entry.path) + "\n";
  if (entry.descriptor != nullptr && entry.descriptor->summary != nullptr) text += std::string("      ") + entry.descriptor->summary + "\n";
  if (noted) text += "      stamp " + note.stamp + "\n";
  if (entry.state == PluginEntry::State::refused) text += "      refused: " + entry.reason + "\n";
  return text;
}

}  // namespace

std::string plugin_listing(const Registry& registry) {
  std::string text;
  const auto block = [&text, &registry](const std::string& title, const auto& wanted) {
    std::string lines;
    for (const PluginEntry& entry : registry.entries()) {
      if (wanted(entry.note.kind)) lines += lines_of(entry);
    }
    if (!lines.empty()) text += (text.empty() ? "" : "\n") + title + ":\n" + lines;
  };
  for (const char* const* kind = plugin_kinds(); *kind != nullptr; ++kind) {
    block(*kind, [kind](const std::string& k) { return k == *kind; });
  }
  block("of no known kind", [](const std::string& k) { return !is_plugin_kind(k); });
  return text;
}

}  // namespace nsp
