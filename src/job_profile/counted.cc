#include "job_profile/counted.h"

#include "domain/schedule.h"

namespace diapason::job_profile {
namespace {

double SecondsBetween(uint64_t from, uint64_t to) {
  return static_cast<double>(static_cast<int64_t>(to - from)) * 1e-9;
}

}  // namespace

bool IsCounted(const Call& call, const std::vector<Role>& roles, const CountedCalls& counted) {
  const Role& role = roles[call.role];
  return call.collective == counted.collective && SizeBand(call.bytes) == counted.band &&
         role.shape == counted.shape && role.library == counted.library;
}

RankIterations CountIterations(const Timeline& timeline, const std::vector<Role>& roles,
                               const CountedCalls& counted) {
  RankIterations found;
  std::vector<size_t> own;
  size_t timed = 0;
  for (size_t i = 0; i < timeline.calls.size(); ++i) {
    const Call& call = timeline.calls[i];
    if (!IsCounted(call, roles, counted)) continue;
    own.push_back(i);
    timed += call.timed() ? 1 : 0;
  }
  const size_t step = counted.per_iteration;
  if (step == 0 || own.size() <= step) return found;
  found.source = Source::kOrder;
  found.kinds = KindsBySize(timeline);
  found.startup_calls = own.front();
  found.gpu_clock = 2 * timed > own.size();
  for (size_t at = 0; at + step < own.size(); at += step) {
    const Call& first = timeline.calls[own[at]];
    const Call& next = timeline.calls[own[at + step]];
    if (found.gpu_clock && !(first.timed() && next.timed())) continue;
    const double length = found.gpu_clock ? SecondsBetween(first.start_ns, next.start_ns)
                                          : SecondsBetween(first.host_ns, next.host_ns);
    if (length > 0) found.timed.push_back({own[at], own[at + step], length, first.host_ns});
  }
  return found;
}

}  // namespace diapason::job_profile
