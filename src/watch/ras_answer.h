#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace diapason::watch {

// A count that the answer does not contain: the text form names the ranks of small groups only.
inline constexpr uint64_t kUnknownCount = UINT64_MAX;

// Why a rank of a communicator has no counts in an answer.
enum class RasAbsence : uint8_t {
  kNone,          // it has counts
  kLeft,          // its process answered, and is not a member (any more)
  kUnresponsive,  // its process did not answer
  kDead,          // RAS has given up on its process, after a minute by default
};

struct RasRank {
  int rank = -1;
  std::string host;  // an IP address; "" if unknown
  int pid = -1;      // in the PID namespace of the rank; -1 if unknown
  RasAbsence absence = RasAbsence::kNone;
  int async_error = 0;  // an ncclResult_t; in the text form 1 for any error
  bool initialising = false;
  bool ending = false;   // finalize or destroy has been called
  bool aborted = false;  // ncclCommAbort has been called
  // Collectives launched, not finished, in the order of RasAnswer::functions. Empty: unknown.
  std::vector<uint64_t> counts;
};

struct RasCommunicator {
  std::string hash;            // "0x8a1c..."; "" if the answer does not contain it
  int size = 0;                // ranks
  std::vector<RasRank> ranks;  // sorted by rank; may be incomplete in the text form
};

// The answer of NCCL's RAS (2.24 and later) to VERBOSE STATUS.
struct RasAnswer {
  std::string nccl_version;
  bool json = false;
  std::vector<std::string> functions;  // names of the counts: "AllReduce"
  std::vector<RasCommunicator> communicators;
  double collection_s = 0;  // time RAS needed; 0 if unknown
  int timeouts = 0;         // processes that did not answer in time, as RAS counts them
};

// The most that is accepted of an answer.
inline constexpr size_t kMostRasBytes = size_t{64} << 20;
inline constexpr size_t kMostRasRanks = size_t{1} << 18;  // of all communicators together
inline constexpr size_t kMostRasCommunicators = 65536;
inline constexpr size_t kMostRasFunctions = 16;

// Parses either form; a text that begins with '{' is JSON. Accepts the missing comma of NCCL 2.28's
// JSON, and keys and lines that it does not know. kInvalid for an answer that is not complete, is
// no answer of RAS, or exceeds the limits above.
Result<RasAnswer> ParseRasAnswer(std::string_view text);

// The two forms, for tests.
Result<RasAnswer> ParseRasJson(std::string_view text);
Result<RasAnswer> ParseRasText(std::string_view text);

}  // namespace diapason::watch
