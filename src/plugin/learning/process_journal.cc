#include "plugin/learning/process_journal.h"

#include <atomic>
#include <memory>

#include "base/clock.h"
#include "base/mutex_lock.h"
#include "plugin/abi/fork_safe.h"

namespace diapason::plugin {
namespace {

// Never deleted: engines keep pointers to it, and a hanging disk may keep its thread running at
// exit.
constinit std::atomic<journal::Journal*> g_journal{nullptr};

// Runs when the process ends: the plugin is linked with -z nodelete.
__attribute__((destructor)) void StopAtExit() {
  journal::Journal* journal = g_journal.load();
  if (journal != nullptr) journal->Stop();
}

}  // namespace

journal::Journal* ProcessJournal(const Settings& settings, const HostLog& log) {
  if (!settings.IsSet(Setting::kJournal)) return nullptr;
  const MutexLock lock(&Locks().journal);
  if (journal::Journal* open = g_journal.load(); open != nullptr && open->Mine()) return open;
  journal::Journal::Options options;
  options.path = settings.Text(Setting::kJournal);
  options.records = static_cast<size_t>(settings.Number(Setting::kJournalRecords));
  options.limit = static_cast<uint64_t>(settings.Number(Setting::kJournalLimit));
  options.shared = settings.Flag(Setting::kJournalShared);
  Result<std::unique_ptr<journal::Journal>> opened = journal::Journal::Open(options);
  if (opened.ok()) {
    journal::Journal* journal = std::move(opened).value().release();
    g_journal.store(journal);
    log.Info("journal in " + journal->path());
  } else {
    g_journal.store(nullptr);
    log.Warn(opened.status().message() + "; going on without a journal");
  }
  return g_journal.load();
}

void JournalStep() noexcept {
  journal::Journal* journal = g_journal.load(std::memory_order_acquire);
  if (journal == nullptr || !journal->Mine()) return;
  journal::JournalRecord record;
  record.kind = journal::RecordKind::kStep;
  record.time_ns = WallTimeNs();
  journal->Add(record);
}

}  // namespace diapason::plugin
