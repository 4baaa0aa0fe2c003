#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "logs/diagnose.h"
#include "logs/reader.h"

namespace diapason::logs {

// The facts in one text.
inline LogFacts Read(const std::string& text, const std::string& name = "job.log") {
  LogFacts facts;
  const Status status = ReadLogText(text, name, &facts);
  EXPECT_TRUE(status.ok()) << status.message();
  return facts;
}

inline const Finding* Find(const std::vector<Finding>& findings, std::string_view id) {
  for (const Finding& finding : findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}

// The finding with that id in a text; an empty one, and a failed test, if there is none.
inline Finding Shows(const std::string& text, std::string_view id) {
  const std::vector<Finding> findings = Diagnose(Read(text));
  const Finding* found = Find(findings, id);
  EXPECT_NE(found, nullptr) << "no finding '" << id << "'";
  return found == nullptr ? Finding() : *found;
}

inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A line of level INFO of rank `rank`, each on a host of its own unless `host` says otherwise.
inline std::string Info(int rank, const std::string& message, const std::string& host = "") {
  return (host.empty() ? "n" + std::to_string(rank) : host) + ":" + std::to_string(100 + rank) +
         ":" + std::to_string(900 + rank) + " [0] NCCL INFO " + message + "\n";
}
inline std::string Warn(int rank, const std::string& message, const std::string& host = "") {
  return "\n" + (host.empty() ? "n" + std::to_string(rank) : host) + ":" +
         std::to_string(100 + rank) + ":" + std::to_string(900 + rank) +
         " [0] transport/x.cc:12 NCCL WARN " + message + "\n";
}
inline std::string Init(int rank, int ranks, bool start, const std::string& host = "") {
  return Info(rank,
              "ncclCommInitRank comm 0x" + std::to_string(5000 + rank) + " rank " +
                  std::to_string(rank) + " nranks " + std::to_string(ranks) +
                  " cudaDev 0 nvmlDev 0 busId " + std::to_string(1000 + rank) +
                  " commId 0xfeed - Init " + (start ? "START" : "COMPLETE"),
              host);
}
inline std::string Call(int rank, int op_count, const std::string& collective, int count) {
  return Info(rank, collective + ": opCount " + std::to_string(op_count) +
                        " sendbuff 0x7f recvbuff 0x7f count " + std::to_string(count) +
                        " datatype 7 op 0 root 0 comm 0x" + std::to_string(5000 + rank) +
                        " [nranks=2] stream 0x1");
}

}  // namespace diapason::logs
