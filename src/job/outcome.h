#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "domain/decision.h"
#include "job/prepare.h"
#include "job_profile/turns.h"
#include "journal/compare.h"
#include "journal/reader.h"

namespace diapason::job {

// Calls of one collective that got one configuration, over all communicators of the job; each call
// counts once, not once per rank.
struct ChosenConfig {
  Library library = Library::kNccl;
  Collective collective = Collective::kAllReduce;
  Config config;  // default: left to the library
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
  uint64_t calls = 0;
  int line = 0;  // of the policy, if all of them are by one row; 0 otherwise
};

// What learning found in one context.
struct LearnedGain {
  Library library = Library::kNccl;
  Collective collective = Collective::kAllReduce;
  std::string communicator;  // the program's name for it; "" without one
  uint64_t bytes = 0;        // the upper end of the context's sizes
  Shape shape;
  Config config;    // in use at the end; default: the library's own stays
  double gain = 0;  // how many times as fast as the default in this run; 0: not measured
  double low = 0;   // its interval, where the job has kept one (AddIntervals)
  double high = 0;
  bool iteration = false;  // of whole iterations, not of calls
  size_t blocks = 0;
};

// What the journals of a run say. Threads: none; a plain value.
struct JobOutcome {
  enum class Agreement {
    kAgreed,
    kDiffered,   // ranks chose or ran different configurations, or their journals contradict
    kPartly,     // those that could be compared agree, and ranks are missing
    kNotNeeded,  // one rank only
    kUnknown,    // there are no journals, or no calls, to compare
  };

  int status = 0;  // of the command, for the texts; set by the caller
  size_t journals = 0;
  size_t cut = 0;  // of these, journals whose process did not end them: killed, or at the limit
  std::vector<std::string> unreadable;  // journals, and why
  size_t communicators = 0;             // 0: the job created none that loaded the plugin
  int library_version = 0;              // of the library that the job has loaded
  Library library = Library::kNccl;
  std::vector<ChosenConfig> chosen;  // those with most calls first; the default last
  uint64_t calls = 0;
  // JobMode::kCompare: the iterations of both turns, or why they cannot be compared.
  std::optional<Result<job_profile::TurnComparison>> compared;
  std::vector<LearnedGain> learned;      // with those that gain most first
  std::vector<std::string> stood_aside;  // why ranks left the choices to the library, if they did
  Agreement agreement = Agreement::kUnknown;
  journal::JournalComparison::Report report;

  bool Differed() const { return agreement == Agreement::kDiffered; }
  // The three lines that a run ends with, without a line end.
  std::string ChosenText(const PreparedJob& job) const;
  std::string GainText(const PreparedJob& job) const;
  std::string AgreementText(const PreparedJob& job) const;
  // What to do if no communicator was created.
  std::string NothingSeenText(const PreparedJob& job) const;

 private:
  std::string Judged(const PreparedJob& job) const;
};

// Takes the figures with their intervals from the file of learned rows, `after` the run, where the
// row is not in the text of `before` it. Where journals were cut, the file knows more than they do.
void AddLearnedRows(const std::string& before, const std::string& after, JobOutcome* outcome);

// Reads the journals of a run. A journal that cannot be read is named in the result. With
// `compares`, JobOutcome::compared is set. With `most_bytes` no more than that is read of each: who
// took part, and the first calls.
JobOutcome ReadOutcome(const std::vector<std::string>& journals, bool compares = false,
                       size_t most_bytes = 0);

}  // namespace diapason::job
