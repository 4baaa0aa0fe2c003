#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "knobs/check.h"

namespace diapason::knobs {

// The assignments as the library sees them, and the findings so far. Every finding names its
// variables, so that variables without a finding are known at the end, and none is reported twice
// for the same reason.
class CheckContext {
 public:
  // `elsewhere`: names that other parts of the same file set.
  CheckContext(const std::vector<Assignment>& assignments, const CheckedFor& checked_for,
               const Catalogue& catalogue, const std::set<std::string>& elsewhere);

  const CheckedFor& checked_for() const { return checked_for_; }
  const Catalogue& catalogue() const { return catalogue_; }
  std::string Title() const;         // "NCCL", "RCCL"
  std::string TitleVersion() const;  // "NCCL 2.28.9", "NCCL"

  // The effective ones by name: without overridden ones.
  const std::map<std::string, const Assignment*>& live() const { return live_; }
  bool IsSet(const std::string& name) const { return live_.count(name) > 0; }
  // Whether it is set in another part of the same file.
  bool SetElsewhere(const std::string& name) const { return elsewhere_.count(name) > 0; }
  // Whether it is set, and to an expression.
  bool Unknown(const std::string& name) const;
  std::string Value(const std::string& name) const;  // "" where it is not set, or not known
  // As the library parses it; nullopt if it is not set, or not a number.
  std::optional<int64_t> Number(const std::string& name) const;
  bool Is(const std::string& name, const std::string& value) const;  // any case
  bool On(const std::string& name) const;                            // a number other than 0
  bool Off(const std::string& name) const;                           // 0
  // Whether this library reads the variable at this version; true if unknown.
  bool Reads(const std::string& name) const;

  // The evidence is the assignment of every name in `names` that is set.
  void Add(std::string id, Severity severity, std::string title,
           const std::vector<std::string>& names, std::string action);
  // Without such evidence; the names only count as reported.
  void AddFinding(Finding finding, const std::vector<std::string>& names);
  bool Together(const std::string& one, const std::string& other) const;  // in one finding already
  bool Spoken(const std::string& name) const { return spoken_of_.count(name) > 0; }
  // All of them, worst first, with the kFine ones.
  std::vector<Finding> Take();

 private:
  const CheckedFor checked_for_;
  const Catalogue& catalogue_;
  const std::set<std::string>& elsewhere_;
  std::map<std::string, const Assignment*> live_;
  std::set<std::string> spoken_of_;
  std::set<std::pair<std::string, std::string>> together_;
  std::vector<Finding> findings_;
};

// "NAME=value (source)", truncated to a readable length.
std::string AssignmentText(const Assignment& assignment);

// The program that reads a variable of these families that the libraries do not read: "PyTorch",
// "our plugin"; "" if unknown.
std::string OtherReader(const std::string& name);

// Whether `name` is `known` with a letter or two wrong; "A1" and "A2" are two names.
bool IsSlip(const std::string& name, const std::string& known);
// The name of PyTorch, UCX, libfabric, Gloo or ROCm that `name` is a slip of; "" if there is none,
// or if it exists itself.
std::string SlipOfOthers(const std::string& name);
// Whether it is a name of build systems and scripts: NCCL_HOME, NCCL_TESTS_VERSION.
bool IsBuildName(const std::string& name);

// Checks single variables: whether it exists, is read here, is deprecated, and has a valid value.
void CheckNames(const std::vector<Assignment>& assignments, CheckContext* context);
// Checks combinations: prerequisites, contradictions.
void CheckTogether(CheckContext* context);
// Checks what restricts a tuner's choices, and the tuner's own variables.
void CheckTuner(CheckContext* context);
// Checks diapason's own settings against each other and the library.
void CheckOwnSettings(CheckContext* context);
// Checks settings for all jobs, the cost of logging, and other costs.
void CheckCosts(const std::vector<Assignment>& assignments, CheckContext* context);

}  // namespace diapason::knobs
