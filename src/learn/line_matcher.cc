#include "learn/line_matcher.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::learn {
namespace {

// Moments without lead that must agree before lines are used.
constexpr uint64_t kMomentsToTrust = 8;
// Lines between the first and the last of them: this many, and two for each call of a line. With n
// calls a line, a lead of less than L can look like n + 1 calls a line for fewer than L lines, and
// within an iteration the lead goes up to n.
constexpr uint64_t kLinesToTrust = 32;
// Looks at the file without such a moment, and lines meanwhile, before a program counts as one that
// does not log all its calls. A look is made every few milliseconds at most, and finds a program
// that logs them all between a line and the next call in one of a hundred looks or more.
constexpr uint64_t kPatientReads = 4096;
constexpr size_t kPatientLines = 64;
// Looks after which it can be said why lines are not used yet.
constexpr uint64_t kReadsToSayWhy = 512;
constexpr size_t kMostWaiting = 16384;
// Numbered lines that must be credible first.
constexpr uint64_t kNumbersToTrust = 4;

}  // namespace

void LineMatcher::Line(const RewardLine& line) {
  if (numbered_ && line.call == 0) return;
  if (!numbered_ && line.call != 0) {
    *this = LineMatcher();
    numbered_ = true;
  }
  ++lines_;
  waiting_.push_back(line);
  if (waiting_.size() > kMostWaiting) waiting_.pop_front();
}

std::vector<LineMatcher::Credit> LineMatcher::Read(uint64_t calls) {
  if (lines_ == 0) return {};
  return numbered_ ? ReadNumbered(calls) : ReadPlain(calls);
}

void LineMatcher::Lose() {
  lost_ = lost_ || stride_ != 0;
  stride_ = 0;
  guess_ = 0;
  moments_ = 0;
  waiting_.clear();
}

std::vector<LineMatcher::Credit> LineMatcher::ReadPlain(uint64_t calls) {
  ++reads_;
  const uint64_t per_line = stride_ != 0 ? stride_ : calls / lines_;
  if (per_line == 0 || calls / per_line < lines_) {
    fault_ = Fault::kMoreLines;
    Lose();
    return {};
  }
  const uint64_t lead = calls - per_line * lines_;
  if (per_line != lead_guess_) least_lead_ = lead;
  lead_guess_ = per_line;
  least_lead_ = std::min(least_lead_, lead);
  if (stride_ == 0) {
    if (!lost_) Prove(calls);
    return {};
  }
  if (lead != 0) {
    if (reads_ >= kPatientReads && waiting_.size() >= kPatientLines) {
      least_lead_ = lead;
      Lose();
    }
    return {};
  }
  reads_ = 0;
  std::vector<Credit> credits;
  uint64_t end = (lines_ - waiting_.size()) * stride_;
  for (const RewardLine& line : waiting_) {
    credits.push_back({end, end + stride_, line.seconds});
    end += stride_;
  }
  waiting_.clear();
  return credits;
}

void LineMatcher::Prove(uint64_t calls) {
  if (guess_ != 0 && calls / guess_ < lines_) guess_ = 0;
  if (calls % lines_ != 0) return;
  const uint64_t guess = calls / lines_;
  if (guess != guess_) {
    guess_ = guess;
    moments_ = 0;
    first_moment_ = lines_;
    last_moment_ = 0;
  }
  if (lines_ == last_moment_) return;
  last_moment_ = lines_;
  ++moments_;
  if (moments_ < kMomentsToTrust || lines_ - first_moment_ < 2 * guess + kLinesToTrust) return;
  stride_ = guess;
  reads_ = 0;
  fault_ = Fault::kNone;
  waiting_.clear();
}

std::vector<LineMatcher::Credit> LineMatcher::ReadNumbered(uint64_t calls) {
  std::vector<Credit> credits;
  for (const RewardLine& line : waiting_) {
    if (fault_ != Fault::kNone) break;
    if (line.call > calls) {
      fault_ = Fault::kBeyond;
    } else if (line.call - line.calls < last_number_) {
      fault_ = Fault::kNotIncreasing;
    } else {
      last_number_ = line.call;
      alike_ = line.calls == unit_ ? alike_ + 1 : 1;
      unit_ = line.calls;
      stride_ = alike_ >= kNumbersToTrust ? unit_ : 0;
      if (stride_ != 0) credits.push_back({line.call - line.calls, line.call, line.seconds});
    }
  }
  if (fault_ != Fault::kNone) {
    // What this look has brought may already be wrong.
    credits.clear();
    Lose();
  }
  waiting_.clear();
  return credits;
}

std::optional<std::string> LineMatcher::Trouble() const {
  if (stride_ != 0) return std::nullopt;
  switch (fault_) {
    case Fault::kMoreLines:
      return "are more than the calls: does something else write to the file?";
    case Fault::kBeyond:
      return "have call numbers beyond the calls made: calls of one collective and size band "
             "count, from 1 on, without captured and simulated ones";
    case Fault::kNotIncreasing:
      return "have call numbers that do not increase: do two communicators write to the file?";
    case Fault::kNone:
      break;
  }
  if (numbered_) return std::nullopt;
  if (!lost_ && (reads_ < kReadsToSayWhy || lines_ < kPatientLines)) return std::nullopt;
  if (least_lead_ == 0) return "follow the calls too irregularly: give them call numbers";
  return "are at least " + Count(least_lead_, "call") +
         " behind, so that calls may not have been logged: give them call numbers";
}

}  // namespace diapason::learn
