#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "watch/ras_answer.h"

// Answers in the two forms of NCCL's RAS, for tests.
namespace diapason::watch {

struct FakeRasRank {
  int rank = 0;
  int pid = 0;
  uint64_t all_reduce = 0;
  RasAbsence absence = RasAbsence::kNone;
  uint64_t all_gather = 0;
  std::string host = "127.0.0.1";
  bool ending = false;
  int async_error = 0;
};

inline std::string FakeRasRankJson(const FakeRasRank& rank, bool comma) {
  const bool there = rank.absence == RasAbsence::kNone;
  std::string text = Format(
      "        {{\n          \"rank\": {},\n          \"host\": \"{}\",\n          \"pid\": {},\n"
      "          \"cuda_dev\": 0,\n          \"nvml_dev\": 0{}\n          \"status\": {{\n",
      rank.rank, rank.host, rank.pid, there || comma ? "," : "");
  if (!there) {
    return text + Format(
                      "            \"unresponsive\": {},\n            \"considered_dead\": {}\n"
                      "          }}\n        }}",
                      rank.absence == RasAbsence::kLeft ? "false" : "true",
                      rank.absence == RasAbsence::kDead ? "true" : "false");
  }
  return text + Format(
                    "            \"init_state\": 0,\n            \"async_error\": {},\n"
                    "            \"finalize_called\": {},\n            \"destroy_flag\": false,\n"
                    "            \"abort_flag\": false\n          }},\n"
                    "          \"collective_counts\": {{\n            \"Broadcast\": 0,\n"
                    "            \"Reduce\": 0,\n            \"AllGather\": {},\n"
                    "            \"ReduceScatter\": 0,\n            \"AllReduce\": {}\n"
                    "          }}\n        }}",
                    rank.async_error, rank.ending ? "true" : "false", rank.all_gather,
                    rank.all_reduce);
}

// One communicator. `comma`: as from NCCL 2.29 on.
inline std::string FakeRasJson(const std::vector<FakeRasRank>& ranks, bool comma = false) {
  std::vector<std::string> present;
  std::vector<std::string> missing;
  for (const FakeRasRank& rank : ranks) {
    (rank.absence == RasAbsence::kNone ? present : missing).push_back(FakeRasRankJson(rank, comma));
  }
  return Format(
             "{{\n  \"nccl_version\": \"2.28.9+cuda13.0\",\n  \"cuda_runtime_version\": 13000,\n"
             "  \"cuda_driver_version\": 13000,\n  \"timestamp\": \"2026-01-01 00:00:00\",\n"
             "  \"communicators_count\": 1,\n  \"communicators\": [\n    {{\n"
             "      \"hash\": \"0x8a1c00ff\",\n      \"secondary_hash\": \"0x1:0x2\",\n"
             "      \"size\": {},\n      \"ranks_count\": {},\n      \"missing_ranks_count\": "
             "{},\n",
             ranks.size(), present.size(), missing.size()) +
         "      \"ranks\": [\n" + Join(present, ",\n") +
         "\n      ],\n      \"missing_ranks\": [\n" + Join(missing, ",\n") +
         "\n      ]\n    }\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.012,\n"
         "    \"timeouts_count\": 0\n  }\n}\n";
}

inline std::string FakeRasPlace(const FakeRasRank& rank) {
  return Format("GPU 0 managed by process {} on node {}", rank.pid, rank.host);
}

// The counts of all_reduce, where they differ: groups of less than half name their ranks.
inline std::string FakeRasCounts(const std::vector<FakeRasRank>& ranks) {
  std::map<uint64_t, std::vector<FakeRasRank>> groups;
  for (const FakeRasRank& rank : ranks) {
    if (rank.absence == RasAbsence::kNone) groups[rank.all_reduce].push_back(rank);
  }
  if (groups.size() < 2) return "";
  std::string text =
      "#0-0 (000000008a1c00ff) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n";
  for (const auto& [count, members] : groups) {
    const std::string launched =
        count == 0 ? "not launched any operations" : Format("launched up to operation {}", count);
    if (members.size() > 1) text += Format("  {} ranks have {}\n", members.size(), launched);
    if (members.size() > 1 && members.size() * 2 >= ranks.size()) continue;
    for (const FakeRasRank& rank : members) {
      text += Format("  Rank {}{} -- {}\n", rank.rank, members.size() > 1 ? "" : " has " + launched,
                     FakeRasPlace(rank));
    }
  }
  return text + "\n";
}

// One communicator, as of NCCL 2.24 to 2.28.
inline std::string FakeRasText(const std::vector<FakeRasRank>& ranks) {
  std::string text = Format(
      "NCCL version 2.26.2+cuda12.8 compiled with CUDA 12.8\n"
      "CUDA runtime version 12080, driver version 13000\n\nJob summary\n===========\n\n"
      "  Nodes  Processes         GPUs  Processes     GPUs\n"
      "(total)   per node  per process    (total)  (total)\n"
      "      1  {:>9}            1  {:>9}  {:>7}\n\nCommunicators... (0.01s)\n=============\n\n"
      "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
      "    #  in group  per comm  per node  per comm  in group\n"
      "    0         1         1  {:>8}  {:>8}  {:>8}   RUNNING      OK\n\nErrors\n======\n\n",
      ranks.size(), ranks.size(), ranks.size(), ranks.size(), ranks.size(), ranks.size());
  std::string dead;
  std::string missing;
  size_t absent = 0;
  for (const FakeRasRank& rank : ranks) {
    if (rank.absence == RasAbsence::kNone || rank.absence == RasAbsence::kLeft) continue;
    ++absent;
    missing += Format("  Rank {} -- {}\n", rank.rank, FakeRasPlace(rank));
    if (rank.absence == RasAbsence::kDead) {
      dead += Format("  Process {} on node {} managing GPU 0\n", rank.pid, rank.host);
    }
  }
  if (!dead.empty()) {
    text += "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n" + dead +
            "\n";
  }
  if (!missing.empty()) {
    text += Format("#0-0 (000000008a1c00ff) INCOMPLETE\n  Missing communicator data from {} rank\n",
                   absent) +
            missing + "\n";
  }
  return text + "Warnings\n========\n\n" + FakeRasCounts(ranks);
}

}  // namespace diapason::watch
