#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <tuple>

#include "policy/policy.h"

// Helpers shared by the tests of this component; not part of the library.
namespace diapason::policy {

inline constexpr Library kLibraries[] = {Library::kNccl, Library::kRccl, Library::kGloo,
                                         Library::kOpenMpi};

// Less than `below`.
uint64_t Pick(std::mt19937_64* random, uint64_t below);

// Sizes of every magnitude; extremes and neighbours of powers of two more often.
uint64_t RandomBytes(std::mt19937_64* random);

// A policy as a file could contain it: all valid, line numbers increasing with gaps.
Policy RandomPolicy(Library library, size_t rules, std::mt19937_64* random);

// All fields of a rule except its line, for comparison.
inline auto Fields(const Rule& rule) {
  return std::tuple(rule.collective, rule.min_bytes, rule.max_bytes, rule.config.algorithm,
                    rule.config.protocol, rule.config.channels, rule.nodes, rule.ranks,
                    rule.pipe_ops, rule.reg_buff);
}

// Files of tests/data/tuner-confs. Those listed are valid for RCCL.
inline constexpr const char* kRealFiles[] = {
    "dn_nccl_tuner.conf",
    "gfx950_large.conf",
    "rccl_tuner_gfx950.allreduce_broadcast.conf",
};
std::string ReadTestFile(const std::string& name);

}  // namespace diapason::policy
