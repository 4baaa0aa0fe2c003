#pragma once

#include <string>

#include "base/status.h"
#include "job_tune/result.h"

namespace diapason::job_tune {

struct LeaveOptions {
  std::string folder;        // exists or is created
  std::string command_line;  // of diapason, for the dataset
  std::string fingerprint;   // MachineFingerprint(): for the policy and the dataset; "": not known
  std::string driver;        // DriverVersion()
  double now = 0;            // seconds since 1970
};

// Writes what tuning a job leaves into the folder, every file whole or not at all, and notes it in
// result->files:
//
// - policy.conf, only if the verdict is kFaster: the confirmed rows, each below a remark with its
//   evidence. Another one that was there is kept as policy.old.conf. If nothing was confirmed, a
//   policy of an earlier run stays as it is: it was confirmed then, and jobs may be using it.
// - result.json: everything (ResultJson).
// - measurements.db: the blocks of the search, added as one run of source "tune". A sample is an
//   iteration with one configuration in one context, or with the default beside it. What a sample
//   cannot say is not in it: the turns of a whole policy, several contexts at once, are in
//   result.json; the data type, which no journal has, is given as f32.
// - report.html.
//
// Fails at the first file that cannot be written; those before it stay.
Status Leave(const LeaveOptions& options, JobTuneResult* result);

// The policy's file, for tests: what Leave writes.
std::string PolicyFileText(const JobTuneResult& result, const std::string& fingerprint);

}  // namespace diapason::job_tune
