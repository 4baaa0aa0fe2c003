#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "diapason/config.h"

namespace diapason {

// The words of each library, one table in both directions. Values are the library's own numbers
// (for NCCL and RCCL those of the plugin interface, for Open MPI those of coll_tuned), so nothing
// is translated on the way to the library. They are stored in files: they never change.
//
// Names are read however people write them: "All_Gather", "allgather" and "ALLGATHER" are one name.
// They are printed in one form only. An unknown name is an error with a suggestion, never a guess.
enum class Library : uint8_t { kNccl = 0, kRccl = 1, kGloo = 2, kOpenMpi = 3 };

enum class Collective : uint8_t {
  kBroadcast = 0,
  kReduce = 1,
  kAllGather = 2,
  kReduceScatter = 3,
  kAllReduce = 4,
  kAllToAll = 5,
};
inline constexpr int kCollectiveCount = 6;
// NCCL and RCCL ask a tuner about the first five only; any other number is left alone.
inline constexpr int kAskedCollectiveCount = 5;

// NCCL's and RCCL's algorithms and protocols.
inline constexpr int kTree = 0;
inline constexpr int kRing = 1;
inline constexpr int kCollNetDirect = 2;
inline constexpr int kCollNetChain = 3;
inline constexpr int kNvls = 4;
inline constexpr int kNvlsTree = 5;
inline constexpr int kPat = 6;
inline constexpr int kRcclDirect = 64;  // our number for a path that is measured, never chosen
inline constexpr int kLl = 0;
inline constexpr int kLl128 = 1;
inline constexpr int kSimple = 2;

Result<Library> ParseLibrary(std::string_view name);
std::string_view LibraryName(Library library);
// The name as prose has it: "NCCL", "Open MPI".
std::string_view LibraryTitle(Library library);

Result<Collective> ParseCollective(Library library, std::string_view name);
std::string_view CollectiveName(Collective collective);

// Open MPI numbers its algorithms anew for every collective; the others do not.
Result<int> ParseAlgorithm(Library library, Collective collective, std::string_view name);
Result<int> ParseProtocol(Library library, std::string_view name);
// "?" for a number the library does not have; kKeep is "-1", as policy files write it.
std::string_view AlgorithmName(Library library, Collective collective, int algorithm);
std::string_view ProtocolName(Library library, int protocol);

// Every algorithm and protocol that can be chosen.
std::vector<int> Algorithms(Library library, Collective collective);
std::vector<int> Protocols(Library library);

// The largest channel count that may be asked for. NCCL has 64 channels; RCCL keeps the number in a
// signed byte; Gloo's channels are parallel contexts; Open MPI has none (0).
int ChannelLimit(Library library);

// Whether NCCL or RCCL can ever run this pair for this collective. The cost table says whether it
// can run now; this says what no machine can.
bool PairExists(Collective collective, int algorithm, int protocol);

}  // namespace diapason
