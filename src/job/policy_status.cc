#include "job/policy_status.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "domain/library_version.h"
#include "policy/table.h"

namespace diapason::job {
namespace {

using journal::RecordKind;

using CallKey = std::tuple<uint8_t, uint64_t, int64_t, int64_t>;

// The calls of one journal: its runs, or its decisions where the profiler half was not loaded.
void TakeJournal(const journal::JournalContents& contents, const policy::Policy& policy,
                 std::map<CallKey, StatusCall>* calls, PolicyStatus* status,
                 std::set<std::string>* versions) {
  std::map<uint32_t, policy::DecisionTable> tables;
  for (const journal::JournalComm& communicator : contents.communicators) {
    tables.try_emplace(communicator.number, policy,
                       policy::DecisionTable::Options{communicator.shape, true, false});
    if (communicator.library_version > 0) {
      versions->insert(LibraryVersionText(communicator.library_version));
    }
  }
  const bool ran = std::any_of(contents.records.begin(), contents.records.end(),
                               [](const auto& one) { return one.kind == RecordKind::kRan; });
  for (const journal::JournalRecord& record : contents.records) {
    if (record.kind == RecordKind::kDecision && record.reason == Reason::kRow && record.applied) {
      ++status->applied_calls;
    }
    if (record.kind != (ran ? RecordKind::kRan : RecordKind::kDecision)) continue;
    const journal::JournalComm* communicator = contents.Find(record.communicator);
    if (communicator == nullptr || record.collective >= kCollectiveCount) continue;
    Question question;
    question.collective = static_cast<Collective>(record.collective);
    question.bytes = record.bytes;
    question.pipe_ops = std::max(record.pipe_ops, 1);
    question.reg_buff = record.reg_buff < 0 ? policy::kAny : (record.reg_buff > 0 ? 1 : 0);
    const policy::DecisionTable::Entry* entry = tables.at(record.communicator).Find(question);
    StatusCall& call = (*calls)[{record.collective, record.bytes, communicator->shape.nodes,
                                 communicator->shape.ranks}];
    call.collective = question.collective;
    call.bytes = record.bytes;
    call.shape = communicator->shape;
    ++call.calls;
    call.seconds += std::max(record.seconds, 0.0);
    call.line = entry == nullptr ? 0 : std::max(entry->line, 1);
  }
}

void Sum(const std::map<CallKey, StatusCall>& calls, PolicyStatus* status) {
  std::set<int> lines;
  for (const auto& [key, call] : calls) {
    status->calls += call.calls;
    status->seconds += call.seconds;
    if (call.line > 0) {
      status->covered_calls += call.calls;
      status->covered_seconds += call.seconds;
      lines.insert(call.line);
    } else {
      status->uncovered.push_back(call);
    }
  }
  status->rows_used = lines.size();
  std::stable_sort(status->uncovered.begin(), status->uncovered.end(),
                   [](const StatusCall& a, const StatusCall& b) {
                     return std::tie(a.seconds, a.calls) > std::tie(b.seconds, b.calls);
                   });
}

void JudgeMachine(PolicyStatus* status) {
  if (status->made_for.empty()) {
    status->unknown.emplace_back(
        "the machine it was made for: its header has no fingerprint (`diapason policy convert "
        "--fingerprint here` adds one)");
  } else if (status->machine_here.empty()) {
    status->unknown.emplace_back("this machine: no driver lists GPUs here");
  } else if (status->made_for != status->machine_here) {
    status->reasons.push_back(Format("it was made for '{}', this machine is '{}'", status->made_for,
                                     status->machine_here));
  }
}

void JudgeLibrary(PolicyStatus* status) {
  if (status->made_versions.empty()) {
    status->unknown.emplace_back(
        "the library's version it was made with: measurements.db beside the policy, or --store, "
        "has it");
    return;
  }
  if (status->versions_now.empty()) {
    status->unknown.emplace_back("the library's version now: journals have it (--journal)");
    return;
  }
  for (const std::string& version : status->versions_now) {
    if (std::find(status->made_versions.begin(), status->made_versions.end(), version) !=
        status->made_versions.end()) {
      continue;
    }
    status->reasons.push_back(Format("it was made with version {} of the library, jobs run {}",
                                     Join(status->made_versions, ", "), version));
  }
}

void JudgeCalls(bool journals, PolicyStatus* status) {
  if (!journals) {
    status->unknown.emplace_back("the calls of jobs: journals have them (--journal)");
    return;
  }
  if (status->calls == 0) {
    status->unknown.emplace_back("the calls of jobs: the journals have none");
    return;
  }
  if (status->rows > 0 && status->CoveredShare() < kLeastCovered) {
    status->reasons.push_back(
        Format("{:.0f} % of the {} of the calls run on its rows: jobs make other calls now",
               status->CoveredShare() * 100, status->seconds > 0 ? "time" : "number"));
  }
  if (status->covered_calls > 0 && status->applied_calls == 0) {
    status->unknown.emplace_back(
        "whether jobs use it: rows match calls of the journals, and none was applied there");
  }
}

}  // namespace

double PolicyStatus::CoveredShare() const {
  if (seconds > 0) return covered_seconds / seconds;
  return calls > 0 ? static_cast<double>(covered_calls) / static_cast<double>(calls) : 1;
}

PolicyStatus JudgePolicy(const PolicyStatusInput& input) {
  PolicyStatus status;
  status.rows = input.policy.rules.size();
  status.made_for = input.policy.header.fingerprint;
  status.machine_here = input.machine_here;
  status.made_versions = input.made_versions;
  std::map<CallKey, StatusCall> calls;
  std::set<std::string> versions;
  for (const journal::JournalContents& contents : input.journals) {
    TakeJournal(contents, input.policy, &calls, &status, &versions);
  }
  status.versions_now.assign(versions.begin(), versions.end());
  Sum(calls, &status);
  if (status.rows == 0) status.reasons.emplace_back("it has no rows");
  JudgeMachine(&status);
  JudgeLibrary(&status);
  JudgeCalls(!input.journals.empty(), &status);
  return status;
}

}  // namespace diapason::job
