// What a process sets up before it loads a module or allocates anything large.
#pragma once

namespace nsp {

// Keeps big allocations mapped (a fresh page costs microseconds, and glibc gives every block above 128 KiB back at once) and
// makes waiting OpenMP threads sleep, since compute, BLAS and MPI share the cores. Values that the user set stay.
void tune_process();

// Opens /dev/null in place of a standard stream that was closed, before another file gets its number and with it what is printed.
// For reading, so that writing to it fails as before.
void open_standard_streams();

}  // namespace nsp
