#include "core/app/process.hpp"

#include <fcntl.h>
#include <malloc.h>

#include <cstdlib>
#include <initializer_list>

namespace nsp {

void tune_process() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, 64 << 20);
  setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
}

void open_standard_streams() {
  for (const int stream : {0, 1, 2})  // open() takes the lowest number that is free
    if (::fcntl(stream, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY));
}

}  // namespace nsp
