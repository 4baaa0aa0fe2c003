#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "domain/finding.h"
#include "logs/facts.h"
#include "messages/catalogue.h"

namespace diapason::logs {

// A finding and its place in the chain of causes.
struct Suspect {
  Finding finding;
  messages::Cause cause = messages::Cause::kProgram;
  int weight = 0;  // the highest is the cause; 0: has nothing to do with a failure
  int64_t rank = -1;
  std::string who;   // "rank 3 (host:pid) and others"
  std::string time;  // as printed
  Spot spot;         // the first line; line 0 if unknown
  uint64_t lines = 1;
};

// What happened, in one sentence.
struct Verdict {
  std::string text;
  // "cause": the logs name it; "suspected": they hint at it; "unknown": the job failed, and they do
  // not say why; "none": no failure.
  std::string certainty = "none";
  std::string finding;      // the id of the finding that is the cause; "" without one
  std::string cause_class;  // "resource", "program", ...; "" without one
  int64_t rank = -1;
  std::string who;
  std::string since;
  std::string where;     // "file:line"
  uint64_t follows = 0;  // lines that follow from it
};

struct Diagnosis {
  Verdict verdict;
  std::vector<Finding> findings;  // the cause first, then by severity
};

// The weight of a finding that is no message; 0 for those that are no fault of the job.
int WeightOf(const Finding& finding);

// Chooses the cause, folds what follows from it into it, and writes the verdict.
Diagnosis Judge(const LogFacts& facts, std::vector<Suspect> suspects);

}  // namespace diapason::logs
