// Variables that the library reported reading: differences between ranks, and invalid values.
#include <algorithm>

#include "base/text.h"
#include "domain/library_version.h"
#include "knobs/check.h"
#include "logs/diagnose.h"

namespace diapason::logs {
namespace {

// Variables that may differ between hosts.
bool MayDiffer(const std::string& name) {
  for (const std::string_view own :
       {"NCCL_HOSTID", "NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_IB_HCA",
        "NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_COMM_ID"}) {
    if (name == own) return true;
  }
  return false;
}

// Variables that all ranks must have in common.
bool MustAgree(const std::string& name) {
  for (const std::string_view shared :
       {"NCCL_ALGO", "NCCL_PROTO", "NCCL_BUFFSIZE", "NCCL_NTHREADS", "NCCL_MIN_NCHANNELS",
        "NCCL_MAX_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_P2P_NET_CHUNKSIZE",
        "NCCL_TUNER_PLUGIN", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_NVLS_ENABLE",
        "NCCL_COLLNET_ENABLE"}) {
    if (name == shared) return true;
  }
  return false;
}

void Differences(const LogFacts& facts, std::vector<Finding>* findings) {
  size_t speakers = 0;
  for (const LoggedProcess& process : facts.processes) speakers += process.environment ? 1 : 0;
  for (const Variable& variable : facts.variables) {
    std::vector<size_t> counts(variable.values.size() + 1);
    size_t said = 0;
    for (const uint8_t value : variable.chosen) {
      if (value == 0) continue;
      ++said;
      ++counts[value];
    }
    Finding finding;
    if (variable.values.size() > 1) {
      finding.id = "env.differs";
      finding.severity = MayDiffer(variable.name)   ? Severity::kNote
                         : MustAgree(variable.name) ? Severity::kError
                                                    : Severity::kWarning;
      finding.title = Format("{} differs between ranks", variable.name);
      for (uint32_t i = 0; i < variable.values.size() && i < 4; ++i) {
        finding.evidence.push_back(facts.Where(variable.places[i]) +
                                   Format(" ({})", ProcessCount(counts[i + 1])));
      }
      finding.action = MayDiffer(variable.name)
                           ? "fine where the hosts differ"
                           : "set it alike everywhere: hand it over with the launcher (mpirun -x, "
                             "srun --export), not with each host's files";
      findings->push_back(std::move(finding));
      continue;
    }
    if (said == speakers || !MustAgree(variable.name)) continue;
    finding.id = "env.not-everywhere";
    finding.severity = Severity::kNote;
    finding.title = Format("{} is reported by {} of {} processes that report their environment",
                           variable.name, said, speakers);
    finding.evidence.push_back(facts.Where(variable.places[0]));
    finding.action = "make sure that it is set on every rank";
    findings->push_back(std::move(finding));
  }
}

// Checks the variables themselves; positions in the log become the evidence.
void Check(const LogFacts& facts, std::vector<Finding>* findings) {
  std::vector<knobs::Assignment> assignments;
  for (const Variable& variable : facts.variables) {
    for (uint32_t i = 0; i < variable.values.size(); ++i) {
      assignments.push_back({variable.name, variable.values[i],
                             facts.Where(Spot{variable.places[i].file, variable.places[i].line}),
                             i > 0});
    }
  }
  if (assignments.empty()) return;
  knobs::CheckedFor checked_for;
  if (facts.libraries.size() == 1) {
    const std::string& name = facts.libraries[0];
    if (name.starts_with("RCCL")) checked_for.library = Library::kRccl;
    std::string_view version = std::string_view(name).substr(std::min<size_t>(name.size(), 5));
    version = version.substr(0, version.find_first_of("+- "));
    const Result<int> number = ParseLibraryVersion(version);
    if (number.ok()) checked_for.version = number.value();
  }
  for (Finding& finding :
       knobs::CheckAssignments(assignments, checked_for, knobs::Catalogue::BuiltIn())) {
    findings->push_back(std::move(finding));
  }
}

}  // namespace

void DiagnoseEnvironment(const LogFacts& facts, std::vector<Finding>* findings) {
  Differences(facts, findings);
  Check(facts, findings);
}

}  // namespace diapason::logs
