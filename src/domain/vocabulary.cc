#include "domain/vocabulary.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/text.h"
#include "domain/collectives.h"

namespace diapason {
namespace {

struct NameEntry {
  int value;
  std::string_view name;
  // Other spellings, beyond case, '_' and '-': separated by blanks.
  std::string_view aliases = "";
};
using NameTable = std::span<const NameEntry>;

constexpr auto kCollectives = [] {
  std::array<NameEntry, kCollectiveCount> names{};
  for (const OperationFacts& facts : kOperations) {
    if (!facts.collective) continue;
    const int number = static_cast<int>(*facts.collective);
    names.at(static_cast<size_t>(number)) = {number, facts.measured, facts.aliases};
  }
  return names;
}();

// NCCL's and RCCL's.
constexpr NameEntry kNcclAlgorithms[] = {
    {kTree, "tree"},
    {kRing, "ring"},
    {kCollNetDirect, "collnet_direct"},
    {kCollNetChain, "collnet_chain", "collnet"},
    {kNvls, "nvls"},
    {kNvlsTree, "nvls_tree"},
    {kPat, "pat"},
};
// RCCL's path that is known by name, but not selectable.
constexpr char kDirect[] = "direct";
constexpr NameEntry kNcclProtocols[] = {{kLl, "ll"}, {kLl128, "ll128"}, {kSimple, "simple"}};

constexpr NameEntry kGlooAlgorithms[] = {
    {0, "options_ring", "default"}, {1, "options_bcube"}, {2, "ring"}, {3, "ring_chunked"},
    {4, "halving_doubling"},        {5, "bcube"},
};
constexpr NameEntry kGlooProtocols[] = {
    {0, "async", "default"}, {1, "blocking", "sync"}, {2, "polling"}};

// Numbers and names as Open MPI 4.1's coll_tuned prints them.
constexpr NameEntry kOpenMpiBroadcast[] = {
    {1, "basic_linear", "linear"},
    {2, "chain"},
    {3, "pipeline"},
    {4, "split_binary_tree"},
    {5, "binary_tree"},
    {6, "binomial"},
    {7, "knomial"},
    {8, "scatter_allgather"},
    {9, "scatter_allgather_ring"},
};
constexpr NameEntry kOpenMpiReduce[] = {
    {1, "linear"},   {2, "chain"},           {3, "pipeline"},     {4, "binary"},
    {5, "binomial"}, {6, "in_order_binary"}, {7, "rabenseifner"},
};
constexpr NameEntry kOpenMpiAllGather[] = {
    {1, "linear", "basic_linear"},
    {2, "bruck"},
    {3, "recursive_doubling"},
    {4, "ring"},
    {5, "neighbor"},
    {6, "two_proc"},
};
constexpr NameEntry kOpenMpiReduceScatter[] = {
    {1, "non_overlapping"}, {2, "recursive_halving"}, {3, "ring"}, {4, "butterfly"}};
constexpr NameEntry kOpenMpiAllReduce[] = {
    {1, "basic_linear", "linear"}, {2, "nonoverlapping"}, {3, "recursive_doubling"}, {4, "ring"},
    {5, "segmented_ring"},         {6, "rabenseifner"},
};
constexpr NameEntry kOpenMpiAllToAll[] = {
    {1, "linear", "basic_linear"},
    {2, "pairwise"},
    {3, "modified_bruck"},
    {4, "linear_sync"},
    {5, "two_proc"},
};
// In the order of Collective.
constexpr NameTable kOpenMpiAlgorithms[kCollectiveCount] = {
    kOpenMpiBroadcast,     kOpenMpiReduce,    kOpenMpiAllGather,
    kOpenMpiReduceScatter, kOpenMpiAllReduce, kOpenMpiAllToAll,
};

struct LibraryFacts {
  NameEntry name;
  std::string_view title;
  NameTable algorithms;  // empty: they depend on the collective
  NameTable protocols;
  int channels;
};
// In the order of Library.
constexpr LibraryFacts kLibraries[kLibraryCount] = {
    {{static_cast<int>(Library::kNccl), "nccl"}, "NCCL", kNcclAlgorithms, kNcclProtocols, 64},
    {{static_cast<int>(Library::kRccl), "rccl"}, "RCCL", kNcclAlgorithms, kNcclProtocols, 127},
    {{static_cast<int>(Library::kGloo), "gloo"}, "Gloo", kGlooAlgorithms, kGlooProtocols, 64},
    {{static_cast<int>(Library::kOpenMpi), "openmpi", "ompi mpi"}, "Open MPI", {}, {}, 0},
};

const LibraryFacts& FactsOf(Library library) { return kLibraries[static_cast<size_t>(library)]; }

NameTable AlgorithmWords(Library library, Collective collective) {
  const NameTable algorithms = FactsOf(library).algorithms;
  if (!algorithms.empty() || static_cast<size_t>(collective) >= kCollectiveCount) return algorithms;
  return kOpenMpiAlgorithms[static_cast<size_t>(collective)];
}

// Whether the folded word equals `folded`. Compared in place: a policy of thousands of rows calls
// this often.
bool FoldsTo(std::string_view word, std::string_view folded) {
  size_t at = 0;
  for (const char c : word) {
    if (c == '_') continue;
    if (at == folded.size() || folded[at] != c) return false;
    ++at;
  }
  return at == folded.size();
}

bool Matches(const NameEntry& word, const std::string& folded) {
  if (FoldsTo(word.name, folded)) return true;
  if (word.aliases.empty()) return false;
  for (const std::string_view alias : Split(word.aliases, ' ')) {
    if (alias == folded) return true;
  }
  return false;
}

// Suggests the first `offered` words only.
Result<int> Find(NameTable words, const char* kind, std::string_view name,
                 size_t offered = SIZE_MAX) {
  const std::string folded = FoldName(name);
  for (const NameEntry& word : words) {
    if (Matches(word, folded)) return word.value;
  }
  std::vector<std::string> known;
  for (const NameEntry& word : words) {
    if (known.size() < offered) known.emplace_back(word.name);
  }
  // A name in an untrusted file may be a megabyte long.
  const std::string shown(name.substr(0, 40));
  return Invalid(Format("unknown {} '{}'", kind, shown) + Suggestion(name, known));
}

std::string_view NameOf(NameTable words, int value) {
  if (value == kKeep) return "-1";
  for (const NameEntry& word : words) {
    if (word.value == value) return word.name;
  }
  return "?";
}

std::vector<int> Values(NameTable words) {
  std::vector<int> values;
  for (const NameEntry& word : words) values.push_back(word.value);
  return values;
}

}  // namespace

Result<Library> ParseLibrary(std::string_view name) {
  std::array<NameEntry, kLibraryCount> names{};
  std::transform(std::begin(kLibraries), std::end(kLibraries), names.begin(),
                 [](const LibraryFacts& facts) { return facts.name; });
  ASSIGN_OR_RETURN(const int found, Find(names, "library", name));
  return static_cast<Library>(found);
}

std::string_view LibraryName(Library library) { return FactsOf(library).name.name; }
std::string_view LibraryTitle(Library library) { return FactsOf(library).title; }

bool CanChoose(Library library, Collective collective) {
  // Gloo has one way to run each of the others.
  if (library == Library::kGloo) return collective == Collective::kAllReduce;
  return !AsksTuner(library) || static_cast<int>(collective) < kAskedCollectiveCount;
}

Result<Collective> ParseCollective(Library library, std::string_view name) {
  const int offered = AsksTuner(library) ? kAskedCollectiveCount : kCollectiveCount;
  ASSIGN_OR_RETURN(const int found,
                   Find(kCollectives, "collective", name, static_cast<size_t>(offered)));
  if (found >= offered) {
    return Invalid("collective '" + std::string(CollectiveName(Collective(found))) +
                   "' is made of sends and receives: NCCL asks no tuner about it, and RCCL offers "
                   "one configuration");
  }
  return static_cast<Collective>(found);
}

std::string_view CollectiveName(Collective collective) {
  return NameOf(kCollectives, static_cast<int>(collective));
}

Result<int> ParseAlgorithm(Library library, Collective collective, std::string_view name) {
  if (library == Library::kRccl && FoldName(name) == kDirect) {
    return Invalid(
        "algorithm 'direct' is a path RCCL takes by itself: it can be measured, not "
        "chosen");
  }
  return Find(AlgorithmWords(library, collective), "algorithm", name);
}

Result<int> ParseProtocol(Library library, std::string_view name) {
  const NameTable words = FactsOf(library).protocols;
  if (words.empty()) {
    return Invalid(std::string(LibraryTitle(library)) + " has no protocols; write -1");
  }
  return Find(words, "protocol", name);
}

std::string_view AlgorithmName(Library library, Collective collective, int algorithm) {
  if (library == Library::kRccl && algorithm == kRcclDirect) return kDirect;
  return NameOf(AlgorithmWords(library, collective), algorithm);
}

std::string_view ProtocolName(Library library, int protocol) {
  return NameOf(FactsOf(library).protocols, protocol);
}

std::vector<int> Algorithms(Library library, Collective collective) {
  return Values(AlgorithmWords(library, collective));
}

std::vector<int> Protocols(Library library) { return Values(FactsOf(library).protocols); }

int ChannelLimit(Library library) { return FactsOf(library).channels; }

bool PairExists(Collective collective, int algorithm, int protocol) {
  const bool simple_only = algorithm != kTree && algorithm != kRing;
  if (simple_only && protocol != kSimple) return false;
  switch (collective) {
    case Collective::kBroadcast:
    case Collective::kReduce:
      return algorithm == kRing;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return algorithm == kRing || algorithm == kCollNetDirect || algorithm == kNvls ||
             algorithm == kPat;
    case Collective::kAllReduce:
      return algorithm != kPat;
    default:
      return false;
  }
}

}  // namespace diapason
