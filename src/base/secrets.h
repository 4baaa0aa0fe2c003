#pragma once

#include <string>
#include <string_view>

namespace diapason {

// What may be shown or stored of a value that may hold a password. Everything that prints, stores
// or exports an environment variable, a setting, a command line or a line of a log goes through
// one of these two. Pure functions: they may be called from any thread, and applying one twice
// changes nothing more.

// The value of the variable `name`, without its secrets:
//  - "***" where the name says that it is one (PASSWORD, SECRET, TOKEN, API_KEY, CREDENTIAL ...);
//  - in URLs the password becomes "***": "redis://user:***@host:6379/0". A user without a password
//    stays in addresses of Redis and becomes "***" elsewhere, where it may be a token;
//  - "password=..." and the like behind a '?' or '&'; names that end in "file" are paths and stay.
// Where it cannot be told what belongs to a password, too much is left out rather than too little.
std::string MaskSecrets(std::string_view name, std::string_view value);

// The same for text in which there may be assignments and URLs: a command line, "A=1 B=2", a line
// of a log. Blanks and line feeds stay as they are.
std::string MaskSecretsIn(std::string_view text);

}  // namespace diapason
