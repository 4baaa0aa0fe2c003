#pragma once

#include "job_tune/result.h"
#include "report/job_page.h"

namespace diapason::job_tune {

// The report of a tuned job. `now`: seconds since 1970.
report::JobPage PageOf(const JobTuneResult& result, double now);

}  // namespace diapason::job_tune
