#pragma once

#include <string>
#include <string_view>

namespace diapason {

// Removes passwords from values before they are shown or stored. Every function that prints, stores
// or exports an environment variable, a setting, a command line or a log line calls one of these
// two. Pure, thread-safe and idempotent.

// The value of the variable `name`, without its secrets:
//  - "***" if the name indicates a secret (PASSWORD, SECRET, TOKEN, API_KEY, CREDENTIAL ...);
//  - in URLs the password becomes "***": "redis://user:***@host:6379/0". A user without a password
//    stays in Redis addresses and becomes "***" elsewhere, where it may be a token;
//  - "password=..." and similar parameters after a '?' or '&'; names that end in "file" are paths
//    and stay.
// Where the end of a password is ambiguous, more is removed rather than less.
std::string MaskSecrets(std::string_view name, std::string_view value);

// The same for text that may contain assignments and URLs: a command line, "A=1 B=2", a log line.
// Blanks and line feeds are unchanged.
std::string MaskSecretsIn(std::string_view text);

}  // namespace diapason
