#pragma once

#include <string>

#include "base/environment.h"
#include "base/status.h"

namespace diapason::rendezvous {

// The secret that the ranks of a job share, by which they know each other.

// 32 bytes from the kernel, as 43 letters and digits. Fails where the kernel has none to give.
Result<std::string> DrawSecret();

// What this process was given: the content of DIAPASON_SECRET_FILE, without blanks and line feeds
// around it, else DIAPASON_SECRET; "" where neither is set. An error: a file that others can read
// or that belongs to another user, and a secret that is too short to be one or longer than 4 KiB.
// The error never holds the secret.
Result<std::string> ReadSecret(const Environment& environment);

}  // namespace diapason::rendezvous
