#pragma once

#include <cstdint>
#include <vector>

#include "journal/reader.h"

namespace diapason::journal {

// The configuration in a record: of a decision what was wanted, even where nothing was changed.
Config ConfigOf(const JournalRecord& record);
// What a decision asked of the library; nothing where nothing was changed.
Config AskedOf(const JournalRecord& decision);

// Whether the library did as it was asked. What was left to it cannot be done otherwise, and what
// we have no name for counts as done.
enum class Obeyed {
  kYes,
  kOtherPair,      // another algorithm or protocol
  kOtherChannels,  // the pair, with another number of channels
};
Obeyed CompareRun(const JournalRecord& decision, const JournalRecord& run);

// For every record of a journal the index of its partner: of a run its decision, of a decision its
// first run (a captured call runs whenever its graph does). kNobody where there is none.
inline constexpr uint32_t kNobody = UINT32_MAX;
std::vector<uint32_t> JoinRuns(const JournalContents& contents);

// For every record whether its communicator has runs that name their decisions, so that a decision
// without one did not run. Indexed as Contents::communicators.
std::vector<bool> SeesRuns(const JournalContents& contents);

}  // namespace diapason::journal
