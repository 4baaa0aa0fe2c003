#pragma once

#include <optional>
#include <string>
#include <vector>

#include "knobs/files/collector.h"
#include "knobs/files/shell_lexer.h"

namespace diapason::knobs {

struct NameAndValue {
  std::string name;
  std::string value;
  bool known = true;
};

// "NAME=VALUE"; "${X:-1}" alone is the value 1, other expansions are unknown values.
std::optional<NameAndValue> NamedValue(const ShellWord& word);
// Sets it, or, if its name does not count, reads a command in its value (CMD="A=1 program").
void SetFrom(const ShellWord& word, const std::string& scope, int depth, Collector* out);
// ": ${A:=1}" sets A where it has no value yet.
void DefaultOf(const ShellWord& word, const std::string& scope, Collector* out);
// Words of commands that start programs: "-x A=1", "--export=ALL,A=1", "-genv A 1", "-e A=1",
// "--env=A=1", "-v A=1,B=2", "A=1" and commands in quotes.
void ReadLauncherWords(const std::vector<ShellWord>& words, size_t first, const std::string& scope,
                       int depth, Collector* out);
// Whether "NAME=VALUE" after this program is no environment variable: grep, cmake, make.
bool IgnoresWords(const std::string& program);

}  // namespace diapason::knobs
