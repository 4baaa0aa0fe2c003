#pragma once

#include <string>

#include "base/environment.h"
#include "base/status.h"

namespace diapason::rendezvous {

// The secret that the ranks of a job share, by which they authenticate each other.

// 32 bytes from the kernel, as 43 letters and digits. Fails if the kernel provides none.
Result<std::string> DrawSecret();

// The secret of this process: the content of DIAPASON_SECRET_FILE, without surrounding blanks and
// line feeds, else DIAPASON_SECRET; "" if neither is set. Fails for a file that other users can
// read or that belongs to another user, and for a secret that is too short or longer than 4 KiB.
// The message never contains the secret.
Result<std::string> ReadSecret(const Environment& environment);

}  // namespace diapason::rendezvous
