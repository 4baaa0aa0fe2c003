#pragma once

#include <cstdarg>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diapason {

// printf into a string: the way text is formatted here (g++ 12 has no std::format, and the plugin
// links no formatting library).
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

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
