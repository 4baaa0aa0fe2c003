#pragma once

#include <span>
#include <string_view>

namespace diapason::comm::sim {

// The files of the folder clusters/, embedded at build time.
struct Shipped {
  std::string_view name;
  std::string_view text;
};
std::span<const Shipped> ShippedClusters();

}  // namespace diapason::comm::sim
