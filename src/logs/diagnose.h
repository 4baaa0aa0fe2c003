#pragma once

#include <string>
#include <vector>

#include "domain/finding.h"
#include "logs/facts.h"
#include "logs/verdict.h"

namespace diapason::logs {

// Problems in the logs, the cause of a failure first, then worst first, and the verdict. Each
// finding has the lines that prove it as evidence.
Diagnosis DiagnoseJob(const LogFacts& facts);
// Only the findings.
std::vector<Finding> Diagnose(const LogFacts& facts);

// The parts of Diagnose, for tests and other callers.
void DiagnoseTroubles(const LogFacts& facts, std::vector<Suspect>* suspects);
void DiagnoseRanks(const LogFacts& facts, std::vector<Finding>* findings);
void DiagnoseOperations(const LogFacts& facts, std::vector<Finding>* findings);
void DiagnoseWatchdog(const LogFacts& facts, std::vector<Finding>* findings);
void DiagnoseFlight(const LogFacts& facts, std::vector<Finding>* findings);
// After the others: looks at what they have found.
void DiagnoseHang(const LogFacts& facts, std::vector<Finding>* findings);
void DiagnoseLinks(const LogFacts& facts, std::vector<Finding>* findings);
void DiagnoseSetup(const LogFacts& facts, std::vector<Finding>* findings);
void DiagnoseEnvironment(const LogFacts& facts, std::vector<Finding>* findings);
void DiagnosePerf(const LogFacts& facts, std::vector<Finding>* findings);

// "0-3, 8": a list of ranks; at most a few ranges, then "and 5 more".
std::string RanksText(std::vector<int64_t> ranks);

// "1 process", "2 processes".
std::string ProcessCount(size_t count);

// Connections between two hosts by one transport, all channels and rank pairs together.
struct HostLink {
  std::string from;
  std::string to;
  std::string kind;  // "P2P/CUMEM", "SHM", "NET/IB with GPU Direct RDMA"
  uint64_t channels = 0;
  uint64_t pairs = 0;   // of ranks
  bool inside = false;  // one host
  bool gdr = false;
  Spot first;
};
std::vector<HostLink> HostLinks(const LogFacts& facts);

}  // namespace diapason::logs
