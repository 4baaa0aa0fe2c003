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
  std::vector<SearchContext> contexts;  // those with most time first
  std::vector<TunedContext> all;        // those, in the same order, and then those that cannot be
                                        // tried, each with its reason
};

// Which contexts matter: those with at least `least_share` of the iteration's time, or, where calls
// are not timed, of the calls; at most kMostContexts. A call with less cannot make an iteration
// faster by more than noise does, and every one that is tried may seem to.
inline constexpr size_t kMostContexts = 12;
JobOffers FindOffers(const job_profile::JobProfile& profile,
                     const std::vector<journal::JournalContents>& journals,
                     double least_share = 0.02);

}  // namespace diapason::job_tune
