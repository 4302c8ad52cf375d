// Everything stays on the device: acquire and release cost nothing.
#include "nsp/plugin.hpp"

#include "nsp/memory.hpp"

namespace nsp {
namespace {

class Resident : public LocCache {
 public:
  explicit Resident(const PluginContext&) {}

  void open(const StateStorage& storage) override { storage_ = &storage; }
  std::string place(const StateDecl&, int) const override { return "device"; }
  void prefetch(StateId, Range) override {}
  TensorView acquire(StateId state, Range range, Stream&) override {
    NSP_REQUIRE(storage_ != nullptr, "a cache is opened before it is used");
    ++counters_.hits;
    return storage_->view(state, range);
  }
  void release(StateId, Range, bool) override {}
  void invalidate(int) override {}
  CacheCounters counters() const override { return counters_; }

 private:
  const StateStorage* storage_ = nullptr;
  CacheCounters counters_;
};

}  // namespace
}  // namespace nsp

NSP_BUILTIN_PLUGIN(nsp_builtin_memory_resident, "memory", "resident", "0.1.0", "keeps every state on the device", nsp::LocCache,
                   nsp::Resident, nsp::no_options);
