#pragma once

#include "host/machine.h"

// The parts of LookAtMachine; each fills in what it is named after.
namespace diapason::host {

void LookAtCpus(const RootFs& tree, Machine* machine);
// Hypervisor, cloud, container and the limits of the control group.
void LookAtSurroundings(const RootFs& tree, const Environment& environment, Machine* machine);
// What /proc/driver/nvidia, the kfd's topology and the PCI bus tell of the GPUs.
void LookAtGpus(const RootFs& tree, Machine* machine);
// What the driver's management library adds. On this machine only; bounded in time.
void AskNvml(const RootFs& tree, Machine* machine);
void LookAtNetworks(const RootFs& tree, Machine* machine);

// Node, CPUs near it and link of a PCI device, as the bus has them.
void FillFromPci(const RootFs& tree, Gpu* gpu);
// How two PCI devices reach each other: "PIX", "PXB", "PHB", "NODE", "SYS"; "" where the bus cannot
// tell.
std::string PciPath(const RootFs& tree, const std::string& one, const std::string& other);
// "CUDA 12.4" for driver 550.54; "" for one that is not known.
std::string CudaOfDriver(const std::string& driver);
// The text behind "key:" or "key " in lines of such pairs; "".
std::string ValueOf(const std::string& text, std::string_view key);

}  // namespace diapason::host
