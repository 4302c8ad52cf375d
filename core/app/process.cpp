#include "core/app/process.hpp"

#include <malloc.h>

#include <cstdlib>

namespace nsp {

void tune_process() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, 64 << 20);
  setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
}

}  // namespace nsp
