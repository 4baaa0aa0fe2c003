#pragma once

namespace diapason::cli {

// For commands that end in good order when somebody presses Ctrl-C: from here on SIGINT and SIGTERM
// are only remembered. The second one ends the process at once, with kExitInterrupted.
void CatchInterrupts();
bool Interrupted();

}  // namespace diapason::cli
