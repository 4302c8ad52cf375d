// Two training runs compared: losses, bits of the weights, and every gradient of a step.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/train/local_job.hpp"

namespace nsp::test {

// Losses and gradient norms of all lines, relative.
void expect_losses(const LocalResult& a, const LocalResult& b, double relative);
// Weights of the last checkpoint, and those of every rank at the end: two jobs of as many ranks.
void expect_same_bits(const LocalResult& a, const LocalResult& b);

// Owned gradient sums of a step, collected from all ranks into whole tensors.
class GradientRecorder {
 public:
  // Any rank's thread; from LocalSettings::on_step.
  void record(TrainParts& parts);
  const std::map<std::string, std::vector<float>>& gradients() const { return gradients_; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<float>> gradients_;
};

// run_local with the gradients of its first step.
LocalResult run_recorded(LocalSettings settings, GradientRecorder& recorder);

// Each tensor by itself, relative L2.
void expect_close_gradients(const GradientRecorder& a, const GradientRecorder& b, double relative);

// A run that ends after first_steps and goes on from its checkpoint has the bits of one that was not interrupted.
void expect_resume_is_whole(LocalSettings settings, int64_t first_steps);

}  // namespace nsp::test
