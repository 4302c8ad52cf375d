// What the program that started this process says about it, before any communication.
#pragma once

#include <functional>
#include <string>

namespace nsp {

struct Launch {
  std::string launcher;  // "Open MPI", "Slurm", ...; empty: started by hand
  int rank = 0;
  int world_size = 0;  // ranks that the launcher says it started; 0 = it does not say
  int local_rank = 0;  // place among the ranks of this host
  int local_size = 0;  // ranks on this host; 0 = it does not say
};

// Reads the launcher's environment variables. The innermost launcher counts: mpirun inside a Slurm job is Open MPI. In a Slurm
// batch script itself, which is one process though SLURM_NTASKS is set, there is no launcher.
// environment: the value of a variable or nullptr, as std::getenv.
Launch read_launch(const std::function<const char*(const char*)>& environment);
Launch read_launch();

}  // namespace nsp
