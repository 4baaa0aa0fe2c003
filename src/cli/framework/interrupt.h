#pragma once

namespace diapason::cli {

// For commands that shut down in an orderly way on Ctrl-C: after this call the first SIGINT or
// SIGTERM only sets a flag, which Interrupted() returns. The second one ends the process at once
// with kExitInterrupted.
void CatchInterrupts();
bool Interrupted();

}  // namespace diapason::cli
