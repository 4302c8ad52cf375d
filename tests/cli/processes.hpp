// The processes that a launcher has started. Open MPI gives each rank a process group of its own, so a signal to the group of
// mpirun does not reach them.
#pragma once

#include <sys/types.h>

#include <vector>

namespace nsp::test {

// Living processes below root, all generations, root not among them. Empty where root is gone.
std::vector<pid_t> descendants(pid_t root);
// SIGKILL to root and to everything below it, the launcher first, so that it cannot clean up.
void kill_tree(pid_t root);

// Until none of them runs any more: a process that was killed while it writes may still take a moment. A zombie has ended.
void wait_until_gone(const std::vector<pid_t>& processes);

}  // namespace nsp::test
