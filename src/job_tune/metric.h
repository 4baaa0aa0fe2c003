#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job_tune/request.h"

namespace diapason::job_tune {

// Takes the values of a metric from the output of a command, piece by piece as it arrives. Lines
// that are longer than 64 KiB are not searched. Not thread-safe.
class MetricReader {
 public:
  // Fails if the pattern cannot be used: it does not compile, or has not exactly one group.
  static Result<MetricReader> Make(const MetricRequest& request);

  void Add(std::string_view output);
  // The value printed last, complete lines only until Finish().
  std::optional<double> last() const;
  size_t count() const;
  void Finish();
};

// Whether a metric has stayed what it was.
struct MetricJudgement {
  enum class Verdict { kNotAsked, kUnchanged, kChanged, kNotPrinted, kTooFew };
  Verdict verdict = Verdict::kNotAsked;
  double by_default = 0;  // the median of the default's launches
  double tuned = 0;
  double change = 0;   // relative, of the launch that differs most
  double allowed = 0;  // the tolerance, or the spread of the default's launches if that is larger
  std::string Text() const;
};
// `by_default` and `tuned`: the last value of each launch; nothing where none was printed.
MetricJudgement JudgeMetric(const MetricRequest& request,
                            const std::vector<std::optional<double>>& by_default,
                            const std::vector<std::optional<double>>& tuned);

}  // namespace diapason::job_tune
