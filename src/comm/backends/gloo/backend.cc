#include "comm/backend.h"

#include <gloo/config.h>

#include <cstring>

#include "base/text.h"
#include "base/version.h"
#include "comm/backends/gloo/communicator.h"
#include "comm/backends/gloo/library.h"

namespace diapason::comm {
namespace {

class GlooBackend : public Backend {
 public:
  BackendInfo Look(const RankInfo& place) const override {
    BackendInfo info;
    info.version = Format("{}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
    const Result<std::shared_ptr<gloo::transport::Device>> device = OpenGlooDevice(place);
    if (!device.ok()) {
      info.reason = device.status().message();
      return info;
    }
    info.usable = true;
    info.devices = "tcp";
    return info;
  }

  Result<std::unique_ptr<Communicator>> Create(const Start& start) override {
    std::shared_ptr<gloo::transport::Device> opened;
    if (start.place.size > 1) {
      ASSIGN_OR_RETURN(opened, OpenGlooDevice(start.place));
    }
    std::vector<int> members;
    for (int rank = 0; rank < start.place.size; ++rank) members.push_back(rank);
    return GlooCommunicator::Create(start.place.rank, std::move(members), start.name, start.store,
                                    std::move(opened), start.options->timeout,
                                    std::chrono::steady_clock::now() + start.timeout);
  }
};

}  // namespace
}  // namespace diapason::comm

extern "C" __attribute__((visibility("default"))) diapason::comm::Backend* diapason_comm_module(
    const char* version) {
  static diapason::comm::GlooBackend backend;
  return std::strcmp(version, diapason::kVersion) == 0 ? &backend : nullptr;
}
