#include "logs/diagnose.h"

#include <algorithm>

#include "base/text.h"
#include "logs/cursor.h"
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

void DiagnoseTroubles(const LogFacts& facts, std::vector<Finding>* findings) {
  const std::vector<TroubleKind>& kinds = TroubleKinds();
  for (size_t i = 0; i < facts.troubles.kinds.size(); ++i) {
    const Trouble& trouble = facts.troubles.kinds[i];
    if (trouble.count == 0) continue;
    Finding finding;
    if (i < kinds.size()) {
      finding.id = kinds[i].id;
      finding.severity = kinds[i].severity;
      finding.title = kinds[i].title;
      finding.action = kinds[i].action;
    } else {
      finding.id = "warn.other";
      finding.severity = Severity::kWarning;
      finding.title = "The library gave other warnings";
      finding.action = "read them; they are the library's own words";
    }
    if (!trouble.sayers.empty()) {
      std::vector<std::string> sayers = trouble.sayers;
      const bool more = sayers.size() > 4 || trouble.sayers_left_out > 0;
      if (sayers.size() > 4) sayers.resize(4);
      finding.title += Format(" ({}; {}{})", Count(trouble.count, "line"), Join(sayers, ", "),
                              more ? " and others" : "");
    } else if (trouble.count > 1) {
      finding.title += Format(" ({} lines)", trouble.count);
    }
    for (const SourceLine& place : trouble.places) finding.evidence.push_back(facts.Where(place));
    if (finding.id == "ib.completion") {
      for (const SourceLine& place : trouble.places) {
        // "status=12", since 2.28 "status=IBV_WC_RETRY_EXC_ERR(12)", before 2.19 "error 12".
        Cursor cursor(place.text);
        int64_t status = 0;
        if (!cursor.SkipTo("with status=") && !cursor.SkipTo("with error ")) continue;
        Cursor behind = cursor;
        if (!cursor.Number(&status) && !(behind.SkipTo("(") && behind.Number(&status))) continue;
        const std::string_view meaning = IbStatusText(status);
        if (meaning.empty()) continue;
        finding.title += Format("; status {}: {}", status, std::string(meaning));
        break;
      }
    }
    findings->push_back(std::move(finding));
  }
  // Returned error codes say little; they count if there is no other message.
  static constexpr std::string_view kCodes[] = {"",
                                                "CUDA or HIP error",
                                                "system error",
                                                "internal error",
                                                "invalid argument",
                                                "invalid usage",
                                                "remote error",
                                                "in progress"};
  for (size_t code = 1; code < 7; ++code) {
    const LineCount& tally = facts.returned[code];
    if (tally.count == 0 || facts.troubles.Any() ||
        facts.troubles.kinds[facts.troubles.Other()].count > 0) {
      continue;
    }
    findings->push_back({"op.returned",
                         Severity::kError,
                         Format("Calls of the library came back with: {} ({} lines)",
                                std::string(kCodes[code]), tally.count),
                         {facts.Where(tally.first)},
                         "the WARN line that belongs to it is not in these logs; give the logs of "
                         "all ranks, with NCCL_DEBUG=INFO"});
  }
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

std::vector<Finding> Diagnose(const LogFacts& facts) {
  std::vector<Finding> findings;
  DiagnoseTroubles(facts, &findings);
  DiagnoseWatchdog(facts, &findings);
  DiagnoseFlight(facts, &findings);
  DiagnoseRanks(facts, &findings);
  DiagnoseOperations(facts, &findings);
  DiagnoseSetup(facts, &findings);
  DiagnoseEnvironment(facts, &findings);
  DiagnoseLinks(facts, &findings);
  DiagnosePerf(facts, &findings);
  const bool nothing =
      facts.library_lines == 0 && facts.libraries.size() == 0 && facts.perf.tests.empty() &&
      facts.flight.dumps.empty() && facts.topologies.files.empty() && facts.proxy_dumps.empty() &&
      facts.proxy_traces.finished + facts.proxy_traces.unfinished == 0 && findings.empty();
  if (nothing) {
    findings.push_back({"log.nothing",
                        Severity::kNote,
                        "Nothing in here is of NCCL, RCCL or their tests",
                        {facts.files.empty() ? "no file" : facts.files[0].name},
                        "set NCCL_DEBUG=INFO for the job, and give the output of all ranks"});
  }
  DiagnoseDumps(facts, &findings);
  SortBySeverity(&findings);
  return findings;
}

}  // namespace diapason::logs
