// How far the readings of prepare are, told to whoever wants to know. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace nsp {

class ReadMeter {
 public:
  // tell(done, total): may throw to end the reading; outlives this object and may be empty.
  ReadMeter(const std::function<void(int64_t, int64_t)>& tell, int64_t total) : tell_(tell), total_(total) {}
  void add(int64_t bytes) {
    done_ += bytes;
    if (tell_) tell_(done_, std::max(total_, done_));
  }
  void expect(int64_t more) { total_ = done_ + more; }

 private:
  const std::function<void(int64_t, int64_t)>& tell_;
  int64_t total_, done_ = 0;
};

}  // namespace nsp
