#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/root_fs.h"

namespace diapason::host {

enum class Vendor : uint8_t { kNvidia, kAmd };

// The link of a PCI device: its current state, and the maximum of both ends.
struct PciLink {
  double gts = 0;  // giga-transfers per second; 0: not known
  double most_gts = 0;
  int width = 0;
  int most_width = 0;
};

struct Gpu {
  int index = 0;
  Vendor vendor = Vendor::kNvidia;
  std::string name;          // "NVIDIA H200", "AMD Instinct MI300X"
  std::string architecture;  // "sm_90", "gfx942"; "" if unknown
  std::string uuid;
  std::string pci;     // "0000:41:00.0"
  int numa_node = -1;  // -1: unknown, or the machine has one node only
  std::string cpus;    // near it, in the kernel's format: "0-31,64-95"
  uint64_t memory_bytes = 0;
  uint64_t memory_used = 0;
  PciLink link;
  int fabric_links = 0;       // active NVLink or XGMI links
  int fabric_links_down = 0;  // there, but not up
  uint64_t fabric_errors = 0;
  // Of NVSwitch's fabric manager: "completed", "in progress", "" for none.
  std::string fabric_state;
  int temperature_c = 0;
  double power_w = 0;
  double power_limit_w = 0;
  int clock_mhz = 0;
  int most_clock_mhz = 0;
  std::vector<std::string> throttling;  // current reasons for throttling: "thermal", "power brake"
  uint64_t ecc_uncorrected = 0;
  bool persistence = false;
  std::string mode;  // "default", "exclusive process", "prohibited"
  bool mig = false;
};

// Whether GPU a can access GPU b's memory, and how: one entry per ordered pair.
struct GpuPair {
  int from = 0;
  int to = 0;
  std::string path;  // "NV18", "PIX", "PXB", "PHB", "NODE", "SYS", "XGMI", as in nvidia-smi topo
  std::optional<bool> peer_read;  // what the driver says
};

// A port of an RDMA device.
struct RdmaPort {
  std::string device;  // "mlx5_0"
  int port = 1;
  std::string state;       // "ACTIVE"
  std::string link_layer;  // "InfiniBand" or "Ethernet"
  double gbits = 0;
  std::string interface;  // its network interface, "ens10f0np0"
  int numa_node = -1;
  std::string pci;
  std::vector<std::string> gids;  // "3: RoCE v2 ::ffff:10.0.0.1"; those that are set
  int rocev2_ipv4_gid = -1;       // the index of RoCE v2 over IPv4
  uint64_t link_downed = 0;
  uint64_t symbol_errors = 0;
};

struct NetInterface {
  std::string name;
  bool up = false;
  double gbits = 0;  // 0: not told
  int mtu = 0;
  bool virtual_one = false;  // lo, docker0, veth, bridges
  int numa_node = -1;
};

struct NumaNode {
  int index = 0;
  std::string cpus;
  uint64_t memory_bytes = 0;
};

// The hardware of a machine, as far as it can be read without root, without a GPU and without any
// tool installed. Unknown values are empty, zero or -1; `unknown` says why.
struct Machine {
  std::string host_name;
  std::string kernel;
  std::string distribution;
  std::string cpu_model;
  int sockets = 0;
  int cores = 0;                  // physical
  int threads = 0;                // logical
  std::vector<int> allowed_cpus;  // this process's affinity
  double cpu_quota = 0;           // of the cgroup, in CPUs; 0: none
  uint64_t memory_bytes = 0;
  uint64_t memory_limit = 0;      // of the cgroup; 0: none
  std::string memory_limit_file;  // which one says so
  uint64_t tasks_limit = 0;       // processes and threads that the cgroup may have; 0: no limit
  std::string tasks_limit_file;
  std::string governor;       // "performance"
  std::string isolated_cpus;  // isolcpus=
  std::string hypervisor;     // "kvm", "xen", ...; "" on metal
  std::string cloud;          // "aws", "azure", "gcp", ...; "" if unknown
  std::string container;      // "docker", "podman", "kubernetes", "apptainer", ...; "" outside
  std::vector<NumaNode> numa;
  std::vector<Gpu> gpus;  // those with a driver
  int gpus_on_bus = 0;    // data-centre GPUs on the PCI bus, with a driver or without
  std::vector<GpuPair> pairs;
  std::vector<RdmaPort> rdma;
  std::vector<NetInterface> interfaces;
  std::string driver;                // "580.95.05", "6.12.12"
  std::string driver_supports;       // "CUDA 13.0"
  std::vector<std::string> unknown;  // "NVML: libnvidia-ml.so.1 is not here"
};

// Reads /sys, /proc and, on a live tree, NVML (opened at run time). Takes milliseconds, unless the
// GPUs' driver has to wake up; after eight seconds NVML is skipped.
Machine LookAtMachine(const RootFs& tree, const Environment& environment);

}  // namespace diapason::host
