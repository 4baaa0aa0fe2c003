#include "comm/backend_facts.h"

#include "base/text.h"
#include "comm/backends/sim/cluster.h"

namespace diapason::comm {

// Those that are built in define these in their folders.
Backend* NcclBackend();
Backend* RcclBackend();
Backend* SimBackend();

namespace {

constexpr BackendFacts kBackends[] = {
    {.name = "nccl", .library = Library::kNccl, .gpus = &gpu::Cuda, .built_in = &NcclBackend},
    {.name = "rccl", .library = Library::kRccl, .gpus = &gpu::Hip, .built_in = &RcclBackend},
    {.name = "gloo", .library = Library::kGloo, .ranks = 2, .package = "libgloo-dev"},
    {.name = "mpi",
     .library = Library::kOpenMpi,
     .own_store = true,
     .mpirun = true,
     .polls = true,
     .ranks = 2,
     .package = "libopenmpi-dev"},
    {.name = "sim", .simulated = true, .own_store = true, .ranks = 4, .built_in = &SimBackend},
};

}  // namespace

std::span<const BackendFacts> AllBackends() { return kBackends; }

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const BackendFacts& facts : kBackends) names.emplace_back(facts.name);
  return names;
}

const BackendFacts& FactsOfBackend(std::string_view name) {
  static constexpr BackendFacts kNone{};
  for (const BackendFacts& facts : kBackends) {
    if (facts.name == name) return facts;
  }
  return kNone;
}

std::string BackendOf(Library library) {
  for (const BackendFacts& facts : kBackends) {
    if (facts.library == library) return facts.name;
  }
  return "";
}

Result<Library> LibraryOf(const std::string& backend, const std::string& cluster) {
  const BackendFacts& facts = FactsOfBackend(backend);
  if (facts.library) return *facts.library;
  if (!facts.simulated) {
    return Invalid("unknown backend '" + backend + "'" + Suggestion(backend, BackendNames()));
  }
  ASSIGN_OR_RETURN(const sim::Cluster loaded, sim::LoadCluster(cluster));
  return loaded.library;
}

}  // namespace diapason::comm
