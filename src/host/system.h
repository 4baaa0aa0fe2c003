#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/machine.h"

namespace diapason::host {

inline constexpr uint64_t kUnlimited = UINT64_MAX;

// Settings of the operating system that affect collectives. Machine describes the hardware; this
// describes its configuration. Unknown values are nullopt or empty.
struct System {
  std::optional<uint64_t> shm_bytes;  // /dev/shm
  std::optional<uint64_t> shm_free;   // on a live tree only
  // Of this process; may be kUnlimited.
  std::optional<uint64_t> memlock;
  bool may_lock = false;  // it has the capability to lock more than that
  std::optional<uint64_t> open_files;
  std::optional<uint64_t> processes;
  std::optional<uint64_t> stack;
  std::optional<int64_t> numa_balancing;
  std::string huge_pages;    // "always", "madvise", "never"
  std::string command_line;  // the kernel's
  // "off"; "passthrough": devices use physical addresses; "translated": every device access is
  // translated.
  std::string iommu;
  // Ports of PCIe switches and root ports at which access control (ACS) redirects traffic between
  // devices to the processor. nullopt: the registers cannot be read without root.
  std::optional<std::vector<std::string>> access_control;
  int pci_ports = 0;         // bridges on the bus
  bool peer_memory = false;  // nvidia_peermem, nv_peer_mem, or the AMD driver's registration
  bool dma_buf = false;      // the newer mechanism: kernel and driver can export GPU memory
  bool open_driver = false;  // NVIDIA's open kernel modules
  bool gdrcopy = false;      // the gdrdrv module
  bool rdma_files = false;   // /dev/infiniband exists
  bool switches = false;     // NVSwitch on the bus
  std::optional<bool> fabric_manager;  // runs; nullopt if processes of the host are not visible
};

System LookAtSystem(const RootFs& tree, const Machine& machine);

// A limit in the text of /proc/PID/limits, kUnlimited for "unlimited".
std::optional<uint64_t> LimitIn(const std::string& text, std::string_view name);

}  // namespace diapason::host
