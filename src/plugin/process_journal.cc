#include "plugin/process_journal.h"

#include <pthread.h>
#include <time.h>

#include <memory>

namespace diapason::plugin {
namespace {

constexpr int kLongestWait = 2;  // seconds

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
  // Bounded: a child forked while another thread was in here would wait for ever.
  timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += kLongestWait;
  if (pthread_mutex_timedlock(&g_mutex, &deadline) != 0) return nullptr;
  const std::unique_ptr<pthread_mutex_t, int (*)(pthread_mutex_t*)> unlock(&g_mutex,
                                                                           pthread_mutex_unlock);
  if (g_journal != nullptr && g_journal->Mine()) return g_journal;
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
  return g_journal;
}

}  // namespace diapason::plugin
