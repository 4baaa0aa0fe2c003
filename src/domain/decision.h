#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "diapason/config.h"
#include "domain/vocabulary.h"

namespace diapason {

// "tree/simple, 4 channels", "any/simple", "library default".
std::string ConfigText(Library library, Collective collective, const Config& config);

// What is fixed for the life of a communicator.
struct Shape {
  int64_t nodes = 0;
  int64_t ranks = 0;
  friend bool operator==(const Shape&, const Shape&) = default;
};

// One question of the library to the tuner.
struct Question {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  int pipe_ops = 1;
  int reg_buff = 0;
};

// The reason for an answer. Stored in journals: values never change.
enum class Reason : uint8_t {
  kNoRow = 0,           // no row of the policy matches: library default
  kRow = 1,             // a row of the policy
  kPinned = 2,          // measuring code pinned the configuration
  kUnavailable = 3,     // the library's table does not offer the row's pair
  kUnknownSupport = 4,  // this API version does not report whether the pair works here
  kPartialRow = 5,      // the row names half a pair, which this API version cannot express
  kFp8Guard = 6,        // the library avoids ring for 8-bit reductions
  kTreeTooSmall = 7,    // RCCL's tree does not work below 64 bytes
  kNoPolicy = 8,        // no policy is set, or it was rejected
  kLibraryRule = 9,     // a rule that the library follows only without a tuner
  kTrying = 10,         // all ranks try this configuration for some calls
  kLearned = 11,        // the best configuration known so far in this job
  kWarmUp = 12,         // a first use, which sets up connections and is not measured
  kHeld = 13,           // no proposal was there in time: the best configuration known so far
  kNumerics = 14,       // it could change the rounding of sums, and DIAPASON_NUMERICS=pinned
  kDefaultTurn = 15,    // a row matches, and it is the turn of the library's default
};

std::string_view ReasonName(Reason reason);      // "no-row": for journals
std::string_view ReasonSentence(Reason reason);  // for the user
Result<Reason> ParseReason(std::string_view name);

}  // namespace diapason
