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

// Assignments as the library sees them, and what has been found out about them so far. Every
// finding says which variables it is about, so that those nobody complains about are known at the
// end, and none is complained about twice for the same reason.
class CheckContext {
 public:
  CheckContext(const std::vector<Assignment>& assignments, const CheckedFor& checked_for,
               const Catalogue& catalogue);

  const CheckedFor& checked_for() const { return checked_for_; }
  const Catalogue& catalogue() const { return catalogue_; }
  std::string Title() const;         // "NCCL", "RCCL"
  std::string TitleVersion() const;  // "NCCL 2.28.9", "NCCL"

  // Those that count, by name: what is overridden is not among them.
  const std::map<std::string, const Assignment*>& live() const { return live_; }
  bool IsSet(const std::string& name) const { return live_.count(name) > 0; }
  std::string Value(const std::string& name) const;  // "" where it is not set
  // As the library reads it; nothing where it is not set, or no number.
  std::optional<int64_t> Number(const std::string& name) const;
  bool Is(const std::string& name, const std::string& value) const;  // any case
  bool On(const std::string& name) const;                            // a number other than 0
  bool Off(const std::string& name) const;                           // 0
  // Whether this library reads the variable at this version; yes where that is not known.
  bool Reads(const std::string& name) const;

  // Evidence is the assignment of every name in `names` that is set.
  void Add(std::string id, Severity severity, std::string title,
           const std::vector<std::string>& names, std::string action);
  // Without such evidence; the names only count as spoken of.
  void AddFinding(Finding finding, const std::vector<std::string>& names);
  bool Together(const std::string& one, const std::string& other) const;  // in one finding already
  bool Spoken(const std::string& name) const { return spoken_of_.count(name) > 0; }
  // All of them, worst first, with those that are fine.
  std::vector<Finding> Take();

 private:
  const CheckedFor checked_for_;
  const Catalogue& catalogue_;
  std::map<std::string, const Assignment*> live_;
  std::set<std::string> spoken_of_;
  std::set<std::pair<std::string, std::string>> together_;
  std::vector<Finding> findings_;
};

// "NAME=value (source)", cut to a readable length.
std::string AssignmentText(const Assignment& assignment);

// Who reads a variable of these families that the libraries do not: "PyTorch", "our plugin"; ""
// where nobody is known.
std::string OtherReader(const std::string& name);

// What single variables are: real, read here, deprecated, with a value that means something.
void CheckNames(const std::vector<Assignment>& assignments, CheckContext* context);
// What they are together: needs, contradictions.
void CheckTogether(CheckContext* context);
// What takes choices away from a tuner, and what a tuner's own variables lack.
void CheckTuner(CheckContext* context);
// What every job gets, what logging costs, what else costs.
void CheckCosts(const std::vector<Assignment>& assignments, CheckContext* context);

}  // namespace diapason::knobs
