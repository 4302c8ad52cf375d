#include "core/app/session.hpp"

#include <cstdlib>

#include "core/discover/cpu_features.hpp"
#include "core/plugin/builtins.hpp"
#include "core/plugin/search_path.hpp"

namespace nsp {
namespace {

std::vector<std::string> module_folders(const CommandLine& line) {
  const char* variable = std::getenv("NSP_PLUGIN_PATH");
  return plugin_search_path(line.core("", {}).text("plugin-path"), variable ? variable : "", program_path());
}

Host this_host() {
  Host host;
  host.cpu_features = cpu_features();
  host.cpu_feature_names = cpu_feature_text;
  return host;
}

}  // namespace

Session::Session(CommandLine line, Launch launch)
    : line_(std::move(line)),
      launch_(std::move(launch)),
      log_(launch_.rank == 0),
      registry_(builtin_plugins(), module_folders(line_), this_host()) {}

void Session::configure(const StoredValues& stored) {
  const std::vector<std::string> names = line_.plugins(stored);
  selection_ = registry_.select(names);
  plugin_names_.clear();
  for (const PluginEntry* entry : {selection_.sync, selection_.parallel, selection_.memory, selection_.optimizer})
    plugin_names_ += (plugin_names_.empty() ? "" : ",") + entry->note.name;
  config_ = std::make_unique<Config>(
      line_.resolve(option_rows({selection_.sync, selection_.parallel, selection_.memory, selection_.optimizer}), stored));
  for (const std::string& warning : config_->warnings()) log_.warning(warning);
}

std::string Session::plugin_names_with(const std::string& parallel) {
  const Selection defaults = registry_.select({});
  std::string names = selection_.sync == defaults.sync ? "" : selection_.sync->note.name + ",";
  names += parallel;
  if (selection_.memory != defaults.memory) names += "," + selection_.memory->note.name;
  if (selection_.optimizer != defaults.optimizer) names += "," + selection_.optimizer->note.name;
  return names;
}

Session::PolicySet Session::create_policies() {
  // A plug-in without options has no section.
  const auto context = [&](const PluginEntry* entry) {
    return PluginContext{entry->descriptor->option_count > 0 ? config_->section(entry->note.name) : no_options_, log_};
  };
  return {create<SyncPolicy>(*selection_.sync, context(selection_.sync)),
          create<ParallelStrategy>(*selection_.parallel, context(selection_.parallel)),
          create<LocCache>(*selection_.memory, context(selection_.memory)),
          create<Optimizer>(*selection_.optimizer, context(selection_.optimizer))};
}

Session::PolicySet Session::create_default_policies() {
  const Selection defaults = registry_.select({});
  const auto context = [&](const PluginEntry* entry) {
    default_options_.push_back(std::make_unique<Options>(default_options(*entry)));
    return PluginContext{*default_options_.back(), log_};
  };
  return {
      create<SyncPolicy>(*defaults.sync, context(defaults.sync)), create<ParallelStrategy>(*defaults.parallel, context(defaults.parallel)),
      create<LocCache>(*defaults.memory, context(defaults.memory)), create<Optimizer>(*defaults.optimizer, context(defaults.optimizer))};
}

std::vector<OptionRow> rows_for_help(Session& session) {
  const Selection s = session.registry().select(session.line().plugins({}));
  return option_rows({s.sync, s.parallel, s.memory, s.optimizer});
}

}  // namespace nsp
