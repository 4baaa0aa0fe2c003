#include "job_tune/interrupts.h"

#include <signal.h>

#include <array>
#include <atomic>

namespace diapason::job_tune {
namespace {

constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

std::atomic<int> g_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);
std::array<struct sigaction, kSignals.size()> g_before;

void Note(int signal) { g_signal.store(signal, std::memory_order_relaxed); }

}  // namespace

Interrupts::Interrupts() {
  g_signal = 0;
  struct sigaction noting {};
  noting.sa_handler = Note;
  noting.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    (void)::sigaction(kSignals[i], nullptr, &g_before[i]);
    const bool ignored = g_before[i].sa_handler == SIG_IGN;  // NOLINT: the system's macro
    if (!ignored) (void)::sigaction(kSignals[i], &noting, nullptr);
  }
}

Interrupts::~Interrupts() {
  for (size_t i = 0; i < kSignals.size(); ++i)
    (void)::sigaction(kSignals[i], &g_before[i], nullptr);
}

int Interrupts::signal() { return g_signal.load(std::memory_order_relaxed); }

}  // namespace diapason::job_tune
