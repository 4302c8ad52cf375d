// The topology of a job on machines that are described, not looked at: what `nsp_app plan --devices` plans for.
#pragma once

#include <string>
#include <vector>

#include "core/discover/device_kinds.hpp"
#include "core/discover/host.hpp"
#include "core/discover/topology.hpp"

namespace nsp {

struct DeviceCount {
  DeviceKind kind;
  int count = 0;  // ranks, one for each device
};

// "h100:32,a6000:32". Error(usage): an unknown kind, no count, a count that is not a positive number.
std::vector<DeviceCount> parse_devices(const std::string& text);

// What a list of devices does not say. 0 = the default, which depends on the kind.
struct MachineDescription {
  int per_host = 0;          // ranks of a host: 8; for cpu the cores that this process may use
  int64_t memory = 0;        // bytes of device memory of a rank: the kind's; for cpu its share of the host's
  int64_t host_memory = 0;   // bytes of a host: not known; for cpu that of this machine
  int threads = 0;           // of a cpu rank: its share of this machine's cores
  DType dtype = DType::f32;  // of matrix products, for the nominal peaks
  std::string cpu_backend;   // module of cpu ranks
};

// Ranks in the order of the list. Each entry begins a new host; its last one may hold fewer ranks. Hosts are named after the
// kind: h100-1, h100-2, ... cpu hosts are like `here`.
Topology describe_topology(const std::vector<DeviceCount>& devices, const MachineDescription& machine, const HostInfo& here);

}  // namespace nsp
