#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason {

// fmt::format, the way text is formatted here (g++ 12 has no std::format). The compiler checks the
// format against the arguments. fmt itself is compiled once, in text.cc, and linked from nowhere.
std::string FormatArguments(fmt::string_view format, fmt::format_args arguments);
template <typename... T>
std::string Format(fmt::format_string<T...> format, T&&... arguments) {
  return FormatArguments(format, fmt::make_format_args(arguments...));
}

std::string_view Trim(std::string_view text);
std::vector<std::string_view> Split(std::string_view text, char separator);
std::string ToLower(std::string_view text);

// A name in canonical form: lower case, without '_', '-' and blanks. "All_Gather", "allGather" and
// "ALL-GATHER" all become "allgather".
std::string FoldName(std::string_view name);

// The number of insertions, deletions, substitutions and swaps of adjacent characters that turn one
// name into the other. Quadratic.
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `name`, or "" if none is near. Both are folded before they are compared.
std::string ClosestName(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean 'ring'?", or, without a near candidate, "; known are a, b, c".
std::string Suggestion(std::string_view name, const std::vector<std::string>& candidates);

// Whole-string decimal numbers. False if the text contains anything else, or the value overflows.
bool ParseUnsigned(std::string_view text, uint64_t* value);
bool ParseSigned(std::string_view text, int64_t* value);

std::string Join(const std::vector<std::string>& parts, std::string_view separator);
// Quotes text for a shell: ShellQuoted always uses single quotes, the other only for words that
// need them.
std::string ShellQuoted(std::string_view text);
std::string ShellWord(const std::string& text);
// "1 rule", "2 rules".
std::string Count(size_t number, std::string_view noun);

}  // namespace diapason
