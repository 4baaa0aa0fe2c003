#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/match.h"
#include "journal/reader.h"

namespace diapason::journal {

// Compares what the ranks of a job chose and ran, call by call. A library does not check that:
// ranks that choose differently hang or compute wrong data.
//
// Which calls of two ranks are the same one: while learning, the n-th of a context (collective and
// size band; the last question with that number counts, for a simulated group asks twice);
// otherwise the n-th question about a collective and a size, captured ones apart (questions that
// never ran although a later one did are no calls); of runs, the library's own sequence number.
class JournalComparison {
 public:
  // What one side of a disagreement had.
  struct Side {
    std::vector<std::string> labels;  // "rank 3", or names of journals
    std::string ranks;                // all of them as one text
    Config config;
    uint32_t call = 0;  // of the first of them: its count of questions
  };
  struct Difference {
    std::string communicator;
    Library library = Library::kNccl;
    Collective collective = Collective::kAllReduce;
    uint64_t bytes = 0;       // as the first side had it
    bool ran = false;         // what ran differs, not what was asked for
    std::string which;        // "call 12", "call number 40 of its size band", "run 17"
    uint64_t time_ns = 0;     // of the first side
    std::vector<Side> sides;  // what most had comes first

    // One line for people.
    std::string Text() const;
  };
  // How far apart the ranks of one size were, where times were measured on several of them.
  struct Spread {
    std::string communicator;
    Collective collective = Collective::kAllReduce;
    uint64_t bytes = 0;
    size_t runs = 0;
    double seconds = 0;  // medians over the runs: the slowest rank's time,
    double spread = 0;   // slowest minus fastest rank,
    double starts = -1;  // last minus first start; -1: not on one host, where no clock compares
  };
  struct Report {
    size_t journals = 0;
    size_t ranks = 0;  // of the communicator that most journals are of
    size_t communicators = 0;
    size_t compared = 0;  // communicators that are in several journals
    uint64_t calls = 0;   // that several ranks made
    uint64_t runs = 0;
    uint64_t different_calls = 0;
    uint64_t different_runs = 0;
    uint64_t lonely = 0;       // calls on some ranks only, which should be on all
    uint64_t cut_off = 0;      // calls on some ranks only, where a journal is not complete
    uint64_t only_asked = 0;   // questions that never ran
    uint64_t unavailable = 0;  // asked for, and not on offer
    uint64_t other_pair = 0;   // the library ran another algorithm or protocol than it was asked
    uint64_t other_channels = 0;
    uint64_t bypassed = 0;
    uint64_t dropped = 0;
    uint64_t bad_lines = 0;
    std::vector<Difference> first;      // the earliest differences
    std::vector<std::string> problems;  // sentences; each of them is an exit status of 1
    std::vector<std::string> notes;     // sentences; good to know
    std::vector<Spread> spreads;

    bool agree() const { return compared > 0 && problems.empty(); }
    // "4 ranks, 120 calls: all ranks chose the same for every call".
    std::string Verdict() const;
    // Turns the numbers into sentences.
    void Explain(const std::vector<Matcher::Group>& groups);
  };

  // The journal of one process. Keeps what is needed and no more.
  void Add(const std::string& name, const JournalContents& contents);
  // Once, at the end.
  Report Finish(size_t shown = 10);

 private:
  enum Stream : uint8_t { kLearning = 0, kQuestions = 1, kRuns = 2 };
  // One rank's part of one call. Ordered by what has to be equal, then by rank, then by time.
  struct Entry {
    uint64_t context = 0;  // size band, or bytes, or nothing
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
    bool ran = true;  // false: it is certain that it did not

    bool SameCall(const Entry& other) const;
    bool Before(const Entry& other) const;
  };
  class Findings;

  Matcher matcher_;
  std::vector<Entry> entries_;
  Report report_;
};

}  // namespace diapason::journal
