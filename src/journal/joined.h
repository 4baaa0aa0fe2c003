#pragma once

#include <cstdint>
#include <vector>

#include "journal/reader.h"

namespace diapason::journal {

// The configuration in a record; of a decision the wanted one, even if it was not applied.
Config ConfigOf(const JournalRecord& record);
// The configuration that a decision asked the library for; default if nothing was changed.
Config AskedOf(const JournalRecord& decision);

// Whether the library ran the configuration that was asked for. Fields that were left to the
// library, and unknown names, count as obeyed.
enum class Obeyed {
  kYes,
  kOtherPair,      // another algorithm or protocol
  kOtherChannels,  // the pair, with another number of channels
};
Obeyed CompareRun(const JournalRecord& decision, const JournalRecord& run);

// For every record of a journal the index of its partner: of a run its decision, of a decision its
// first run (a captured call runs with every replay of its graph). kNoPartner if there is none.
inline constexpr uint32_t kNoPartner = UINT32_MAX;
std::vector<uint32_t> JoinRuns(const JournalContents& contents);

// For every communicator whether its runs name their decisions, so that a decision without a run
// did not run. Indexed as JournalContents::communicators.
std::vector<bool> SeesRuns(const JournalContents& contents);

}  // namespace diapason::journal
