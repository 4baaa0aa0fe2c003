#include "measure/lead_ranks.h"

#include "launch/own_program.h"
#include "measure/group_measurer.h"

namespace diapason::measure {
namespace {

// The ranks bound their waits themselves; how many calls are in one order is the user's choice.
constexpr double kLongestOrder = 86400;  // seconds

}  // namespace

Result<std::unique_ptr<JobMeasurer>> StartRanks(const RankOptions& options, bool choose) {
  // What every rank would say is said once, before any is started.
  RETURN_IF_ERROR(CheckSettings());
  ASSIGN_OR_RETURN(const std::string self, launch::OwnProgram());
  JobMeasurerOptions job;
  job.backend = BackendOf(options);
  job.cluster = options.cluster;
  job.launcher = LauncherHere(job.backend, RanksHere(options), self);
  job.limit = LimitOf(options);
  job.start_limit = std::max(job.start_limit, 2 * job.limit);
  job.grace = kLongestOrder;
  job.seed = options.seed;
  job.choose = choose;
  job.restarts = 0;
  job.show_output = true;
  return JobMeasurer::Create(std::move(job));
}

Result<int> LeadRanks(const RankOptions& options, bool choose,
                      const std::function<Result<int>(RankMeasurer* measurer)>& body) {
  if (!RanksAreHere(options)) {
    ASSIGN_OR_RETURN(const std::unique_ptr<JobMeasurer> measurer, StartRanks(options, choose));
    return body(measurer.get());
  }
  return RunOnEveryRank(options, choose, [&](Group* group) -> Result<int> {
    if (group->rank() != 0) {
      RETURN_IF_ERROR(GroupMeasurer::Follow(group));
      return 0;
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<GroupMeasurer> measurer,
                     GroupMeasurer::Lead(group, ClusterOf(options)));
    return body(measurer.get());
  });
}

}  // namespace diapason::measure
