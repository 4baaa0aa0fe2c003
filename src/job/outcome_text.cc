// The lines that a run ends with.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "domain/library_version.h"
#include "job/outcome.h"

namespace diapason::job {
namespace {

constexpr size_t kShown = 3;

std::string Sizes(uint64_t least, uint64_t most) {
  return least == most ? FormatBytes(most) : FormatBytes(least) + " to " + FormatBytes(most);
}

// The first few, and how many more there are.
std::string Shortened(const std::vector<std::string>& parts, const char* noun) {
  std::vector<std::string> shown(
      parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), kShown)));
  std::string text = Join(shown, "; ");
  if (parts.size() > kShown) text += Format("; and {} more", Count(parts.size() - kShown, noun));
  return text;
}

std::string ContextText(const LearnedGain& gain) {
  return std::string(CollectiveName(gain.collective)) + " up to " + FormatBytes(gain.bytes) +
         (gain.communicator.empty() ? "" : " (" + gain.communicator + ")");
}

std::string FigureText(const LearnedGain& gain) {
  return gain.high > 0 ? Format("{:.2f} x ({:.2f} to {:.2f})", gain.gain, gain.low, gain.high)
                       : Format("{:.2f} x in trials, not confirmed", gain.gain);
}

std::string LibraryCalls(uint64_t calls, uint64_t of) {
  return calls == of ? "the library's own choice for all " + Count(calls, "call")
                     : Count(calls, "call") + " left to the library";
}

}  // namespace

std::string JobOutcome::NothingSeenText(const PreparedJob& job) const {
  if (status != 0) {
    return Format("no communicator was created: the command ended with status {} before that",
                  status);
  }
  const std::vector<std::string> program = job.command.Program();
  const std::string name = program.empty() ? "" : BaseName(program[0]);
  std::string text =
      "no communicator was created: no NCCL or RCCL of 2.19 or later has loaded the plugin in this "
      "command";
  if (job.library.file.empty()) {
    text += ", and none was found on this machine";
  }
  return text + ". If " + (name.empty() ? "it" : "'" + name + "'") +
         " does use one: `NCCL_DEBUG=INFO` says what it loads; a library that is linked "
         "statically, "
         "or a container without " +
         job.plugin + ", cannot load it";
}

std::string JobOutcome::ChosenText(const PreparedJob& job) const {
  if (communicators == 0) return NothingSeenText(job);
  std::vector<std::string> parts;
  uint64_t left = 0;
  const bool learns = job.mode == JobMode::kLearn && !learned.empty();
  if (learns) {
    size_t kept = 0;
    for (const LearnedGain& one : learned) {
      if (one.config.IsDefault()) {
        ++kept;
        continue;
      }
      parts.push_back(ContextText(one) + ": " +
                      ConfigText(one.library, one.collective, one.config));
    }
    std::string text = Shortened(parts, "context");
    if (kept > 0) {
      text += (text.empty() ? "" : "; ") + std::string("the library's own choice for ") +
              Count(kept, "context");
    }
    return text + (cut > 0 ? std::string(", at the end")
                           : Format(", at the end of {}", Count(calls, "call")));
  }
  for (const ChosenConfig& one : chosen) {
    if (one.config.IsDefault()) {
      left += one.calls;
      continue;
    }
    const std::string config = ConfigText(one.library, one.collective, one.config);
    parts.push_back(Format("{} {}: {}, {}", CollectiveName(one.collective),
                           Sizes(one.least_bytes, one.most_bytes), config,
                           Count(one.calls, "call")));
  }
  std::string text = Shortened(parts, "choice");
  if (calls == 0) return "nothing: the library asked about no call";
  if (left > 0) text += (text.empty() ? "" : "; ") + LibraryCalls(left, calls);
  if (left != calls) return text;
  if (!stood_aside.empty()) return text + ": " + stood_aside.front();
  if (job.mode == JobMode::kObserve) return text + ", as --observe wants it";
  if (job.mode == JobMode::kLearn) return text + ": nothing was tried yet";
  std::vector<std::string> called;
  for (const ChosenConfig& one : chosen) {
    called.push_back(std::string(CollectiveName(one.collective)) + " " +
                     Sizes(one.least_bytes, one.most_bytes));
  }
  return text + " (" + Shortened(called, "collective") +
         "): no row of the policy applies to them; `diapason journal show` says why";
}

std::string JobOutcome::GainText(const PreparedJob& job) const {
  if (communicators == 0 || calls == 0) return "not known: there was no call";
  if (job.mode == JobMode::kObserve) return "nothing: nothing was changed";
  if (compared.has_value() && !compared->ok()) return "not known: " + compared->status().message();
  if (compared.has_value()) {
    return compared->value().Text() + (compared->value().Decided() ? ", in turns in this run" : "");
  }
  if (job.mode == JobMode::kLearn) {
    std::vector<std::string> parts;
    std::set<bool> kinds;
    size_t unmeasured = 0;
    for (const LearnedGain& one : learned) {
      if (one.config.IsDefault()) continue;
      if (one.gain <= 0) {
        ++unmeasured;
        continue;
      }
      kinds.insert(one.iteration);
      parts.push_back(ContextText(one) + " " + FigureText(one));
    }
    if (parts.empty() && unmeasured > 0) {
      return "not known: what is in use was not compared with the default in this run";
    }
    if (parts.empty() && learned.empty()) {
      return Format("not known: nothing was measured in {}; learning takes some thousand",
                    Count(calls, "call"));
    }
    if (parts.empty()) return "nothing yet: no other configuration has proved to be faster";
    const std::string what = kinds.size() > 1 ? "times of calls or iterations"
                             : *kinds.begin() ? "times of iterations"
                                              : "times of calls";
    return Shortened(parts, "context") + "; " + what +
           " against the library's default, in turns in this run";
  }
  const bool any = std::any_of(chosen.begin(), chosen.end(),
                               [](const ChosenConfig& one) { return !one.config.IsDefault(); });
  if (!any) return "nothing: every call ran as without diapason";
  std::set<int> lines;
  for (const ChosenConfig& one : chosen) {
    if (one.line > 0 && !one.config.IsDefault()) lines.insert(one.line);
  }
  std::vector<std::string> cited;
  for (const int line : lines) {
    const auto found = job.evidence.find(line);
    if (found != job.evidence.end()) cited.push_back(Format("line {}: {}", line, found->second));
  }
  const std::string unknown = "not known: a policy is not compared with the default while it runs";
  if (cited.empty()) return unknown + "; --compare does that";
  return unknown + ". The policy says of itself: " + Shortened(cited, "line");
}

std::string JobOutcome::AgreementText(const PreparedJob& job) const {
  const std::string text = Judged(job);
  if (cut == 0 || journals == 0) return text;
  return text +
         Format("; {} of {} end before their process did ({}): nothing is known of later calls",
                cut, Count(journals, "journal"),
                status == 0 ? "at DIAPASON_JOURNAL_LIMIT" : "it was killed, or at their limit");
}

std::string JobOutcome::Judged(const PreparedJob& job) const {
  const std::string missing =
      job.command.Starting().hosts > 1 ? "; give --journal-dir a folder that all hosts share" : "";
  switch (agreement) {
    case Agreement::kAgreed:
      return "yes: " + report.Verdict();
    case Agreement::kNotNeeded:
      return "one rank only: there is nothing to compare";
    case Agreement::kPartly: {
      const std::string note = report.notes.empty() ? "" : "; " + report.notes.front();
      return "as far as is known: " + report.Verdict() + note + missing;
    }
    case Agreement::kDiffered: {
      std::string text = "NO: " + report.Verdict();
      if (!report.first.empty()) return text + ". First: " + report.first.front().Text();
      return report.problems.empty() ? text : text + ". " + report.problems.front();
    }
    case Agreement::kUnknown:
      break;
  }
  if (communicators == 0) return "not known: there are no journals";
  return "not known: " + report.Verdict() + missing;
}

}  // namespace diapason::job
