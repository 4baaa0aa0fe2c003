#include "plugin/learning/process_journal.h"

#include <memory>

#include "base/mutex_lock.h"
#include "plugin/abi/fork_safe.h"

namespace diapason::plugin {
namespace {

// Never deleted: engines keep pointers to it, and a hanging disk may keep its thread running at
// exit.
journal::Journal* g_journal = nullptr;

// Runs when the process ends: the plugin is linked with -z nodelete.
__attribute__((destructor)) void StopAtExit() {
  if (g_journal != nullptr) g_journal->Stop();
}

}  // namespace

journal::Journal* ProcessJournal(const Settings& settings, const HostLog& log) {
  if (!settings.IsSet(Setting::kJournal)) return nullptr;
  const MutexLock lock(&Locks().journal);
  if (g_journal != nullptr && g_journal->Mine()) return g_journal;
  journal::Journal::Options options;
  options.path = settings.Text(Setting::kJournal);
  options.records = static_cast<size_t>(settings.Number(Setting::kJournalRecords));
  options.limit = static_cast<uint64_t>(settings.Number(Setting::kJournalLimit));
  options.shared = settings.Flag(Setting::kJournalShared);
  Result<std::unique_ptr<journal::Journal>> opened = journal::Journal::Open(options);
  if (opened.ok()) {
    g_journal = std::move(opened).value().release();
    log.Info("journal in " + g_journal->path());
  } else {
    g_journal = nullptr;
    log.Warn(opened.status().message() + "; going on without a journal");
  }
  return g_journal;
}

}  // namespace diapason::plugin
