#include "env_tune/metric.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

#include "base/stats.h"
#include "base/text.h"

namespace diapason::env_tune {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr size_t kLongestPattern = 1024;
constexpr size_t kMostMatches = 100000;

}  // namespace

struct MetricPattern::Compiled {
  std::regex regex;
  std::string text;
  MetricPick pick = MetricPick::kLast;
};

MetricPattern::MetricPattern() : compiled_(std::make_unique<Compiled>()) {}
MetricPattern::MetricPattern(MetricPattern&&) noexcept = default;
MetricPattern& MetricPattern::operator=(MetricPattern&&) noexcept = default;
MetricPattern::~MetricPattern() = default;

Result<MetricPick> ParseMetricPick(std::string_view text) {
  const std::vector<std::string> names = {"first", "last", "median"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (FoldName(text) == names[i]) return static_cast<MetricPick>(i);
  }
  return Invalid(Format("'{:.60}' does not say which match counts", std::string(text)) +
                 Suggestion(text, names));
}

Result<MetricPattern> MetricPattern::Make(const std::string& pattern, MetricPick pick) {
  if (pattern.size() > kLongestPattern) return Invalid("the pattern is too long");
  MetricPattern made;
  made.compiled_->text = pattern;
  made.compiled_->pick = pick;
  try {
    // Polynomial: by all states at once, never by trying ways one after the other, which takes for
    // ever on lines that an attacker chose, and recurses once a character.
    made.compiled_->regex.assign(pattern,
                                 std::regex::ECMAScript | std::regex_constants::__polynomial);
  } catch (const std::regex_error& error) {
    return Invalid("the pattern '" + pattern + "' cannot be used: " +
                   (error.code() == std::regex_constants::error_complexity
                        ? std::string("back-references are not supported")
                        : std::string(error.what())));
  }
  if (made.compiled_->regex.mark_count() != 1) {
    return Invalid(
        Format("the pattern '{}' has {} groups; exactly one, (...), says where the "
               "number is",
               pattern, static_cast<size_t>(made.compiled_->regex.mark_count())));
  }
  return made;
}

Result<double> MetricPattern::Find(std::string_view output) const {
  std::vector<double> found;
  for (std::string_view line : Split(output, '\n')) {
    line = line.substr(0, kLongestLine);
    using Iterator = std::regex_iterator<std::string_view::const_iterator>;
    for (Iterator at(line.begin(), line.end(), compiled_->regex); at != Iterator(); ++at) {
      const std::string text(Trim((*at)[1].str()));
      char* rest = nullptr;
      const double value = std::strtod(text.c_str(), &rest);
      if (text.empty() || *rest != '\0' || !(value > 0) || !std::isfinite(value)) {
        return Invalid(
            Format("'{:.60}', which the pattern finds, is not a number above zero", text));
      }
      found.push_back(value);
      if (compiled_->pick == MetricPick::kFirst) return value;
      if (found.size() >= kMostMatches) {
        found.erase(found.begin(), found.begin() + kMostMatches / 2);
      }
    }
  }
  if (found.empty()) {
    return NotFound("no line of the output matches the pattern '" + compiled_->text + "'");
  }
  return compiled_->pick == MetricPick::kMedian ? Median(found) : found.back();
}

}  // namespace diapason::env_tune
