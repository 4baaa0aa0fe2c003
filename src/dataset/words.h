#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dataset/sample.h"

namespace diapason::dataset {

// Names as logs, tables and people write them, in the one form a Point has. "all_reduce_perf",
// "All_Reduce" and "allreduce" are "allreduce". An unknown name is an error with a suggestion.
Result<std::string> ParseCollectiveWord(std::string_view name);
// The collective that a file's name speaks of, "run3/all_gather_output.dat"; "" where it names none
// or several.
std::string CollectiveInName(std::string_view path);
// "allreduce" -> "all_reduce", as rccl-sweep and nccl-tests write it.
std::string CollectiveTableWord(const std::string& collective);
// "float" and "f32" are "f32".
Result<std::string> ParseTypeWord(std::string_view name);
// Whether the collective combines values; only then a point has a reduction.
bool Reduces(const std::string& collective);

// Puts a configuration into the words of its library. "", "default" and "-1" leave the choice to
// the library. `library` may be "": then NCCL's and RCCL's words are known.
Status SetConfig(const std::string& library, std::string_view algorithm, std::string_view protocol,
                 int64_t channels, Point* point);
// "NAME=VALUE" pairs, sorted and separated by blanks. What a configuration has words for is
// refused.
Result<std::string> SortEnvironment(std::vector<std::string> pairs);

// A decimal number that is finite, and half of the last digit that was printed of it: 17.31 and
// 0.005. False where there is anything else in the text.
bool ParseDecimal(std::string_view text, double* value, double* half_digit);

// Text of others, for a terminal: control characters become '?', and at most `limit` bytes stay.
std::string Printable(std::string_view text, size_t limit = 200);

}  // namespace diapason::dataset
