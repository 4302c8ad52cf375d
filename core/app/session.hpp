// What every verb starts from: the command line, the plug-ins that can be seen, and, once they are chosen, the resolved
// configuration and the policy objects.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/app/console_log.hpp"
#include "core/config/command_line.hpp"
#include "core/discover/launcher.hpp"
#include "core/plan/planner.hpp"
#include "core/plugin/instance.hpp"
#include "core/plugin/registry.hpp"

namespace nsp {

class Session {
 public:
  Session(CommandLine line, Launch launch);

  const CommandLine& line() const noexcept { return line_; }
  const Launch& launch() const noexcept { return launch_; }
  ConsoleLog& log() noexcept { return log_; }
  Registry& registry() noexcept { return registry_; }

  // Chooses the policies and resolves the configuration. stored: of the checkpoint that the run goes on from, or empty.
  void configure(const StoredValues& stored);
  const Config& config() const { return *config_; }
  const std::string& plugin_names() const noexcept { return plugin_names_; }
  bool uses(const std::string& plugin) const { return ("," + plugin_names_ + ",").find("," + plugin + ",") != std::string::npos; }
  // What --plugins would be with another parallel strategy; defaults are left out.
  std::string plugin_names_with(const std::string& parallel);
  // Creates the policy objects. REQUIRES configure(). They hold memory of the device that they are opened with, so they end before it.
  class PolicySet;
  PolicySet create_policies();
  // ddp, dp, resident and adamw with their defaults, whatever --plugins says: for verbs that train nothing.
  PolicySet create_default_policies();

 private:
  CommandLine line_;
  Launch launch_;
  ConsoleLog log_;
  Registry registry_;
  Selection selection_;
  std::string plugin_names_;
  std::unique_ptr<Config> config_;
  Options no_options_;
  std::vector<std::unique_ptr<Options>> default_options_;  // which the objects of create_default_policies hold on to
};

class Session::PolicySet {
 public:
  PolicySet(PluginPtr<SyncPolicy> sync, PluginPtr<ParallelStrategy> strategy, PluginPtr<LocCache> cache, PluginPtr<Optimizer> optimizer)
      : sync_(std::move(sync)), strategy_(std::move(strategy)), cache_(std::move(cache)), optimizer_(std::move(optimizer)) {}
  Policies refs() const { return {*sync_, *strategy_, *cache_, *optimizer_}; }

 private:
  PluginPtr<SyncPolicy> sync_;
  PluginPtr<ParallelStrategy> strategy_;
  PluginPtr<LocCache> cache_;
  PluginPtr<Optimizer> optimizer_;
};

// The rows of the plug-ins that --plugins names, for --help; refused names are left out.
std::vector<OptionRow> rows_for_help(Session& session);

}  // namespace nsp
