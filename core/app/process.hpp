// What a process sets up before it loads a module or allocates anything large.
#pragma once

namespace nsp {

// Keeps big allocations mapped (a fresh page costs microseconds, and glibc gives every block above 128 KiB back at once) and
// makes waiting OpenMP threads sleep, since compute, BLAS and MPI share the cores. Values that the user set stay.
void tune_process();

}  // namespace nsp
