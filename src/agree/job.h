#pragma once

#include <string>

#include "base/environment.h"

namespace diapason::agree {

// Where nothing says which job this is.
inline constexpr char kNoJob[] = "job";

// The same text on every rank of a job, and another one for another job or another attempt of it:
// DIAPASON_JOB, else what Slurm, torchrun or Open MPI say, else "job". (Communicators of different
// jobs have different ids even then, save where NCCL_COMM_ID is set.) Letters, digits, "._-" only.
std::string JobIdentity(const Environment& environment);

// On how many hosts the launcher says that the job runs.
enum class JobSpread { kUnknown, kOneHost, kSeveralHosts };
JobSpread LauncherSpread(const Environment& environment);

}  // namespace diapason::agree
