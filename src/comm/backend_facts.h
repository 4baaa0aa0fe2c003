#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "comm/gpu/runtime.h"
#include "domain/vocabulary.h"

namespace diapason::comm {

class Backend;

// What a backend is. What it can choose are facts of its library: CanChoose, ChannelLimit and
// Protocols in domain/vocabulary.h.
struct BackendFacts {
  const char* name = "";
  // Whose configurations its calls can have; none: those of the simulated cluster's library.
  std::optional<Library> library = {};
  // The GPUs in whose memory it works; null: host memory.
  Result<gpu::Runtime*> (*gpus)() = nullptr;
  // Never chosen by `auto`, and all its ranks can be threads of one process.
  bool simulated = false;
  // Its ranks find each other by themselves, without a rendezvous store.
  bool own_store = false;
  // mpirun has to start its ranks; others can be started by `diapason launch`.
  bool mpirun = false;
  // A started call makes progress only while the program asks for it.
  bool polls = false;
  int ranks = 0;  // that are started on a host by default; 0: one for each GPU, or 2
  // Null: the module libdiapason-comm-<name>.so, which is built where `package` is installed.
  Backend* (*built_in)() = nullptr;
  const char* package = "";
};

// All backends, in order of preference, the simulated ones last.
std::span<const BackendFacts> AllBackends();
std::vector<std::string> BackendNames();

// Any other name ("auto", a replay) has the defaults above.
const BackendFacts& FactsOfBackend(std::string_view name);
// The name of the backend that runs a library.
std::string BackendOf(Library library);
// The library that a backend runs, or that the simulated cluster has.
Result<Library> LibraryOf(const std::string& backend, const std::string& cluster);

}  // namespace diapason::comm
