#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "learn/rewards.h"

namespace diapason::learn {

// Finds out which calls of a context the lines of a reward file are about. Pure: no clock, no file.
//
// A line with a call number names its calls. Lines without one are taken to cover n calls each,
// from the first call of the communicator on, and this class finds n. But a program is also ahead
// of its lines because the file is only looked at now and then, and it may have made calls that it
// did not log, after which every line would be booked for an earlier call. The two differ in this:
// without unlogged calls, the lead of the calls over the lines is zero at some moments (between a
// line and the next call); with them it never is. So lines count only between two such moments.
//
// It relies on the order of reading: first the file to its end, then the number of calls. The lead
// may then be overestimated, never underestimated.
class LineMatcher {
 public:
  struct Credit {
    uint64_t first = 0;  // calls [first, end)
    uint64_t end = 0;
    double seconds = 0;
  };

  // A line of this context, in the order of the file.
  void Line(const RewardLine& line);
  // The file has been read to its end, and then `calls` was the number of calls made. Returns the
  // lines whose calls are known since now.
  std::vector<Credit> Read(uint64_t calls);

  // The calls of a line; 0: not known, the lines cannot be used.
  uint64_t calls_per_line() const { return stride_; }
  // A call with which a line begins. REQUIRES: calls_per_line() > 0.
  uint64_t boundary() const { return last_number_; }
  // The lines were used, and turned out to miss calls. Only lines with numbers can be used then.
  bool lost() const { return lost_; }
  uint64_t lines() const { return lines_; }
  // Why the lines cannot be used, as a sentence about them: "are at least 5 calls behind: ...";
  // nullopt: they are used, or it is too early to say.
  std::optional<std::string> Trouble() const;

 private:
  enum class Fault : uint8_t { kNone, kMoreLines, kBeyond, kNotIncreasing };

  std::vector<Credit> ReadPlain(uint64_t calls);
  std::vector<Credit> ReadNumbered(uint64_t calls);
  void Prove(uint64_t calls);
  void Lose();

  std::deque<RewardLine> waiting_;  // lines that are not booked yet
  uint64_t lines_ = 0;
  uint64_t stride_ = 0;
  uint64_t reads_ = 0;  // since the lead was last zero
  bool lost_ = false;
  Fault fault_ = Fault::kNone;

  // Without numbers: moments without lead that agree on the number of calls a line.
  uint64_t guess_ = 0;
  uint64_t moments_ = 0;
  uint64_t first_moment_ = 0;  // lines at the first and the last of them
  uint64_t last_moment_ = 0;
  uint64_t lead_guess_ = 0;  // calls a line for which least_lead_ holds
  uint64_t least_lead_ = 0;

  // With numbers.
  bool numbered_ = false;
  uint64_t last_number_ = 0;
  uint64_t unit_ = 0;   // calls of the last line
  uint64_t alike_ = 0;  // lines in a row with as many calls
};

}  // namespace diapason::learn
