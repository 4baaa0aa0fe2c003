#include "comm/backends/sim/cluster.h"

#include "base/file.h"
#include "base/text.h"
#include "comm/backends/sim/shipped.h"

namespace diapason::comm::sim {
namespace {

constexpr size_t kMostBytes = 256 * 1024;

bool IsPath(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".toml");
}

}  // namespace

std::string Describe(const Cluster& cluster) {
  return Format("{}: {} (simulated)", cluster.name, cluster.title);
}

std::vector<std::string> ClusterNames() {
  std::vector<std::string> names;
  for (const Shipped& shipped : ShippedClusters()) names.emplace_back(shipped.name);
  return names;
}

Result<std::string_view> ShippedText(const std::string& name) {
  for (const Shipped& shipped : ShippedClusters()) {
    if (shipped.name == name) return shipped.text;
  }
  return NotFound(Format("unknown cluster '{:.60}'", name) + Suggestion(name, ClusterNames()) +
                  " (or give the path of a .toml file)");
}

Result<Cluster> LoadCluster(const std::string& name_or_path) {
  if (name_or_path.empty()) {
    return Invalid("no cluster is named; known are " + Join(ClusterNames(), ", ") +
                   " (or give the path of a .toml file)");
  }
  if (IsPath(name_or_path)) {
    const Result<std::string> text = ReadFile(name_or_path, kMostBytes);
    if (!text.ok()) return text.status().WithContext("reading a cluster");
    return ParseCluster(text.value(), name_or_path);
  }
  ASSIGN_OR_RETURN(const std::string_view text, ShippedText(name_or_path));
  return ParseCluster(text, name_or_path);
}

}  // namespace diapason::comm::sim
