#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/side.h"

namespace diapason::compare {

enum class Verdict { kSlower, kFaster, kSame, kCannotTell };
// "slower", "faster", "same", "cannot tell".
std::string_view VerdictName(Verdict verdict);

// The probability of a wrong verdict of a whole comparison: of "slower" or "faster" for any of its
// calls where nothing has changed.
inline constexpr double kAlpha = 0.05;

struct CompareOptions {
  double threshold = 0.05;        // "same": the interval lies within this share on both sides
  std::optional<double> fail_on;  // a share: calls that are slower by more fail the comparison
  double alpha = kAlpha;          // of one look; less where there are several
};

struct CallComparison {
  dataset::Point point;
  Change change;
  double p = 1;  // of no change, corrected for the number of calls
  Verdict verdict = Verdict::kCannotTell;
  bool fails = false;  // slower by more than fail_on beyond doubt
  std::string why;     // of "cannot tell"
  std::string ran_before;
  std::string ran_after;
};

// What differs between the machines of the two sides, as they recorded them.
struct Difference {
  std::string what;  // "library version", "NCCL_PROTO"
  std::string before;
  std::string after;
};

struct Comparison {
  std::string old_name;
  std::string new_name;
  std::vector<Launch> old_launches;
  std::vector<Launch> new_launches;
  CompareOptions options;
  std::vector<CallComparison> calls;  // in the order of collective, shape, type, place and size
  std::vector<dataset::Point> only_old;
  std::vector<dataset::Point> only_new;
  double geometric_mean = 0;      // a share, over all calls
  std::optional<Change> overall;  // the same over the calls that every launch has, with an interval
  size_t overall_calls = 0;
  std::vector<Difference> differences;
  std::vector<std::string> notes;

  size_t Count(Verdict verdict) const;
  size_t Failing() const;
  // Slower if any call is, else faster if any is, same if all are.
  Verdict Overall() const;
};

Comparison Compare(const Side& before, const Side& after, const CompareOptions& options);

// "allreduce 64KiB, 4 ranks on 1 node, f32 sum, in place, ring/simple".
std::string CallText(const dataset::Point& point);
// "+4.3 %", and "[+1.2, +7.4]", "(-3.0 to +9.1)" or "-".
std::string ShareText(double share);
std::string ChangeIntervalText(const Change& change);
// How the verdicts were found, in sentences.
std::string MethodText(const Comparison& comparison);

// "8 calls: 1 slower, 0 faster, 7 same, 0 cannot tell; geometric mean +1.3 % [-0.2, +2.8]".
std::string SummaryText(const Comparison& comparison);

// Whole documents. Texts of files are escaped.
std::string ComparisonText(const Comparison& comparison);
std::string ComparisonJson(const Comparison& comparison);
std::string ComparisonMarkdown(const Comparison& comparison);
std::string ComparisonJunit(const Comparison& comparison);
// A page of its own; `title` may be "".
std::string ComparisonHtml(const Comparison& comparison, const std::string& title);

}  // namespace diapason::compare
