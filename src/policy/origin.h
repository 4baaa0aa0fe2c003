#pragma once

namespace diapason::policy {

// The origin in the header of a policy that `tune --workload` has made: the calls of a recorded job
// were judged, and not the job.
inline constexpr char kFromRecordedCalls[] = "diapason tune, recorded calls";
// What has to be said wherever the gain of such a policy is.
inline constexpr char kCallsAlone[] =
    "calls alone were judged, without the job around them: its iterations can gain less, or more";
// The origin of one that `tune -- COMMAND` has made: the iterations of the job were judged.
inline constexpr char kFromWholeJob[] = "diapason tune, whole job";

}  // namespace diapason::policy
