#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "flight_recorder/record.h"

namespace diapason::flight_recorder {

// Whether a file that begins with `start` is a dump of PyTorch's flight recorder, JSON or pickle.
// Any pickle counts: ReadDump says if it is something else.
bool LooksLikeDump(std::string_view start);

// Parses a dump, `start` followed by the contents of `fd` (if not negative), JSON or pickle, and
// adds it to the record under the rank in its name or, failing that, in its contents. JSON of any
// size is read in constant memory, a pickle of any size in memory with a limit (pickle.h); no code
// of a pickle is run. Fails for anything else. The part of JSON before an error is kept, as a
// truncated dump: jobs are killed while they write.
Status ReadDump(int fd, std::string_view start, const std::string& name, FlightRecord* record);

// The rank in "nccl_trace_rank_3.json", "comm_lib_trace_rank_3", "dump3.pkl": the number behind
// the last "rank", or the last number in a file's name without its extension; -1 for none.
int64_t RankInName(std::string_view name);

// The note on a version of the format that is newer than those known; "" if it is known.
std::string VersionRemark(const std::string& version);

}  // namespace diapason::flight_recorder
