#include "core/plugin/builtins.hpp"

extern const nsp_plugin_v1 nsp_builtin_sync_ddp;
extern const nsp_plugin_v1 nsp_builtin_parallel_dp;
extern const nsp_plugin_v1 nsp_builtin_memory_resident;
extern const nsp_plugin_v1 nsp_builtin_optimizer_adamw;

namespace nsp {

extern const nsp_plugin_v1 nsp_builtin_comm_self;

std::vector<const nsp_plugin_v1*> builtin_plugins() {
  return {&nsp_builtin_sync_ddp, &nsp_builtin_parallel_dp, &nsp_builtin_memory_resident, &nsp_builtin_optimizer_adamw,
          &nsp_builtin_comm_self};
}

}  // namespace nsp
