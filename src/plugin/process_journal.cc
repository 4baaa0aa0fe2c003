#include "plugin/process_journal.h"

#include <pthread.h>

namespace diapason::plugin {
namespace {

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
// Never deleted: engines keep pointers to it, and at exit a hanging disk may leave its thread
// behind.
journal::Journal* g_journal = nullptr;

// Runs when the process ends: the library is linked to stay loaded until then.
__attribute__((destructor)) void StopAtExit() {
  if (g_journal != nullptr) g_journal->Stop();
}

}  // namespace

journal::Journal* ProcessJournal(const Settings& settings, const HostLog& log) {
  if (!settings.IsSet(Setting::kJournal)) return nullptr;
  pthread_mutex_lock(&g_mutex);
  if (g_journal == nullptr || !g_journal->Mine()) {
    journal::Journal::Options options;
    options.path = settings.Text(Setting::kJournal);
    options.records = static_cast<size_t>(settings.Number(Setting::kJournalRecords));
    options.limit = static_cast<uint64_t>(settings.Number(Setting::kJournalLimit));
    Result<std::unique_ptr<journal::Journal>> opened = journal::Journal::Open(options);
    if (opened.ok()) {
      g_journal = std::move(opened).value().release();
      log.Info("journal in " + g_journal->path());
    } else {
      g_journal = nullptr;
      log.Warn(opened.status().message() + "; going on without a journal");
    }
  }
  journal::Journal* journal = g_journal;
  pthread_mutex_unlock(&g_mutex);
  return journal;
}

}  // namespace diapason::plugin
