#pragma once

#include <string>
#include <vector>

#include "job_profile/job_profile.h"
#include "job_tune/search.h"
#include "journal/reader.h"

namespace diapason::job_tune {

// What can be tried in a job, from its journals with tables (DIAPASON_JOURNAL_TABLES) and its
// profile.
struct JobOffers {
  std::vector<SearchContext> contexts;     // tried inside the job; those with most time first
  std::vector<SearchContext> by_launches;  // captured in graphs; the same
  // Those, in the same order, and then those that cannot be tried, each with its reason.
  std::vector<TunedContext> all;
  LookShares shares;
};

// Which contexts matter: those with at least `least_share` of the iteration's time, or, where calls
// are not timed, of what LookShares::Of says; at most kMostContexts inside the job, and
// kMostByLaunches by launches. A call with less cannot make an iteration faster by more than noise
// does, and every one that is tried may seem to.
//
// The library reports no call of a graph that runs within a node: these contexts come from the
// questions at capture time.
inline constexpr size_t kMostContexts = 12;
inline constexpr size_t kMostByLaunches = 4;
JobOffers FindOffers(const job_profile::JobProfile& profile,
                     const std::vector<journal::JournalContents>& journals,
                     double least_share = 0.02);

}  // namespace diapason::job_tune
