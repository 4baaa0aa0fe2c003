#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace diapason::knobs {

// A piece of a program in Python, JSON, C or a language alike.
struct Token {
  enum class Kind : uint8_t { kString, kName, kNumber, kSign, kLineEnd };
  Kind kind = Kind::kSign;
  std::string text;
  size_t line = 1;
  bool formatted = false;  // f"...": known only at run time where it has braces
  size_t column = 0;       // of the first token of a line
};

// The tokens of a text whose first line has the number `line`. `hash_comments`: '#' begins
// comments, as in Python; otherwise "//" and "/*" do. An unclosed string ends with its line. At
// most a million tokens; the last one is a line end.
std::vector<Token> Tokenize(std::string_view text, bool hash_comments, size_t line);

}  // namespace diapason::knobs
