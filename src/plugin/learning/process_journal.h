#pragma once

#include "base/settings.h"
#include "journal/writer.h"
#include "plugin/abi/host.h"

namespace diapason::plugin {

// The journal of this process, opened by the first communicator if DIAPASON_JOURNAL is set and kept
// until the process ends; nullptr if it is not set or cannot be opened (the log says why). A forked
// child opens its own.
journal::Journal* ProcessJournal(const Settings& settings, const HostLog& log);

// Writes to the journal that an iteration of the program has ended, if there is a journal. Takes no
// lock; any thread may call it.
void JournalStep() noexcept;

}  // namespace diapason::plugin
