#pragma once

#include "advise/host/machine.h"

// The parts of LookAtMachine; each fills in what it is named after.
namespace diapason::advise {

void LookAtCpus(const Tree& tree, Machine* machine);
// Hypervisor, cloud, container and the limits of the control group.
void LookAtSurroundings(const Tree& tree, const Environment& environment, Machine* machine);
// What /proc/driver/nvidia, the kfd's topology and the PCI bus tell of the GPUs.
void LookAtGpus(const Tree& tree, Machine* machine);
// What the driver's management library adds. On this machine only; bounded in time.
void AskNvml(const Tree& tree, Machine* machine);
void LookAtNetworks(const Tree& tree, Machine* machine);

// Node, CPUs near it and link of a PCI device, as the bus has them.
void FillFromPci(const Tree& tree, Gpu* gpu);
// How two PCI devices reach each other: "PIX", "PXB", "PHB", "NODE", "SYS"; "" where the bus cannot
// tell.
std::string PciPath(const Tree& tree, const std::string& one, const std::string& other);
// "CUDA 12.4" for driver 550.54; "" for one that is not known.
std::string CudaOfDriver(const std::string& driver);
// The text behind "key:" or "key " in lines of such pairs; "".
std::string ValueOf(const std::string& text, std::string_view key);

}  // namespace diapason::advise
