#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason::env_tune {

// Which of several numbers in an output counts.
enum class MetricPick : uint8_t { kFirst, kLast, kMedian };
Result<MetricPick> ParseMetricPick(std::string_view text);

// A number in a program's output, found by an ECMAScript pattern with one group. It is looked for
// line by line, in the first 4096 characters of each; matching takes time proportional to the line
// whatever the pattern, which is why back-references are refused.
class MetricPattern {
 public:
  static Result<MetricPattern> Make(const std::string& pattern, MetricPick pick);
  MetricPattern(MetricPattern&&) noexcept;
  MetricPattern& operator=(MetricPattern&&) noexcept;
  ~MetricPattern();

  // kNotFound where no line matches; kInvalid where what matches is not a number above zero.
  Result<double> Find(std::string_view output) const;

 private:
  struct Compiled;
  MetricPattern();
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace diapason::env_tune
