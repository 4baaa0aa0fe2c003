#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job_tune/request.h"

namespace diapason::job_tune {

// Takes the values of a metric from the output of a command, piece by piece as it arrives. A line
// ends with a line feed or, as those of progress bars, with a carriage return; its first match
// counts. Lines that are longer than 64 KiB are not searched. The work is bounded by the length of
// the text times that of the pattern, whatever both are. Not thread-safe.
class MetricReader {
 public:
  // Fails if the pattern cannot be used: it does not compile, has not exactly one group, refers to
  // a group or is too large.
  static Result<MetricReader> Make(const MetricRequest& request);

  void Add(std::string_view output);
  // Output was left out here: the line before and the one behind are not whole.
  void Skip();
  // The value printed last, complete lines only until Finish(). May be infinite or not a number.
  std::optional<double> last() const { return last_; }
  // How many were found. Of a piece with much output those printed last are looked for.
  size_t count() const { return count_; }
  void Finish();
  // Whether a line without a value is told from its text alone: then much output costs little.
  bool quick() const { return !needed_.empty(); }

 private:
  MetricReader() = default;
  // Whether there is a value, which is the last one unless a later one is known.
  bool Search(std::string_view line, bool known);

  std::regex pattern_;
  std::string needed_;  // a part of every line that can match; "": nothing is known
  std::string line_;    // the beginning of the present line
  bool whole_ = true;   // false: the line is too long, or its beginning was left out
  std::optional<double> last_;
  size_t count_ = 0;
};

// Whether a metric has stayed what it was.
struct MetricJudgement {
  enum class Verdict { kNotAsked, kUnchanged, kChanged, kNotPrinted, kTooFew };
  Verdict verdict = Verdict::kNotAsked;
  double by_default = 0;  // the median of the default's launches
  double tuned = 0;       // of the launch that differs most
  double change = 0;      // relative, of that launch; infinite if one of both is not a number
  double allowed = 0;  // the tolerance, or the spread of the default's launches if that is larger
  bool by_spread = false;  // it is the spread
  // For kNotPrinted and kTooFew: launches without a value, of the default and of the tuned ones.
  size_t silent_defaults = 0;
  size_t silent_tuned = 0;
  // A sentence; it says what to do where there is no judgement. "" for kNotAsked.
  std::string Text() const;
};
// `by_default` and `tuned`: the last value of each launch; nothing where none was printed. The
// spread is that between the lowest and the highest default, as a share of their median.
MetricJudgement JudgeMetric(const MetricRequest& request,
                            const std::vector<std::optional<double>>& by_default,
                            const std::vector<std::optional<double>>& tuned);

}  // namespace diapason::job_tune
