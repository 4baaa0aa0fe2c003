#pragma once

#include <string>

namespace diapason {

// Identifies the type of this machine, to check whether a policy was made for such a machine: its
// GPUs as the driver lists them, for example "8x NVIDIA A100-SXM4-80GB" or "8x gfx950". Empty if no
// driver reports any. Reads a few small files below `root` ("/", or a copy of it for tests); needs
// no GPU library.
std::string MachineFingerprint(const std::string& root = "/");

// The AMD architecture of this machine's GPUs, such as "gfx950"; empty if there are none or they
// differ.
std::string AmdArchitecture(const std::string& root = "/");

// The version of the GPU's kernel driver, such as "550.54.15"; empty if unknown.
std::string DriverVersion(const std::string& root = "/");

}  // namespace diapason
