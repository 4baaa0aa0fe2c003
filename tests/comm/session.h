// One rank's run through the conformance cases: what it was told, what it found.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "diapason/comm.h"

namespace diapason::conformance {

struct Settings {
  std::string backend = "auto";
  std::string cluster;
  std::string filter;
  bool device = false;
  bool quick = false;
  bool configs = false;  // the group may choose configurations, and the cases for them run
  int threads = 0;
  int seconds = 0;  // the limit of every wait; 0: what is right for the number of ranks
};

class Session {
 public:
  Session(const Settings& settings, GroupOptions options)
      : settings_(settings), options_(std::move(options)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Creates the group; false when it cannot.
  bool Create();
  void Destroy() { group_.reset(); }

  const Settings& settings() const { return settings_; }
  const GroupOptions& options() const { return options_; }
  Group& group() { return *group_; }
  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  // Another one for every exchange; the same on every rank.
  uint64_t NextSeed() { return ++seed_; }
  // As NextSeed, for what the ranks need not agree on.
  uint64_t NextTurn() { return ++turn_; }

  // Everything after this is said to be of that case.
  void Begin(const std::string& name) { case_ = name; }
  // One check. Prints a line where it fails.
  bool Expect(bool holds, const std::string& what);
  bool Fine(const Status& status, const std::string& what);
  // The call was refused, for the arguments' sake, with a sentence that has `word` in it.
  bool Refused(const Status& status, const std::string& what, const std::string& word = "");
  // Only said, once per rank, at the end: what was left out and why.
  void Note(const std::string& text);

  // What the group has logged since the last time.
  std::vector<std::string> TakeLog();

  // A wait reached its limit or a rank is gone: nothing more can be tried.
  bool broken() const { return broken_; }
  int64_t checks() const { return checks_; }
  int64_t failures() const { return failures_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  const Settings& settings_;
  GroupOptions options_;
  std::unique_ptr<Group> group_;
  std::string case_ = "creation";
  uint64_t seed_ = 0;
  uint64_t turn_ = 0;
  bool broken_ = false;
  int64_t checks_ = 0;
  int64_t failures_ = 0;
  std::vector<std::string> notes_;
  std::mutex log_mutex_;
  std::vector<std::string> log_;
};

struct Case {
  const char* name;
  void (*run)(Session&);
  bool quick;  // part of --quick
};
// In the order in which they run.
std::vector<Case> CollectiveCases();
std::vector<Case> AsyncCases();
std::vector<Case> PointToPointCases();
std::vector<Case> SplitCases();
std::vector<Case> WireCases();
std::vector<Case> StatisticsCases();
std::vector<Case> RefusalCases();
std::vector<Case> ConfigCases();

}  // namespace diapason::conformance
