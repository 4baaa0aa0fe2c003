#include "job/policy_status.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/policy/policy_options.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "dataset/store.h"
#include "domain/fingerprint.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostShown = 8;

// The versions of the library in a store, of the policy's library.
Result<std::vector<std::string>> VersionsIn(const std::string& path, Library library) {
  ASSIGN_OR_RETURN(std::unique_ptr<dataset::SampleStore> store,
                   dataset::SampleStore::Open(path, dataset::SampleStore::Access::kRead));
  ASSIGN_OR_RETURN(const std::vector<dataset::SampleRun> runs, store->Runs());
  std::set<std::string> versions;
  for (const dataset::SampleRun& run : runs) {
    if (run.machine.library == LibraryName(library) && !run.machine.library_version.empty()) {
      versions.insert(run.machine.library_version);
    }
  }
  return std::vector<std::string>(versions.begin(), versions.end());
}

ordered_json CallsJson(const std::vector<job::StatusCall>& calls) {
  ordered_json list = ordered_json::array();
  for (const job::StatusCall& call : calls) {
    list.push_back({{"collective", CollectiveName(call.collective)},
                    {"bytes", call.bytes},
                    {"nodes", call.shape.nodes},
                    {"ranks", call.shape.ranks},
                    {"calls", call.calls},
                    {"seconds", call.seconds}});
  }
  return list;
}

void PrintStatus(const std::string& name, const job::PolicyStatus& status) {
  PrintOut("{}: {}\n", Printable(name), Count(status.rows, "row"));
  if (status.calls > 0) {
    PrintOut("calls    {} of {} match a row ({} of {} rows in use)\n", status.covered_calls,
             status.calls, status.rows_used, status.rows);
    if (status.seconds > 0) {
      PrintOut("time     {:.1f} % of {:.3f} ms in collectives on rows of the policy\n",
               status.CoveredShare() * 100, status.seconds * 1e3);
    }
    for (size_t i = 0; i < std::min(status.uncovered.size(), kMostShown); ++i) {
      const job::StatusCall& call = status.uncovered[i];
      PrintOut("no row   {} {}, {} on {}: {}, {:.3f} ms\n", CollectiveName(call.collective),
               FormatBytes(call.bytes), Count(static_cast<size_t>(call.shape.ranks), "rank"),
               Count(static_cast<size_t>(call.shape.nodes), "node"), Count(call.calls, "call"),
               call.seconds * 1e3);
    }
    if (status.uncovered.size() > kMostShown) {
      PrintOut("no row   {} further; --json lists all\n", status.uncovered.size() - kMostShown);
    }
  }
  for (const std::string& one : status.unknown) PrintOut("not known  {}\n", Printable(one));
  for (const std::string& one : status.reasons) PrintOut("tune again  {}\n", Printable(one));
  if (status.reasons.empty()) PrintOut("no reason to tune again is known\n");
}

}  // namespace

Result<int> RunPolicyStatus(const PolicyOptions& options) {
  std::string name;
  ASSIGN_OR_RETURN(policy::Policy policy, LoadPolicyOf(options, &name));
  job::PolicyStatusInput input;
  input.machine_here = MachineFingerprint();
  std::string store = options.store;
  if (store.empty() && !options.file.empty()) {
    const auto beside = std::filesystem::path(options.file).parent_path() / "measurements.db";
    std::error_code ignored;
    if (std::filesystem::is_regular_file(beside, ignored)) store = beside.string();
  }
  if (!store.empty()) {
    ASSIGN_OR_RETURN(input.made_versions, VersionsIn(store, policy.library));
  }
  size_t bad_lines = 0;
  for (const std::string& file : options.journals) {
    ASSIGN_OR_RETURN(journal::JournalContents contents, journal::ReadJournal(file));
    bad_lines += contents.bad_lines;
    input.journals.push_back(std::move(contents));
  }
  input.policy = std::move(policy);
  job::PolicyStatus status = job::JudgePolicy(input);
  if (bad_lines > 0) {
    status.unknown.push_back(Count(bad_lines, "line") + " of the journals could not be read");
  }
  if (options.json) {
    PrintOut("{}\n", JsonText(ordered_json{{"policy", name},
                                           {"rows", status.rows},
                                           {"rows_used", status.rows_used},
                                           {"made_for", status.made_for},
                                           {"machine", status.machine_here},
                                           {"made_with_versions", status.made_versions},
                                           {"versions", status.versions_now},
                                           {"calls", status.calls},
                                           {"covered_calls", status.covered_calls},
                                           {"applied_calls", status.applied_calls},
                                           {"seconds", status.seconds},
                                           {"covered_seconds", status.covered_seconds},
                                           {"uncovered", CallsJson(status.uncovered)},
                                           {"tune_again", !status.reasons.empty()},
                                           {"reasons", status.reasons},
                                           {"not_known", status.unknown}}));
  } else {
    PrintStatus(name, status);
  }
  return status.reasons.empty() ? kExitFine : kExitWarnings;
}

}  // namespace diapason::cli
