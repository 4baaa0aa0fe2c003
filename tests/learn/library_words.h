#pragma once

#include "played_library.h"

// The library's words in its events.
namespace played {

inline const char* CollectiveWord(int collective) {
  constexpr const char* kWords[kCollectives] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                                "AllReduce"};
  return kWords[collective];
}

inline const char* AlgorithmWord(int algorithm) {
  constexpr const char* kWords[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                    "NVLS_TREE", "PAT"};
  return algorithm < 0 ? "NONE" : kWords[algorithm];
}

inline const char* ProtocolWord(int protocol) {
  constexpr const char* kWords[] = {"LL", "LL128", "SIMPLE"};
  return protocol < 0 ? "NONE" : kWords[protocol];
}

}  // namespace played
