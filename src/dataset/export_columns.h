#pragma once

#include <cstddef>
#include <string_view>

namespace diapason::dataset {

// The columns of an exported table: those of the run, then those of the sample. The last,
// busbw_gbs, is derived, for readers.
inline constexpr std::string_view kExportTitles =
    "run,source,origin,started,state,plan,library,library_version,gpu,driver,topology,hosts,tool,"
    "simulated,machine_environment,"
    "kind,collective,bytes,nodes,ranks,type,reduce,root,in_place,algorithm,protocol,channels,"
    "segment_bytes,environment,workload,round,seconds,coarse,iterations,wrong,outcome,note,at,"
    "busbw_gbs";
inline constexpr size_t kRunColumns = 15;
inline constexpr size_t kSampleColumns = 24;

}  // namespace diapason::dataset
