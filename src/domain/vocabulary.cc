#include "domain/vocabulary.h"

#include <initializer_list>

#include "base/text.h"

namespace diapason {
namespace {

struct NameEntry {
  int value;
  std::string_view name;
  // Other spellings, beyond case, '_' and '-': separated by blanks.
  std::string_view aliases = "";
};
using NameTable = std::initializer_list<NameEntry>;

const NameTable kLibraries{
    {static_cast<int>(Library::kNccl), "nccl"},
    {static_cast<int>(Library::kRccl), "rccl"},
    {static_cast<int>(Library::kGloo), "gloo"},
    {static_cast<int>(Library::kOpenMpi), "openmpi", "ompi mpi"},
};

const NameTable kCollectives{
    {0, "broadcast", "bcast"}, {1, "reduce"},    {2, "allgather"},
    {3, "reducescatter"},      {4, "allreduce"}, {5, "alltoall"},
};

// NCCL's and RCCL's.
const NameTable kNcclAlgorithms{
    {kTree, "tree"},
    {kRing, "ring"},
    {kCollNetDirect, "collnet_direct"},
    {kCollNetChain, "collnet_chain", "collnet"},
    {kNvls, "nvls"},
    {kNvlsTree, "nvls_tree"},
    {kPat, "pat"},
};
// Known by name, but not selectable.
const NameTable kRcclMeasuredOnly{{kRcclDirect, "direct"}};
const NameTable kNcclProtocols{{kLl, "ll"}, {kLl128, "ll128"}, {kSimple, "simple"}};

const NameTable kGlooAlgorithms{
    {0, "options_ring", "default"}, {1, "options_bcube"}, {2, "ring"}, {3, "ring_chunked"},
    {4, "halving_doubling"},        {5, "bcube"},
};
const NameTable kGlooProtocols{{0, "async", "default"}, {1, "blocking", "sync"}, {2, "polling"}};

// Numbers and names as Open MPI 4.1's coll_tuned prints them.
const NameTable kOpenMpiBroadcast{
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
const NameTable kOpenMpiReduce{
    {1, "linear"},   {2, "chain"},           {3, "pipeline"},     {4, "binary"},
    {5, "binomial"}, {6, "in_order_binary"}, {7, "rabenseifner"},
};
const NameTable kOpenMpiAllGather{
    {1, "linear", "basic_linear"},
    {2, "bruck"},
    {3, "recursive_doubling"},
    {4, "ring"},
    {5, "neighbor"},
    {6, "two_proc"},
};
const NameTable kOpenMpiReduceScatter{
    {1, "non_overlapping"}, {2, "recursive_halving"}, {3, "ring"}, {4, "butterfly"}};
const NameTable kOpenMpiAllReduce{
    {1, "basic_linear", "linear"}, {2, "nonoverlapping"}, {3, "recursive_doubling"}, {4, "ring"},
    {5, "segmented_ring"},         {6, "rabenseifner"},
};
const NameTable kOpenMpiAllToAll{
    {1, "linear", "basic_linear"},
    {2, "pairwise"},
    {3, "modified_bruck"},
    {4, "linear_sync"},
    {5, "two_proc"},
};
const NameTable kNoWords{};

const NameTable& AlgorithmWords(Library library, Collective collective) {
  switch (library) {
    case Library::kNccl:
    case Library::kRccl:
      return kNcclAlgorithms;
    case Library::kGloo:
      return kGlooAlgorithms;
    case Library::kOpenMpi:
      switch (collective) {
        case Collective::kBroadcast:
          return kOpenMpiBroadcast;
        case Collective::kReduce:
          return kOpenMpiReduce;
        case Collective::kAllGather:
          return kOpenMpiAllGather;
        case Collective::kReduceScatter:
          return kOpenMpiReduceScatter;
        case Collective::kAllReduce:
          return kOpenMpiAllReduce;
        case Collective::kAllToAll:
          return kOpenMpiAllToAll;
      }
  }
  return kNoWords;
}

const NameTable& ProtocolWords(Library library) {
  switch (library) {
    case Library::kNccl:
    case Library::kRccl:
      return kNcclProtocols;
    case Library::kGloo:
      return kGlooProtocols;
    case Library::kOpenMpi:
      break;
  }
  return kNoWords;
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
Result<int> Find(const NameTable& words, const char* kind, std::string_view name,
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
  return Invalid(Format("unknown %s '%s'", kind, shown.c_str()) + Suggestion(name, known));
}

std::string_view NameOf(const NameTable& words, int value) {
  if (value == kKeep) return "-1";
  for (const NameEntry& word : words) {
    if (word.value == value) return word.name;
  }
  return "?";
}

std::vector<int> Values(const NameTable& words) {
  std::vector<int> values;
  for (const NameEntry& word : words) values.push_back(word.value);
  return values;
}

}  // namespace

Result<Library> ParseLibrary(std::string_view name) {
  const Result<int> found = Find(kLibraries, "library", name);
  if (!found.ok()) return found.status();
  return static_cast<Library>(found.value());
}

std::string_view LibraryName(Library library) {
  return NameOf(kLibraries, static_cast<int>(library));
}

std::string_view LibraryTitle(Library library) {
  switch (library) {
    case Library::kNccl:
      return "NCCL";
    case Library::kRccl:
      return "RCCL";
    case Library::kGloo:
      return "Gloo";
    case Library::kOpenMpi:
      return "Open MPI";
  }
  return "?";
}

Result<Collective> ParseCollective(Library library, std::string_view name) {
  const bool asks_tuner = library == Library::kNccl || library == Library::kRccl;
  const int offered = asks_tuner ? kAskedCollectiveCount : kCollectiveCount;
  const Result<int> found = Find(kCollectives, "collective", name, static_cast<size_t>(offered));
  if (!found.ok()) return found.status();
  if (found.value() >= offered) {
    return Invalid(
        "collective 'alltoall' is made of sends and receives, about which the library "
        "asks no tuner");
  }
  return static_cast<Collective>(found.value());
}

std::string_view CollectiveName(Collective collective) {
  return NameOf(kCollectives, static_cast<int>(collective));
}

Result<int> ParseAlgorithm(Library library, Collective collective, std::string_view name) {
  if (library == Library::kRccl && FoldName(name) == "direct") {
    return Invalid(
        "algorithm 'direct' is a path RCCL takes by itself: it can be measured, not "
        "chosen");
  }
  return Find(AlgorithmWords(library, collective), "algorithm", name);
}

Result<int> ParseProtocol(Library library, std::string_view name) {
  const NameTable& words = ProtocolWords(library);
  if (words.size() == 0) {
    return Invalid(std::string(LibraryTitle(library)) + " has no protocols; write -1");
  }
  return Find(words, "protocol", name);
}

std::string_view AlgorithmName(Library library, Collective collective, int algorithm) {
  if (library == Library::kRccl && algorithm == kRcclDirect) {
    return NameOf(kRcclMeasuredOnly, algorithm);
  }
  return NameOf(AlgorithmWords(library, collective), algorithm);
}

std::string_view ProtocolName(Library library, int protocol) {
  return NameOf(ProtocolWords(library), protocol);
}

std::vector<int> Algorithms(Library library, Collective collective) {
  return Values(AlgorithmWords(library, collective));
}

std::vector<int> Protocols(Library library) { return Values(ProtocolWords(library)); }

int ChannelLimit(Library library) {
  switch (library) {
    case Library::kNccl:
      return 64;
    case Library::kRccl:
      return 127;
    case Library::kGloo:
      return 64;
    case Library::kOpenMpi:
      break;
  }
  return 0;
}

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
    case Collective::kAllToAll:
      break;
  }
  return false;
}

}  // namespace diapason
