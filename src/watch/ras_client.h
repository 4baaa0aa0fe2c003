#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/root_fs.h"
#include "base/status.h"
#include "watch/ras_answer.h"

namespace diapason::watch {

// Where NCCL's RAS listens without NCCL_RAS_ADDR.
inline constexpr const char* kRasAddress = "localhost:28028";

struct RasQuestion {
  std::string address = kRasAddress;  // HOST:PORT or [ADDRESS]:PORT, as NCCL_RAS_ADDR has it
  // The processes of the job. All processes of a host, also those of other jobs, listen at the same
  // port, and the kernel chooses the one that gets a connection.
  std::vector<pid_t> job;
  double handshake_s = 1;  // for the first line of an answer
  double answer_s = 20;    // for a whole answer; RAS waits about 6 s for a process that is silent
  const std::atomic<bool>* stop = nullptr;  // ends the wait early
};

struct RasReply {
  RasAnswer answer;
  std::string address;    // "127.0.0.1:28028"
  pid_t answered_by = 0;  // a process of `job`; 0 if it could not be determined
};

// Asks the RAS thread of one process of the job for VERBOSE STATUS, as JSON where that is known.
// Opens further connections while only processes of other jobs, or none (a stopped process accepts
// and says nothing), answer. Every wait is bounded, and so is the size of the answer.
//   kNotFound     no process listens there
//   kUnavailable  only other jobs answer there
//   kTimeout      no answer in time
//   kInvalid      the address or the answer is malformed
Result<RasReply> AskRas(const RootFs& tree, const RasQuestion& question);

}  // namespace diapason::watch
