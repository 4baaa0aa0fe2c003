#include "agree/job.h"

#include "base/encoding.h"
#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr size_t kLongest = 60;

std::string Get(const Environment& environment, const char* name) {
  return environment.Get(name).value_or("");
}

// A launcher's ids as one word. Unsuitable characters are replaced by a digest, so that different
// ids stay different.
std::string Plain(const std::string& text) {
  std::string word;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && !word.empty());
    word += plain ? c : '-';
  }
  if (word == text && word.size() <= kLongest) return word;
  return word.substr(0, kLongest - 17) + Format(".{:016x}", Fnv1a64(text));
}

}  // namespace

// Only values that are the same on every rank are used. Some launcher variables are not:
//   - Slurm's step differs if another launcher starts the ranks: those that mpirun forks itself are
//   in
//     the batch step, the others in that of its daemons; and there may be a step per node.
//   - torchrun counts a restart only on the node whose workers failed.
//   - mpirun passes the batch script's Slurm variables to its own node only, if it starts the
//   others by
//     ssh.
std::string JobIdentity(const Environment& environment) {
  const std::string own = Get(environment, "DIAPASON_JOB");
  if (!own.empty()) return Plain(own);

  std::vector<std::string> parts;
  const auto add = [&](const char* name) {
    const std::string value = Get(environment, name);
    if (!value.empty()) parts.push_back(value);
    return !value.empty();
  };
  const std::string torchrun = Get(environment, "TORCHELASTIC_RUN_ID");
  std::string mpi = Get(environment, "PMIX_NAMESPACE");
  if (mpi.empty()) mpi = Get(environment, "OMPI_MCA_ess_base_jobid");
  const bool by_slurm = mpi.empty() || mpi.compare(0, 5, "slurm") == 0;
  if (by_slurm && add("SLURM_JOB_ID")) {
    if (torchrun.empty() && mpi.empty()) add("SLURM_STEP_ID");
    const std::string restarts = Get(environment, "SLURM_RESTART_COUNT");
    if (!restarts.empty()) parts.push_back("r" + restarts);
  }
  if (!mpi.empty()) parts.push_back(mpi);
  if (!torchrun.empty()) {
    parts.push_back(torchrun);
    if (Get(environment, "GROUP_WORLD_SIZE") == "1") add("TORCHELASTIC_RESTART_COUNT");
  }
  if (parts.empty()) return kNoJob;
  return Plain(Join(parts, "_"));
}

JobSpread LauncherSpread(const Environment& environment) {
  // Variables with the number of ranks on this host, and of all ranks.
  constexpr const char* kRanks[][2] = {{"LOCAL_WORLD_SIZE", "WORLD_SIZE"},
                                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"},
                                       {"MPI_LOCALNRANKS", "MPI_NRANKS"}};
  for (const auto& [local, all] : kRanks) {
    uint64_t here = 0;
    uint64_t world = 0;
    if (ParseUnsigned(Get(environment, local), &here) &&
        ParseUnsigned(Get(environment, all), &world) && here > 0) {
      return here >= world ? JobSpread::kOneHost : JobSpread::kSeveralHosts;
    }
  }
  for (const char* name : {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES"}) {
    uint64_t nodes = 0;
    if (ParseUnsigned(Get(environment, name), &nodes) && nodes > 0) {
      return nodes == 1 ? JobSpread::kOneHost : JobSpread::kSeveralHosts;
    }
  }
  return JobSpread::kUnknown;
}

}  // namespace diapason::agree
