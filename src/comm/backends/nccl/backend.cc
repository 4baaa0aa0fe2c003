#include "comm/backends/nccl/backend.h"

#include <cstdlib>
#include <set>

#include "base/host_name.h"
#include "base/text.h"
#include "comm/backends/nccl/communicator.h"
#include "comm/backends/nccl/connection.h"
#include "comm/backends/nccl/pin.h"
#include "comm/gpu/nvlink.h"
#include "domain/library_version.h"

namespace diapason::comm::nccl {
namespace {

using std::chrono::steady_clock;

// What the ranks exchange at init.
struct Card {
  int version = 0;
  std::string device;  // the host's name and the device's id there

  std::string Encode() const { return Format("{} {}", version, device); }
  static Result<Card> Decode(const std::string& text) {
    Card card;
    const size_t blank = text.find(' ');
    int64_t version = 0;
    if (blank == std::string::npos || !ParseSigned(text.substr(0, blank), &version)) {
      return Internal("a rank has introduced itself in another way: '" + text + "'");
    }
    card.version = static_cast<int>(version);
    card.device = text.substr(blank + 1);
    return card;
  }
};

Result<std::vector<Card>> Introduce(const Start& start, const Card& mine,
                                    const std::vector<int>& members, Deadline deadline) {
  ASSIGN_OR_RETURN(
      const std::vector<std::string> texts,
      start.store->Gather("nccl/" + start.name + "/card", members, mine.Encode(), deadline));
  std::vector<Card> cards;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(Card card, Card::Decode(text));
    cards.push_back(std::move(card));
  }
  return cards;
}

bool ShareDevices(const std::vector<Card>& cards) {
  std::set<std::string> devices;
  for (const Card& card : cards) devices.insert(card.device);
  return devices.size() < cards.size();
}

// Unless the user permits it, the library refuses two ranks of one host on one device. With
// different host ids it takes them for two hosts, and they communicate over the network: slow, but
// it lets a machine with one GPU run several ranks.
void SeparateRanks(const Start& start, const NcclApi& api) {
  if (std::getenv("NCCL_HOSTID") != nullptr) return;
  if (SharesGpuInsideHost(api.library, api.version, ProcessEnvironment())) {
    if (start.place.rank == 0) {
      start.log(
          "ranks share a GPU inside one host, as NCCL_MULTI_RANK_GPU_ENABLE permits: the channels "
          "of all ranks must fit on the GPU at once, so lower NCCL_MAX_CTAS if a call hangs");
    }
    return;
  }
  const std::string id = Format("{}-{}", HostName(), start.place.rank);
  setenv("NCCL_HOSTID", id.c_str(), 0);
  std::string told = "NCCL_HOSTID=" + id;
  if (start.place.nodes == 1 && std::getenv("NCCL_SOCKET_IFNAME") == nullptr) {
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    told += " NCCL_SOCKET_IFNAME=lo";
  }
  if (start.place.rank == 0) {
    start.log(Format("ranks share a GPU: {} gets {}, and treats every rank as a host of its own",
                     api.title, told));
  }
}

}  // namespace

bool SharesGpuInsideHost(Library library, int version, const Environment& environment) {
  constexpr int kFirst = 23003;
  if (library != Library::kNccl || LibraryVersionOfCode(version) < kFirst) return false;
  // As the library parses it.
  const std::string value = environment.Get("NCCL_MULTI_RANK_GPU_ENABLE").value_or("");
  return std::strtoll(value.c_str(), nullptr, 0) != 0;
}

BackendInfo GpuBackend::Look(const RankInfo& /*place*/) const {
  BackendInfo info;
  info.name = std::string(LibraryName(flavor_.library));
  // The driver first: without one, the large library need not be opened.
  const Result<gpu::Runtime*> runtime = flavor_.runtime();
  if (!runtime.ok()) {
    info.reason = runtime.status().message();
    return info;
  }
  info.devices = gpu::DevicesText(*runtime.value());
  const Result<const NcclApi*> api = OpenNccl(flavor_);
  if (!api.ok()) {
    info.reason = api.status().message();
    return info;
  }
  info.version = api.value()->VersionText();
  info.usable = true;
  return info;
}

Result<std::unique_ptr<Communicator>> GpuBackend::Create(const Start& start) {
  const Deadline deadline = steady_clock::now() + start.timeout;
  ASSIGN_OR_RETURN(gpu::Runtime* const runtime, flavor_.runtime());
  ASSIGN_OR_RETURN(const NcclApi* const api, OpenNccl(flavor_));

  NcclCommunicator::Parts parts;
  parts.api = api;
  parts.runtime = runtime;
  parts.device = start.place.local_rank % runtime->DeviceCount();
  parts.choose = start.options != nullptr && start.options->choose;
  const std::string device_id = runtime->DeviceId(parts.device);

  Membership membership;
  membership.rank = start.place.rank;
  membership.name = start.name;
  membership.store = start.store;
  membership.log = start.log;
  for (int rank = 0; rank < start.place.size; ++rank) membership.job_ranks.push_back(rank);

  const Card mine{parts.api->version, HostName() + "/" + device_id};
  ASSIGN_OR_RETURN(const std::vector<Card> cards,
                   Introduce(start, mine, membership.job_ranks, deadline));
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    const int version = cards[rank].version;
    if (version != cards[0].version) {
      return Unavailable(Format("rank 0 has {} {} and rank {} has {}: all need the same version",
                                parts.api->title, cards[0].version, rank, version));
    }
  }
  const bool shared = ShareDevices(cards);
  if (shared) SeparateRanks(start, *parts.api);
  if (parts.choose) PluginPin::AskForPlugin();
  if (!shared && start.place.nodes == 1 && start.place.size > 1 &&
      flavor_.library == Library::kNccl) {
    parts.link_peak = gpu::NvlinkPeak(device_id);
  }
  return NcclCommunicator::Make(parts, std::move(membership), deadline);
}

}  // namespace diapason::comm::nccl

namespace diapason::comm {

Backend* NcclBackend() {
  static auto* const backend =
      new nccl::GpuBackend({Library::kNccl, Setting::kNcclLibrary, {"libnccl.so.2"}, &gpu::Cuda});
  return backend;
}

}  // namespace diapason::comm
