#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dataset/sample.h"

namespace diapason::dataset {

// Normalises names from logs, tables and users to the form in a Point. "all_reduce_perf",
// "All_Reduce" and "allreduce" are "allreduce". An unknown name is an error with a suggestion.
Result<std::string> ParseCollectiveWord(std::string_view name);
// The collective in a file's name, "run3/all_gather_output.dat"; "" if it contains none or several.
std::string CollectiveInName(std::string_view path);
// "allreduce" -> "all_reduce", as rccl-sweep and nccl-tests write it.
std::string CollectiveTableWord(const std::string& collective);
// "float" and "f32" are "f32".
Result<std::string> ParseTypeWord(std::string_view name);
// Whether the collective combines values; only then a point has a reduction.
bool Reduces(const std::string& collective);

// Normalises a configuration with its library's names. "", "default" and "-1" leave the choice to
// the library. `library` may be "": then NCCL's and RCCL's names are known.
Status SetConfig(const std::string& library, std::string_view algorithm, std::string_view protocol,
                 int64_t channels, Point* point);
// "NAME=VALUE" pairs, sorted and separated by blanks. Variables that a configuration covers are
// refused.
Result<std::string> SortEnvironment(std::vector<std::string> pairs);

// A finite decimal number, and half of its last printed digit: 17.31 and 0.005. False if the text
// contains anything else.
bool ParseDecimal(std::string_view text, double* value, double* half_digit);

// Makes foreign text safe for a terminal: control characters become '?', and at most `limit` bytes
// are kept.
std::string Printable(std::string_view text, size_t limit = 200);

}  // namespace diapason::dataset
