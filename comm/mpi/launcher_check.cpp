#include "comm/mpi/launcher_check.hpp"

#include <cstdlib>

#include "nsp/error.hpp"

namespace nsp {

void check_launcher(int size, const std::string& library, const std::function<const char*(const char*)>& environment) {
  // The innermost launcher counts. Inside a Slurm batch script SLURM_NTASKS describes the whole allocation; only a step (srun)
  // starts that many processes.
  const char* variable = nullptr;
  if (environment("OMPI_COMM_WORLD_SIZE") != nullptr) {
    variable = "OMPI_COMM_WORLD_SIZE";
  } else if (environment("PMI_SIZE") != nullptr) {
    variable = "PMI_SIZE";
  } else if (environment("SLURM_STEP_ID") != nullptr && environment("SLURM_NTASKS") != nullptr) {
    variable = "SLURM_NTASKS";
  }
  if (variable == nullptr) return;
  const std::string started = environment(variable);
  char* end = nullptr;
  const long expected = std::strtol(started.c_str(), &end, 10);
  if (end == started.c_str() || *end != '\0' || expected == size) return;
  throw Error(ErrorKind::comm,
              "the launcher and MPI do not fit together. The launcher started " + started + " processes (" + variable +
                  "), but MPI sees a job of " + std::to_string(size) +
                  ", so each would train alone. Start nsp with the launcher of the MPI that its mpi module was built with (" + library +
                  "): its own mpirun, or srun --mpi=pmix if Slurm supports it for that library; or rebuild the module with the MPI of this "
                  "launcher.");
}

}  // namespace nsp
