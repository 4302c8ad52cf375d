// A plug-in made through its descriptor, with options resolved from its rows, as core does it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nsp/plugin.hpp"

// Of the module whose sources are part of a test program.
extern "C" const nsp_plugin_v1 nsp_plugin;
// Built in.
extern const nsp_plugin_v1 nsp_builtin_sync_ddp, nsp_builtin_parallel_dp, nsp_builtin_memory_resident, nsp_builtin_optimizer_adamw;

namespace nsp::test {

class LinesLog : public Log {
 public:
  void info(const std::string& line) override { infos.push_back(line); }
  void warning(const std::string& line) override { warnings.push_back(line); }
  std::vector<std::string> infos, warnings;
};

// Owns a plug-in and what its constructor was given. given: option -> text, as a user would write it.
template <class Interface>
class PluginObject {
 public:
  explicit PluginObject(const nsp_plugin_v1& descriptor, const std::map<std::string, std::string>& given = {});
  Interface* operator->() const { return object_.get(); }
  Interface& operator*() const { return *object_; }
  const LinesLog& log() const { return *log_; }

 private:
  std::unique_ptr<Options> options_;
  std::unique_ptr<LinesLog> log_;
  std::unique_ptr<Interface, void (*)(void*)> object_;
};

Options options_of(const nsp_plugin_v1& descriptor, const std::map<std::string, std::string>& given);

// The text of the Error(usage) that action throws; fails the test and returns "" if there is none.
std::string usage_error(const std::function<void()>& action);

template <class Interface>
PluginObject<Interface>::PluginObject(const nsp_plugin_v1& descriptor, const std::map<std::string, std::string>& given)
    : options_(std::make_unique<Options>(options_of(descriptor, given))),
      log_(std::make_unique<LinesLog>()),
      object_(nullptr, descriptor.destroy) {
  const PluginContext context{*options_, *log_};
  object_.reset(static_cast<Interface*>(descriptor.create(&context)));
}

}  // namespace nsp::test
