#pragma once

#include <string>

#include "base/environment.h"

namespace diapason::agree {

// The name if no variable identifies the job.
inline constexpr char kNoJob[] = "job";

// The same text on every rank of a job, and a different one for another job or another attempt:
// DIAPASON_JOB, else the ids of Slurm, torchrun or Open MPI, else "job". (Communicators of
// different jobs have different ids even then, unless NCCL_COMM_ID is set.) Letters, digits and
// "._-" only.
std::string JobIdentity(const Environment& environment);

// On how many hosts the job runs, according to the launcher.
enum class JobSpread { kUnknown, kOneHost, kSeveralHosts };
JobSpread LauncherSpread(const Environment& environment);

}  // namespace diapason::agree
