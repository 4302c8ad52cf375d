#include "core/discover/launcher.hpp"

#include <cstdlib>
#include <optional>

namespace nsp {
namespace {

using Environment = std::function<const char*(const char*)>;

// A whole number >= 0 with nothing behind it, else nullopt.
std::optional<int> number(const Environment& environment, const char* name) {
  const char* text = name != nullptr ? environment(name) : nullptr;
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 0 || value > 1000000000) return std::nullopt;
  return static_cast<int>(value);
}

struct Family {
  const char* launcher;
  const char *rank, *world_size, *local_rank, *local_size;
};

// In this order: a launcher inside another one comes first. PMI_RANK and PMI_SIZE are MPICH's, Intel MPI's and Cray's, and Flux
// sets them too. Of MPT only the local rank is known.
constexpr Family kFamilies[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", nullptr},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"MPT", nullptr, nullptr, "MPT_LRANK", nullptr},
};

// "4" or "2(x3),1": tasks on each node of the step; entry of this node.
int tasks_on_node(const char* text, int node) {
  while (text != nullptr && *text != '\0') {
    char* end = nullptr;
    const long tasks = std::strtol(text, &end, 10);
    long repeat = 1;
    if (end == text) return 0;
    if (end[0] == '(' && end[1] == 'x') {
      repeat = std::strtol(end + 2, &end, 10);
      if (*end != ')' || repeat < 1) return 0;
      ++end;
    }
    if (node < repeat) return static_cast<int>(tasks);
    node -= static_cast<int>(repeat);
    text = *end == ',' ? end + 1 : end;
    if (*end != ',') return 0;
  }
  return 0;
}

// srun starts steps; a batch script (and what it runs without srun) has SLURM_NTASKS and even SLURM_PROCID, but no step.
std::optional<Launch> slurm_step(const Environment& environment) {
  const auto rank = number(environment, "SLURM_PROCID");
  auto step = number(environment, "SLURM_STEP_ID");
  if (!step) step = number(environment, "SLURM_STEPID");
  // Slurm numbers the batch script's and an interactive shell's own step just below 2^32, which number() does not take.
  if (!rank || !step) return std::nullopt;
  Launch launch;
  launch.launcher = "Slurm";
  launch.rank = *rank;
  auto size = number(environment, "SLURM_STEP_NUM_TASKS");
  if (!size) size = number(environment, "SLURM_NTASKS");
  launch.world_size = size.value_or(0);
  launch.local_rank = number(environment, "SLURM_LOCALID").value_or(0);
  const char* layout = environment("SLURM_STEP_TASKS_PER_NODE");
  if (layout == nullptr) layout = environment("SLURM_TASKS_PER_NODE");
  launch.local_size = tasks_on_node(layout, number(environment, "SLURM_NODEID").value_or(0));
  return launch;
}

}  // namespace

Launch read_launch(const Environment& environment) {
  Launch launch;
  for (const Family& family : kFamilies) {
    const auto rank = number(environment, family.rank);
    auto local_rank = number(environment, family.local_rank);
    if (!rank && !local_rank) continue;
    launch.launcher = family.launcher;
    launch.rank = rank.value_or(0);
    launch.world_size = number(environment, family.world_size).value_or(0);
    if (!local_rank) local_rank = number(environment, "PMI_LOCAL_RANK");
    auto local_size = number(environment, family.local_size);
    if (!local_size) local_size = number(environment, "PMI_LOCAL_SIZE");
    launch.local_rank = local_rank.value_or(0);
    launch.local_size = local_size.value_or(0);
    // srun with PMI-2 sets PMI_RANK; where the rank lies on its host only Slurm says then.
    if (!local_rank) {
      if (const auto slurm = slurm_step(environment)) {
        launch.local_rank = slurm->local_rank;
        if (!local_size) launch.local_size = slurm->local_size;
      }
    }
    return launch;
  }
  return slurm_step(environment).value_or(launch);
}

Launch read_launch() {
  return read_launch([](const char* name) { return static_cast<const char*>(std::getenv(name)); });
}

}  // namespace nsp
