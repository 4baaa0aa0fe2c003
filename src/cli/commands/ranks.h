#pragma once

#include "cli/framework/rules.h"
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

// measure::RunOnEveryRank and LeadRanks for a command: only rank 0 prints JSON.
Result<int> OnEveryRank(const RankOptions& options, bool choose, const RankBody& body);
Result<int> MeasureWithRanks(
    const RankOptions& options, bool choose,
    const std::function<Result<int>(measure::RankMeasurer* measurer)>& body);

}  // namespace diapason::cli
