// The calls of a recorded job.
#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "dataset/import_journal.h"
#include "domain/collectives.h"
#include "journal/reader.h"
#include "logs/reader.h"
#include "measure/group_measurer.h"
#include "report/inputs.h"
#include "traces/inspector.h"
#include "tune/tuning.h"

namespace diapason::tune {
namespace {

using Kinds = std::map<std::pair<Operation, uint64_t>, uint64_t>;

constexpr size_t kLargestDump = size_t{256} << 20;

bool IsJournal(const std::string& path) {
  const Result<std::string> start = report::StartOf(path);
  return start.ok() && start.value().starts_with(dataset::kJournalMark);
}

// All ranks make the same calls: for several files, the largest count in one of them.
void TakeMost(const Kinds& kinds, Kinds* all) {
  for (const auto& [kind, calls] : kinds) {
    uint64_t& most = (*all)[kind];
    most = std::max(most, calls);
  }
}

// `*longest` is the order of calls of the rank that has recorded most.
Status AddJournalCalls(const std::string& path, Kinds* all, std::vector<TimedCall>* longest,
                       RecordedCalls* recorded) {
  ASSIGN_OR_RETURN(const journal::JournalContents contents, journal::ReadJournal(path));
  Kinds asked;
  Kinds ran;
  std::vector<TimedCall> order[2];  // asked, ran
  for (const journal::JournalRecord& record : contents.records) {
    const bool decision = record.kind == journal::RecordKind::kDecision;
    if (!decision && record.kind != journal::RecordKind::kRan) continue;
    if (record.collective >= kAskedCollectiveCount) {
      ++recorded->left_out;
      continue;
    }
    const Operation operation = OperationOf(static_cast<Collective>(record.collective));
    if (record.bytes == 0) continue;
    ++(decision ? asked : ran)[{operation, record.bytes}];
    order[decision ? 0 : 1].push_back({operation, record.bytes, record.time_ns});
  }
  std::vector<TimedCall>& calls = order[asked.empty() ? 1 : 0];
  // Threads of the job write side by side.
  std::stable_sort(calls.begin(), calls.end(),
                   [](const TimedCall& a, const TimedCall& b) { return a.time_ns < b.time_ns; });
  if (calls.size() > longest->size()) *longest = std::move(calls);
  TakeMost(asked.empty() ? ran : asked, all);
  for (const journal::JournalComm& communicator : contents.communicators) {
    recorded->ranks.push_back(communicator.shape.ranks);
  }
  return {};
}

bool IsDump(const std::string& path) {
  // The first line of a verbose dump is longer than what report::StartOf reads.
  const Result<std::string> start = report::StartOf(path);
  if (!start.ok() || !start.value().starts_with('{')) return false;
  const Result<std::string> text = ReadFile(path, kLargestDump);
  return text.ok() && traces::IsInspectorDump(text.value());
}

// A dump of NCCL Inspector has the calls of one rank. Only verbose dumps have their order.
Status AddDumpCalls(const std::string& path, Kinds* all, std::vector<TimedCall>* longest,
                    RecordedCalls* recorded) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestDump));
  const traces::InspectorDump dump = traces::ParseInspector(text);
  Kinds kinds;
  std::vector<TimedCall> order;
  bool ordered = true;
  for (const traces::InspectorCall& call : dump.calls) {
    const Result<Operation> operation = measure::ParseMeasured(call.collective);
    if (!operation.ok() || operation.value() == Operation::kSend) {
      ++recorded->left_out;
      continue;
    }
    ++kinds[{operation.value(), call.bytes}];
    recorded->ranks.push_back(call.ranks);
    ordered &= call.start_us > 0;
    order.push_back({operation.value(), call.bytes, call.start_us * 1000});
  }
  recorded->left_out += dump.point_to_point;
  recorded->unread += dump.bad_lines + dump.dropped + dump.missing;
  std::stable_sort(order.begin(), order.end(),
                   [](const TimedCall& a, const TimedCall& b) { return a.time_ns < b.time_ns; });
  if (ordered && order.size() > longest->size()) *longest = std::move(order);
  TakeMost(kinds, all);
  return {};
}

Status AddLogCalls(const std::vector<std::string>& paths, Kinds* all, RecordedCalls* recorded) {
  logs::LogFacts facts;
  std::vector<std::string> warnings;
  RETURN_IF_ERROR(logs::ReadLogs(paths, &facts, &warnings));
  const uint64_t processes = std::max<uint64_t>(1, facts.processes.size());
  Kinds kinds;
  for (const logs::CallKind& kind : facts.call_kinds) {
    const Result<Operation> operation =
        measure::ParseMeasured(std::string(facts.words[kind.collective]));
    if (!operation.ok() || operation.value() == Operation::kSend) {
      recorded->left_out += kind.times;
      continue;
    }
    kinds[{operation.value(), kind.bytes}] += std::max<uint64_t>(1, kind.times / processes);
  }
  for (const logs::LoggedComm& communicator : facts.communicators) {
    if (communicator.ranks > 0) recorded->ranks.push_back(communicator.ranks);
  }
  TakeMost(kinds, all);
  return {};
}

}  // namespace

Result<RecordedCalls> ReadWorkload(const std::vector<std::string>& files) {
  RecordedCalls recorded;
  Kinds all;
  std::vector<std::string> logs;
  std::vector<TimedCall> order;
  for (const std::string& file : files) {
    if (IsDump(file)) {
      RETURN_IF_ERROR(AddDumpCalls(file, &all, &order, &recorded));
      continue;
    }
    if (!IsJournal(file)) {
      logs.push_back(file);
      continue;
    }
    RETURN_IF_ERROR(AddJournalCalls(file, &all, &order, &recorded));
  }
  if (!logs.empty()) {
    RETURN_IF_ERROR(AddLogCalls(logs, &all, &recorded));
  }
  if (all.empty()) {
    return NotFound("no calls of collectives in '" + Join(files, "', '") +
                    "': journals (DIAPASON_JOURNAL) and logs of NCCL or RCCL with NCCL_DEBUG=INFO "
                    "NCCL_DEBUG_SUBSYS=COLL contain them, and dumps of NCCL Inspector");
  }
  recorded.step = FindStep(order);
  for (const auto& [kind, calls] : all) {
    recorded.entries.push_back({kind.first, kind.second, calls});
  }
  std::sort(recorded.ranks.begin(), recorded.ranks.end());
  recorded.ranks.erase(std::unique(recorded.ranks.begin(), recorded.ranks.end()),
                       recorded.ranks.end());
  return recorded;
}

}  // namespace diapason::tune
