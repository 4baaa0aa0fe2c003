#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "diapason/config.h"

namespace diapason {

// The vocabulary of each library: one table for names and numbers. Values are the library's own
// numbers (for NCCL and RCCL those of the plugin interface, for Open MPI those of coll_tuned), so
// that no translation is needed. They are stored in files and never change.
//
// Parsing ignores case, '_' and '-': "All_Gather", "allgather" and "ALLGATHER" are one name.
// Printing uses one form. An unknown name is an error with a suggestion, never a guess.
enum class Library : uint8_t { kNccl = 0, kRccl = 1, kGloo = 2, kOpenMpi = 3 };
inline constexpr int kLibraryCount = 4;

enum class Collective : uint8_t {
  kBroadcast = 0,
  kReduce = 1,
  kAllGather = 2,
  kReduceScatter = 3,
  kAllReduce = 4,
  kAllToAll = 5,
};
inline constexpr int kCollectiveCount = 6;
// NCCL asks a tuner about the first five only. RCCL also asks about variants of alltoall, by
// numbers that differ between releases and with one configuration on offer; these are left to the
// library.
inline constexpr int kAskedCollectiveCount = 5;

// NCCL's and RCCL's algorithms and protocols.
inline constexpr int kTree = 0;
inline constexpr int kRing = 1;
inline constexpr int kCollNetDirect = 2;
inline constexpr int kCollNetChain = 3;
inline constexpr int kNvls = 4;
inline constexpr int kNvlsTree = 5;
inline constexpr int kPat = 6;
// Diapason's own number for a code path that is measured and cannot be chosen.
inline constexpr int kRcclDirect = 64;
inline constexpr int kLl = 0;
inline constexpr int kLl128 = 1;
inline constexpr int kSimple = 2;

Result<Library> ParseLibrary(std::string_view name);
std::string_view LibraryName(Library library);
// The name in prose: "NCCL", "Open MPI".
std::string_view LibraryTitle(Library library);
// Whether it loads tuner plugins. Such a library runs on GPUs, and its configurations are pairs of
// an algorithm and a protocol.
inline bool AsksTuner(Library library) {
  return library == Library::kNccl || library == Library::kRccl;
}
// Whether a segment size can be chosen.
inline bool HasSegments(Library library) { return library == Library::kOpenMpi; }
// Whether anything can be chosen for a collective.
bool CanChoose(Library library, Collective collective);

Result<Collective> ParseCollective(Library library, std::string_view name);
std::string_view CollectiveName(Collective collective);

// Open MPI numbers its algorithms separately for every collective; the others do not.
Result<int> ParseAlgorithm(Library library, Collective collective, std::string_view name);
Result<int> ParseProtocol(Library library, std::string_view name);
// "?" for an unknown number; kKeep is "-1", as in policy files.
std::string_view AlgorithmName(Library library, Collective collective, int algorithm);
std::string_view ProtocolName(Library library, int protocol);

// Every algorithm and protocol that can be chosen.
std::vector<int> Algorithms(Library library, Collective collective);
std::vector<int> Protocols(Library library);

// The largest valid channel count. NCCL has 64 channels; RCCL stores the number in a signed byte;
// Gloo's channels are parallel contexts; Open MPI has none (0).
int ChannelLimit(Library library);

// Whether NCCL or RCCL can run this pair for this collective on any machine. The cost table says
// whether it can run for a given call.
bool PairExists(Collective collective, int algorithm, int protocol);

}  // namespace diapason
