// Distributed data parallelism: gradients are summed over all replicas in every step, so replicas stay equal.
//
// Each segment's owned range is summed as soon as backward has finished it, in buckets, while backward goes on below it.
#include "nsp/plugin.hpp"

#include <algorithm>
#include <optional>

#include "nsp/sync_policy.hpp"

namespace nsp {
namespace {

class Ddp : public SyncPolicy {
 public:
  explicit Ddp(const PluginContext& context) : payload_(context.options.text("reduce_dtype")) {}

  bool sums_gradients() const override { return true; }
  bool replicas_differ(int) const override { return false; }
  std::vector<StateDecl> declare(const std::vector<StateDecl>&, int) override { return {}; }

  std::vector<TrafficLine> traffic(int64_t parameters, int replicas) const override {
    if (replicas <= 1) return {};
    const double bytes = 2.0 * (replicas - 1) * 4.0 * static_cast<double>(parameters);
    return {{"sum of gradients in " + payload_ + " every step", bytes, bytes}};
  }
  int64_t staging_bytes(int, int64_t) const override { return 0; }

  void open(const SyncContext& context) override {
    NSP_REQUIRE(context.bucket_elements > 0, "a bucket has elements");
    context_.emplace(context);
  }
  void begin_step(int64_t) override {}

  void gradient_ready(Range, TensorView gradient, const After& after) override {
    if (context_->replicas == 1) return;
    const int64_t n = gradient.elements();
    for (int64_t lo = 0; lo < n; lo += context_->bucket_elements)
      works_.push_back(context_->replicate.all_reduce(gradient.slice(lo, std::min(n, lo + context_->bucket_elements)), after));
  }

  void finish_step(int64_t) override {
    for (const WorkPtr& work : works_) context_->wait.wait(work);
    works_.clear();
  }
  std::string synced(int64_t) const override { return ""; }

 private:
  const std::string payload_;
  std::optional<SyncContext> context_;  // set by open()
  std::vector<WorkPtr> works_;          // of this step
};

const nsp_option rows[] = {{"reduce_dtype", "choice:fp32", "fp32", "number format in which gradients are summed over replicas"}};

}  // namespace
}  // namespace nsp

NSP_BUILTIN_PLUGIN(nsp_builtin_sync_ddp, "sync", "ddp", "0.1.0", "sums gradients over all replicas in every step", nsp::SyncPolicy,
                   nsp::Ddp, nsp::rows);
