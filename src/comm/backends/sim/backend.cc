#include "comm/backend.h"

#include <map>
#include <mutex>

#include "base/text.h"
#include "base/version.h"
#include "comm/backends/sim/communicator.h"

namespace diapason::comm {
namespace sim {
namespace {

// Thousands of ranks load the same shipped description: it is parsed once and shared while in use.
// A file is read each time, since it may have changed.
Result<std::shared_ptr<const Cluster>> Load(const std::string& name) {
  static std::mutex mutex;
  static auto* const kLoaded = new std::map<std::string, std::weak_ptr<const Cluster>>;
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = kLoaded->find(name); found != kLoaded->end()) {
    if (std::shared_ptr<const Cluster> cluster = found->second.lock()) return cluster;
  }
  ASSIGN_OR_RETURN(Cluster loaded, LoadCluster(name));
  auto cluster = std::make_shared<const Cluster>(std::move(loaded));
  if (ShippedText(name).ok()) (*kLoaded)[name] = cluster;
  return std::shared_ptr<const Cluster>(cluster);
}

class SimBackendImpl : public Backend {
 public:
  BackendInfo Look(const RankInfo& /*place*/) const override {
    BackendInfo info;
    info.name = "sim";
    info.usable = true;
    info.version = kVersion;
    info.devices = "simulated: " + Join(ClusterNames(), ", ");
    return info;
  }

  Result<std::unique_ptr<Communicator>> Create(const Start& start) override {
    if (start.options == nullptr) return Internal("the simulated cluster needs options");
    const GroupOptions& options = *start.options;
    const RankInfo& place = start.place;
    const Deadline deadline = std::chrono::steady_clock::now() + start.timeout;
    const auto failed = [](const Status& status) {
      return status.WithContext("simulated cluster");
    };
    if (options.cluster.empty()) {
      return failed(
          Invalid("which one? Name it in GroupOptions::cluster or DIAPASON_CLUSTER; "
                  "known are " +
                  Join(ClusterNames(), ", ") + " (or give the path of a .toml file)"));
    }
    Result<std::shared_ptr<const Cluster>> cluster = Load(options.cluster);
    if (!cluster.ok()) return failed(cluster.status());
    const Result<RankLayout> layout = FillNodes(*cluster.value(), place.size);
    if (!layout.ok()) return failed(layout.status());
    if (place.rank < 0 || place.rank >= place.size) {
      return failed(Invalid(Format("rank {} of {}", place.rank, place.size)));
    }
    const std::string key =
        Format("{}@{}:{}", start.name, options.master_addr, options.master_port);
    Result<std::shared_ptr<World>> world =
        Meet(key, start.name, place.rank, place.size, cluster.value(), options.seed, deadline);
    if (!world.ok()) return failed(world.status());
    return std::unique_ptr<Communicator>(std::make_unique<SimCommunicator>(
        std::move(world).value(), place.rank, std::make_shared<RankState>(), start.timeout));
  }
};

}  // namespace
}  // namespace sim

Backend* SimBackend() {
  static sim::SimBackendImpl backend;
  return &backend;
}

}  // namespace diapason::comm
