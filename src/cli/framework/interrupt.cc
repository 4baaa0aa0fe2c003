#include "cli/framework/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "cli/framework/command.h"

namespace diapason::cli {
namespace {

std::atomic<int> interrupts{0};

void Remember(int /*signal*/) {
  // A second signal ends the process at once.
  if (interrupts.fetch_add(1) > 0) ::_exit(kExitInterrupted);
}

}  // namespace

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = Remember;
  (void)::sigaction(SIGINT, &action, nullptr);
  (void)::sigaction(SIGTERM, &action, nullptr);
}

bool Interrupted() { return interrupts.load() > 0; }

}  // namespace diapason::cli
