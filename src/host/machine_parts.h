#pragma once

#include "host/machine.h"

// The parts of LookAtMachine, one function each.
namespace diapason::host {

void LookAtCpus(const RootFs& tree, Machine* machine);
// Hypervisor, cloud, container and the limits of the cgroup.
void LookAtSurroundings(const RootFs& tree, const Environment& environment, Machine* machine);
// GPU data from /proc/driver/nvidia, the kfd's topology and the PCI bus.
void LookAtGpus(const RootFs& tree, Machine* machine);
// Adds the data of NVML. On this machine only; bounded in time.
void AskNvml(const RootFs& tree, Machine* machine);
void LookAtNetworks(const RootFs& tree, Machine* machine);

// NUMA node, nearby CPUs and link of a PCI device, from the bus.
void FillFromPci(const RootFs& tree, Gpu* gpu);
// The path between two PCI devices: "PIX", "PXB", "PHB", "NODE", "SYS"; "" if the bus does not
// tell.
std::string PciPath(const RootFs& tree, const std::string& one, const std::string& other);
// "CUDA 12.4" for driver 550.54; "" for an unknown one.
std::string CudaOfDriver(const std::string& driver);
// The text after "key:" or "key " in lines of such pairs; "" if there is none.
std::string ValueOf(const std::string& text, std::string_view key);

}  // namespace diapason::host
