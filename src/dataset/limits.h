#pragma once

#include <optional>
#include <string>

namespace diapason::dataset {

// Published peak bandwidths of a GPU, in bytes per second.
struct GpuLimits {
  const char* name;        // as it appears in device names
  double link;             // to other GPUs, one direction, all links together
  double memory;           // its own memory
  bool reduces_in_switch;  // NVLink SHARP: a switch reduces, so busbw may exceed the link
};

// For a device name or a machine's "8x NVIDIA A100-SXM4-80GB"; nullopt if it is not in the table.
std::optional<GpuLimits> LimitsOf(const std::string& gpu);

}  // namespace diapason::dataset
