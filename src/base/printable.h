#pragma once

#include <string>
#include <string_view>

namespace diapason {

// Makes text from files and environments safe for a terminal: it cannot move the cursor or change
// colours, titles or the writing direction. Control characters, invalid UTF-8 and bidirectional
// controls are escaped as \x1b or \u202e; all other text is unchanged, so that the functions are
// idempotent. Pure and thread-safe.

// One line: line feeds and tabs are escaped too.
std::string Printable(std::string_view text);
// Several lines: line feeds stay.
std::string PrintableLines(std::string_view text);

// A JSON string, with its quotes, that is also safe in an HTML page: it cannot end the element
// around it. Invalid UTF-8 becomes U+FFFD.
std::string JsonString(std::string_view text);
// A JSON string in ASCII with one character for each byte of `text`: for paths, which may have any.
std::string JsonBytes(std::string_view text);
// Text of HTML elements and quoted attributes; line feeds and tabs stay. Invalid UTF-8 becomes
// U+FFFD.
std::string HtmlText(std::string_view text);

// Equivalent JSON with \u escapes for DEL, non-ASCII control characters and bidirectional controls,
// which JSON allows unescaped. `json` must be valid JSON in UTF-8.
std::string PrintableJson(std::string_view json);

}  // namespace diapason
