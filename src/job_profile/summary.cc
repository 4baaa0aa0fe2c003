// The sentences about a profile.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "domain/mpi_calls.h"
#include "job_profile/job_profile.h"
#include "journal/match.h"

namespace diapason::job_profile {
namespace {

constexpr double kTail = 0.025;  // of the time, on both sides, that the range of sizes leaves out
constexpr double kSomeUntimed = 0.5;  // calls of an iteration

}  // namespace

std::string LargestPart(const JobProfile& profile) {
  const auto weight = [&](const CallClass& one) {
    return profile.times.total > 0 ? one.times.total
           : profile.iteration > 0 ? one.calls_per_iteration
                                   : static_cast<double>(one.calls);
  };
  std::map<uint8_t, double> sums;
  double all = 0;
  for (const CallClass& one : profile.classes) {
    sums[one.collective] += weight(one);
    all += weight(one);
  }
  if (all <= 0) return "";
  const auto largest = std::max_element(
      sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<const CallClass*> sizes;
  for (const CallClass& one : profile.classes) {
    if (one.collective == largest->first) sizes.push_back(&one);
  }
  std::stable_sort(sizes.begin(), sizes.end(), [](const CallClass* a, const CallClass* b) {
    return a->least_bytes < b->least_bytes;
  });
  uint64_t least = sizes.back()->least_bytes;
  uint64_t most = 0;
  double below = 0;
  for (const CallClass* one : sizes) {
    const double after = below + weight(*one);
    if (after > kTail * largest->second && below < (1 - kTail) * largest->second) {
      least = std::min(least, one->least_bytes);
      most = std::max(most, one->most_bytes);
    }
    below = after;
  }
  const std::string name = largest->first == journal::kNamelessCollective
                               ? "a collective without a name here"
                               : std::string(CodeName(largest->first));
  const std::string range =
      least == most ? AboutBytes(most) : Format("{} to {}", AboutBytes(least), AboutBytes(most));
  return Format("{:.0f} %{} {} of {}", 100 * largest->second / all,
                profile.times.total > 0 ? "" : " of the calls", name, range);
}

std::string Milliseconds(double seconds) {
  const double value = seconds * 1e3;
  return value >= 100 ? Format("{:.0f} ms", value)
         : value >= 1 ? Format("{:.1f} ms", value)
                      : Format("{:.3f} ms", value);
}

std::string Role::Text() const {
  std::string text = name.empty() ? "" : name + ", ";
  text += Count(static_cast<size_t>(shape.ranks), "rank");
  if (shape.nodes > 1) text += Format(" on {}", Count(static_cast<size_t>(shape.nodes), "node"));
  if (place > 0) text += Format(", number {} of its kind", place + 1);
  return text;
}

std::string JobProfile::Headline() const {
  const std::string part = LargestPart(*this);
  if (iteration <= 0) {
    return Format("no iterations found in {}; {}", Count(calls, "call"), part);
  }
  std::string text = source == Source::kCalls ? Format("{} calls take ", kCallsTogether)
                                              : std::string("an iteration takes ");
  text += Milliseconds(iteration);
  if (times.total <= 0) return text + "; the time of its collectives is not known; " + part;
  text += Format("; collectives {}{} of it, {} exposed (estimate)",
                 untimed_per_iteration >= kSomeUntimed ? "at least " : "",
                 Milliseconds(times.total), Milliseconds(times.exposed));
  return text + "; " + part;
}

std::vector<std::string> NotesOf(const JobProfile& profile, bool several_devices, bool runs) {
  std::vector<std::string> notes;
  if (!profile.has_times) {
    notes.push_back(
        "no call has a GPU time: set DIAPASON_JOURNAL_TIMES=1 and load the profiler plugin too "
        "(library 2.27 and later)");
  } else if (profile.untimed_calls > 0) {
    notes.push_back(Format("{} of {} calls have no GPU time; they are not in the times here",
                           profile.untimed_calls, profile.calls));
  }
  if (profile.source == Source::kNone) {
    notes.push_back(
        "the calls do not repeat in a way that shows iterations: call diapason_step() once per "
        "iteration (diapason.step() in Python), or record more of them");
  }
  if (profile.source == Source::kCalls) {
    notes.push_back(Format(
        "the calls are all alike, and no pauses divide them: times are of {} calls, not of an "
        "iteration; call diapason_step() once per iteration (diapason.step() in Python)",
        kCallsTogether));
  }
  size_t without = 0;
  size_t cut = 0;
  for (const RankProfile& rank : profile.ranks) {
    without += profile.source != Source::kNone && rank.iterations == 0 ? 1 : 0;
    cut += rank.complete ? 0 : 1;
  }
  if (without > 0) {
    notes.push_back(Format("no iterations were found on {}", Count(without, "rank")));
  }
  if (profile.missing_ranks > 0) {
    notes.push_back(Format("{} of the largest communicator {} no journal here",
                           Count(profile.missing_ranks, "rank"),
                           profile.missing_ranks == 1 ? "has" : "have"));
  }
  if (cut > 0 && !runs) {
    notes.push_back(
        Format("{} not complete: the process did not end in order, or records are "
               "missing",
               cut == 1 ? "1 journal is" : Format("{} journals are", cut)));
  }
  if (profile.dropped > 0) {
    notes.push_back(
        Format("{} were dropped while the job ran: DIAPASON_JOURNAL_RECORDS makes room "
               "for more",
               Count(profile.dropped, "record")));
  }
  if (profile.bad_lines > 0) {
    notes.push_back(Format("{} could not be read, and left out", Count(profile.bad_lines, "line")));
  }
  if (several_devices) {
    notes.push_back(
        "a process has several ranks: its communicators were told apart by their rank numbers");
  }
  return notes;
}

}  // namespace diapason::job_profile
