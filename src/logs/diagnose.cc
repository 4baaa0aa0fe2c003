#include "logs/diagnose.h"

#include <algorithm>

#include "base/text.h"
#include "messages/catalogue.h"
#include "watch/proxy_dump.h"

namespace diapason::logs {

std::string RanksText(std::vector<int64_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::vector<std::string> parts;
  size_t shown = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (parts.size() == 8) {
      return Join(parts, ", ") + Format(" and {} more", ranks.size() - shown);
    }
    const auto first = static_cast<long long>(ranks[i]);
    const auto last = static_cast<long long>(ranks[end - 1]);
    if (end == i + 1) {
      parts.push_back(Format("{}", first));
    } else {
      parts.push_back(Format("{}{}{}", first, end == i + 2 ? ", " : "-", last));
    }
    shown += end - i;
    i = end;
  }
  return Join(parts, ", ");
}

std::string ProcessCount(size_t count) {
  return Format("{} process{}", count, count == 1 ? "" : "es");
}

namespace {

// "rank 0, rank 3 and others"; "" if unknown.
std::string Sayers(const Trouble& trouble) {
  std::vector<std::string> sayers = trouble.sayers;
  const bool more = sayers.size() > 4 || trouble.sayers_left_out > 0;
  if (sayers.size() > 4) sayers.resize(4);
  return Join(sayers, ", ") + (more ? " and others" : "");
}

Suspect SuspectOf(const LogFacts& facts, const Trouble& trouble, std::string title) {
  Suspect suspect;
  suspect.rank = trouble.rank;
  suspect.who = Sayers(trouble);
  suspect.time = trouble.time;
  suspect.lines = trouble.count;
  suspect.finding.title = std::move(title);
  if (!suspect.who.empty() && trouble.count > 1) {
    suspect.finding.title += Format(" ({}; {} lines)", suspect.who, trouble.count);
  } else if (!suspect.who.empty()) {
    suspect.finding.title += " (" + suspect.who + ")";
  } else if (trouble.count > 1) {
    suspect.finding.title += Format(" ({} lines)", trouble.count);
  }
  for (const SourceLine& place : trouble.places) {
    suspect.finding.evidence.push_back(facts.Where(place));
  }
  if (!trouble.places.empty()) suspect.spot = {trouble.places[0].file, trouble.places[0].line};
  return suspect;
}

void Merge(const Trouble& from, Trouble* into) {
  into->count += from.count;
  for (const SourceLine& place : from.places) {
    if (into->places.size() < 4) into->places.push_back(place);
  }
  for (const std::string& sayer : from.sayers) {
    if (std::find(into->sayers.begin(), into->sayers.end(), sayer) == into->sayers.end()) {
      into->sayers.push_back(sayer);
    }
  }
}

// Entries of the catalogue with one id and title make one finding.
void KnownMessages(const LogFacts& facts, std::vector<Suspect>* suspects) {
  const std::vector<messages::Message>& known = messages::Catalogue::BuiltIn().messages();
  std::vector<Trouble> troubles = facts.troubles.kinds;
  for (size_t i = 0; i < known.size(); ++i) {
    if (troubles[i].count == 0) continue;
    const messages::Message& message = known[i];
    int weight = message.weight;
    for (size_t j = i + 1; j < known.size(); ++j) {
      if (troubles[j].count == 0 || known[j].id != message.id || known[j].title != message.title) {
        continue;
      }
      Merge(troubles[j], &troubles[i]);
      weight = std::max(weight, known[j].weight);
      troubles[j].count = 0;
    }
    std::string title = message.title;
    if (message.quote) title += ": " + troubles[i].message;
    Suspect suspect = SuspectOf(facts, troubles[i], std::move(title));
    suspect.finding.id = message.id;
    suspect.finding.severity = message.severity;
    suspect.finding.action = message.action;
    suspect.cause = message.cause;
    suspect.weight = weight;
    suspects->push_back(std::move(suspect));
  }
}

void RaisedExceptions(const LogFacts& facts, std::vector<Suspect>* suspects) {
  size_t shown = 0;
  for (const Raised& raised : facts.raised.list) {
    if (++shown > 8) break;
    const bool follows = Follows(raised.type);
    Suspect suspect = SuspectOf(facts, raised.lines,
                                Format("{} raised {}{}{}",
                                       raised.lines.rank >= 0 ? Format("Rank {}", raised.lines.rank)
                                                              : std::string("The program"),
                                       raised.type, raised.text.empty() ? "" : ": ", raised.text));
    suspect.finding.id = "program.exception";
    suspect.finding.severity = Severity::kError;
    suspect.finding.action =
        "this Python exception ended the process; correct the program at the frame named";
    if (!raised.frame.empty()) suspect.finding.evidence.push_back("raised in " + raised.frame);
    suspect.cause = follows ? messages::Cause::kCascade : messages::Cause::kProgram;
    suspect.weight = follows ? 14 : 57;
    suspects->push_back(std::move(suspect));
  }
}

void UnknownLines(const LogFacts& facts, std::vector<Suspect>* suspects) {
  const Troubles& troubles = facts.troubles;
  if (troubles.unknown_warnings.count > 0) {
    Suspect suspect = SuspectOf(
        facts, troubles.unknown_warnings,
        "The library gave a warning of unknown meaning: " + troubles.unknown_warnings.message);
    suspect.finding.id = "warn.other";
    suspect.finding.severity = Severity::kWarning;
    suspect.finding.action = "read it; these are the library's own words";
    suspect.weight = 21;
    suspects->push_back(std::move(suspect));
  }
  if (troubles.unknown_errors.count > 0) {
    Suspect suspect = SuspectOf(facts, troubles.unknown_errors,
                                "A line calls itself an error: " + troubles.unknown_errors.message);
    suspect.finding.id = "log.error-line";
    suspect.finding.severity = Severity::kWarning;
    suspect.finding.action = "its meaning is not known; read it and the lines before it";
    suspect.weight = 8;
    suspects->push_back(std::move(suspect));
  }
  if (facts.tracebacks > 0 && suspects->empty()) {
    Suspect suspect;
    suspect.finding = {"program.traceback",
                       Severity::kError,
                       Format("A Python traceback whose last line is not in the logs ({})",
                              Count(facts.tracebacks, "traceback")),
                       {facts.Where(facts.first_traceback)},
                       "give the whole output of that process"};
    suspect.weight = 22;
    suspect.spot = {facts.first_traceback.file, facts.first_traceback.line};
    suspects->push_back(std::move(suspect));
  }
}

// Returned error codes say little; they count if there is no other message.
void ReturnedCodes(const LogFacts& facts, std::vector<Suspect>* suspects) {
  static constexpr std::string_view kCodes[] = {"",
                                                "CUDA or HIP error",
                                                "system error",
                                                "internal error",
                                                "invalid argument",
                                                "invalid usage",
                                                "remote error",
                                                "in progress"};
  if (!suspects->empty()) return;
  for (size_t code = 1; code < 7; ++code) {
    const LineCount& tally = facts.returned[code];
    if (tally.count == 0) continue;
    Suspect suspect;
    suspect.finding = {"op.returned",
                       Severity::kError,
                       Format("Calls of the library came back with: {} ({} lines)",
                              std::string(kCodes[code]), tally.count),
                       {facts.Where(tally.first)},
                       "the WARN line that belongs to it is not in these logs; give the logs of "
                       "all ranks, with NCCL_DEBUG=INFO"};
    suspect.weight = 9;
    suspect.spot = {tally.first.file, tally.first.line};
    suspects->push_back(std::move(suspect));
  }
}

}  // namespace

void DiagnoseTroubles(const LogFacts& facts, std::vector<Suspect>* suspects) {
  KnownMessages(facts, suspects);
  RaisedExceptions(facts, suspects);
  UnknownLines(facts, suspects);
  ReturnedCodes(facts, suspects);
}

namespace {

constexpr size_t kMostDumpFindings = 8;

// Per file: compares the first dump with the last, if there are two.
void DiagnoseDumps(const LogFacts& facts, std::vector<Finding>* findings) {
  std::vector<Finding> shown;
  for (const LogFacts::DumpLines& lines : facts.proxy_dumps) {
    const std::vector<watch::ProxyDump> dumps = watch::ParseProxyDumps(lines.text);
    if (dumps.empty()) continue;
    for (Finding& finding :
         watch::DiagnoseProxyDump(dumps.front(), dumps.size() > 1 ? &dumps.back() : nullptr)) {
      finding.evidence.insert(finding.evidence.begin(), facts.Where(lines.first));
      shown.push_back(std::move(finding));
    }
  }
  SortBySeverity(&shown);
  if (shown.size() > kMostDumpFindings) {
    Finding& last = shown[kMostDumpFindings - 1];
    last.title += Format(" (and {} more such findings)", shown.size() - kMostDumpFindings);
    shown.resize(kMostDumpFindings);
  }
  findings->insert(findings->end(), shown.begin(), shown.end());
}

}  // namespace

Diagnosis DiagnoseJob(const LogFacts& facts) {
  std::vector<Suspect> suspects;
  DiagnoseTroubles(facts, &suspects);
  std::vector<Finding> findings;
  DiagnoseWatchdog(facts, &findings);
  DiagnoseFlight(facts, &findings);
  DiagnoseRanks(facts, &findings);
  DiagnoseOperations(facts, &findings);
  DiagnoseSetup(facts, &findings);
  DiagnoseEnvironment(facts, &findings);
  DiagnoseLinks(facts, &findings);
  DiagnosePerf(facts, &findings);
  DiagnoseHang(facts, &findings);
  const bool nothing = facts.library_lines == 0 && facts.libraries.size() == 0 &&
                       facts.perf.tests.empty() && facts.flight.dumps.empty() &&
                       facts.topologies.files.empty() && facts.proxy_dumps.empty() &&
                       facts.proxy_traces.finished + facts.proxy_traces.unfinished == 0 &&
                       findings.empty() && suspects.empty();
  if (nothing) {
    findings.push_back({"log.nothing",
                        Severity::kNote,
                        "Nothing in here is of NCCL, RCCL or their tests",
                        {facts.files.empty() ? "no file" : facts.files[0].name},
                        "set NCCL_DEBUG=INFO for the job, and give the output of all ranks"});
  }
  DiagnoseDumps(facts, &findings);
  for (Finding& finding : findings) {
    Suspect suspect;
    suspect.weight = WeightOf(finding);
    suspect.finding = std::move(finding);
    suspects.push_back(std::move(suspect));
  }
  return Judge(facts, std::move(suspects));
}

std::vector<Finding> Diagnose(const LogFacts& facts) { return DiagnoseJob(facts).findings; }

}  // namespace diapason::logs
