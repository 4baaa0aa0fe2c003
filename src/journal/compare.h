#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/match.h"
#include "journal/reader.h"

namespace diapason::journal {

// Compares what the ranks of a job chose and ran, call by call. The library does not check this:
// ranks that choose differently hang or compute wrong data.
//
// Calls of two ranks correspond by: while learning, their number in the context (collective and
// size band; the last question with that number counts, because a simulated group asks twice);
// otherwise their number among the questions about a collective and a size, captured ones
// separately (questions that never ran although a later one did are dropped); for runs, the
// library's sequence number.
class JournalComparison {
 public:
  // One side of a disagreement.
  struct Side {
    std::vector<std::string> labels;  // "rank 3", or names of journals
    std::string ranks;                // all of them as one text
    Config config;
    uint32_t call = 0;  // of the first of them: its number of the question
  };
  struct Difference {
    std::string communicator;
    Library library = Library::kNccl;
    Collective collective = Collective::kAllReduce;
    uint64_t bytes = 0;       // as on the first side
    bool ran = false;         // the runs differ, not the choices
    std::string which;        // "call 12", "call number 40 of its size band", "run 17"
    uint64_t time_ns = 0;     // of the first side
    std::vector<Side> sides;  // the largest side first

    // One line for the user.
    std::string Text() const;
  };
  // The skew of the ranks for one size, if times were measured on several of them.
  struct Spread {
    std::string communicator;
    Collective collective = Collective::kAllReduce;
    uint64_t bytes = 0;
    size_t runs = 0;
    double seconds = 0;  // medians over the runs: the slowest rank's time,
    double spread = 0;   // slowest minus fastest rank,
    // Last minus first start; -1: on several hosts, whose clocks do not compare.
    double starts = -1;
  };
  struct Report {
    size_t journals = 0;
    size_t ranks = 0;  // of the communicator that most journals contain
    size_t communicators = 0;
    size_t compared = 0;  // communicators in several journals
    uint64_t calls = 0;   // that several ranks made
    uint64_t runs = 0;
    uint64_t different_calls = 0;
    uint64_t different_runs = 0;
    uint64_t lonely = 0;       // calls on some ranks only, although all journals are complete
    uint64_t cut_off = 0;      // calls on some ranks only, because a journal is incomplete
    uint64_t only_asked = 0;   // questions without a run
    uint64_t unavailable = 0;  // wanted, but not offered by the library
    uint64_t other_pair = 0;   // the library ran another algorithm or protocol than asked for
    uint64_t other_channels = 0;
    uint64_t bypassed = 0;
    uint64_t dropped = 0;
    uint64_t bad_lines = 0;
    std::vector<Difference> first;      // the earliest differences
    std::vector<std::string> problems;  // sentences; any of them makes the exit status 1
    std::vector<std::string> notes;     // sentences; good to know
    std::vector<Spread> spreads;

    bool agree() const { return compared > 0 && problems.empty(); }
    // "4 ranks, 120 calls: all ranks chose the same for every call".
    std::string Verdict() const;
    // Writes the sentences for the counts.
    void Explain(const std::vector<Matcher::Group>& groups);
  };

  // Adds the journal of one process. Keeps only what the comparison needs.
  void Add(const std::string& name, const JournalContents& contents);
  // Called once, at the end.
  Report Finish(size_t shown = 10);

 private:
  // `run`: what ran for it, or null.
  void CountDecision(const JournalRecord& decision, const JournalRecord* run);
  enum Stream : uint8_t { kLearning = 0, kQuestions = 1, kRuns = 2 };
  // One rank's part of one call. Ordered by the fields that identify the call, then by rank, then
  // by time.
  struct Entry {
    uint64_t context = 0;  // size band, or bytes, or 0
    uint64_t number = 0;   // of the call in its context
    uint64_t time_ns = 0;
    uint64_t bytes = 0;
    uint64_t start_ns = 0;
    double seconds = 0;
    uint32_t group = 0;
    uint32_t member = 0;
    uint32_t call = 0;
    int16_t channels = 0;
    int16_t algorithm = kKeep;
    int16_t protocol = kKeep;
    uint8_t stream = 0;
    uint8_t collective = 0;
    bool captured = false;
    bool ran = true;  // false: it certainly did not run

    bool SameCall(const Entry& other) const;
    bool Before(const Entry& other) const;
  };
  class Findings;

  Matcher matcher_;
  std::vector<Entry> entries_;
  Report report_;
};

}  // namespace diapason::journal
