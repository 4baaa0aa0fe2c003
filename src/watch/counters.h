#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/root_fs.h"

namespace diapason::watch {

// Counters of a network interface or of a port of an RDMA device, since it came up.
struct NetCounters {
  std::string name;  // "ens3", "mlx5_0:1"
  bool rdma = false;
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;
  uint64_t errors = 0;   // errors and drops, both directions
  uint64_t waiting = 0;  // RDMA: ticks in which data waited to be sent
  // RDMA: further counters of errors and congestion: "packet_seq_err", "out_of_buffer".
  std::map<std::string, uint64_t> trouble;
};

// The interfaces of a process's network namespace: they count for all processes in it.
std::vector<NetCounters> InterfacesOf(const RootFs& tree, pid_t pid);
// Identifies the namespace; "" if it cannot be read.
std::string NetNamespaceOf(const RootFs& tree, pid_t pid);
// The ports of the machine's RDMA devices.
std::vector<NetCounters> RdmaPorts(const RootFs& tree);

// The traffic between two samples of the same interface.
struct NetRate {
  std::string name;
  bool rdma = false;
  double received_per_s = 0;  // bytes
  double sent_per_s = 0;
  double errors_per_s = 0;
  double waiting_per_s = 0;
  std::map<std::string, double> trouble_per_s;  // those that changed
};
// In the order of `now`; new interfaces, and counters that went back (a device was reset), count as
// zero.
std::vector<NetRate> NetRates(const std::vector<NetCounters>& before,
                              const std::vector<NetCounters>& now, double seconds);

}  // namespace diapason::watch
