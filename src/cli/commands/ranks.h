#pragma once

#include "cli/framework/rules.h"
#include "host/job_library.h"
#include "launch/own_program.h"
#include "measure/lead_ranks.h"

namespace diapason::cli {

class CommandLine;

// The commands that measure take their ranks alike.
using launch::OwnArguments;
using launch::OwnProgram;
using measure::ClusterOf;
using measure::IsLaunched;
using measure::LimitOf;
using measure::RankBody;
using measure::RankOptions;
using measure::RanksHere;

// -g, --backend, --cluster, --limit, --seed. `all`: --backend takes that word too.
void AddRankOptions(CommandLine* command, RankOptions* options, bool all = false);
// A simulated cluster by its name; files are only looked at when they are read.
ValueRule ClusterName();

// Chooses the file of NCCL or RCCL for this process and for the ranks that it starts, by setting
// DIAPASON_NCCL_LIBRARY (DIAPASON_RCCL_LIBRARY): the file that --library-file names, else the one
// that a job on this machine will use (host/job_library.h). Called before any library is opened and
// before threads start. No file where the backend is not of a GPU, or none is found.
Result<host::JobLibrary> UseJobLibrary(const RankOptions& options);
// Says on standard error which file was chosen, if it is not the loader's.
void SayJobLibrary(const host::JobLibrary& job);

// measure::RunOnEveryRank and LeadRanks for a command: only rank 0 prints JSON.
Result<int> OnEveryRank(const RankOptions& options, bool choose, const RankBody& body);
Result<int> MeasureWithRanks(
    const RankOptions& options, bool choose,
    const std::function<Result<int>(measure::RankMeasurer* measurer)>& body);

}  // namespace diapason::cli
