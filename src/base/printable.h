#pragma once

#include <string>
#include <string_view>

namespace diapason {

// Text from files and environments, fit for a terminal: it can neither move the cursor nor change
// colours, titles or the direction of writing. Control characters, bytes that are no UTF-8 and
// characters that reverse the direction of text are written as \x1b or \u202e; everything else
// stays as it is, so that a second time changes nothing. Pure functions, for any thread.

// One line: line feeds and tabs are escaped too.
std::string Printable(std::string_view text);
// Several lines: line feeds stay.
std::string PrintableLines(std::string_view text);

// JSON that says the same with \u0000 escapes instead of DEL, the control characters that are not
// ASCII and those that reverse text, which JSON allows as they are. `json` is valid JSON in UTF-8.
std::string PrintableJson(std::string_view json);

}  // namespace diapason
