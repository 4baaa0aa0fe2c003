#include "job_tune/metric.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/stats.h"
#include "base/text.h"

namespace diapason::job_tune {
namespace {

constexpr size_t kLongestLine = 64 * 1024;
// Of a piece, in which further values are counted once the last one is known.
constexpr size_t kCounted = 64 * 1024;
constexpr size_t kLongestPattern = 500;
// The pattern's length times its repetitions: states of the automaton, which are visited
// recursively.
constexpr uint64_t kLargestPattern = 4000;

// How often a pattern's parts are repeated at most, by counts such as {3,20}.
uint64_t Repetitions(std::string_view pattern) {
  uint64_t product = 1;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') ++i;
    if (i >= pattern.size() || pattern[i] != '{') continue;
    uint64_t most = 1;
    uint64_t number = 0;
    for (++i; i < pattern.size() && pattern[i] != '}'; ++i) {
      const bool digit = pattern[i] >= '0' && pattern[i] <= '9';
      number = digit ? std::min<uint64_t>(number * 10 + static_cast<uint64_t>(pattern[i] - '0'),
                                          kLargestPattern + 1)
                     : 0;
      most = std::max(most, number);
    }
    product = std::min(product * most, kLargestPattern + 1);
  }
  return product;
}

// Behind a bracket expression that begins at `at`.
size_t BehindBrackets(std::string_view pattern, size_t at) {
  for (++at; at < pattern.size() && pattern[at] != ']'; ++at) {
    if (pattern[at] == '\\') ++at;
  }
  return at;
}

// The longest text that every match contains, as far as the pattern shows it outside of groups; ""
// if there is none.
std::string NeededText(std::string_view pattern) {
  std::string longest;
  std::string run;
  int depth = 0;
  const auto end_run = [&] {
    if (run.size() > longest.size()) longest = run;
    run.clear();
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    bool plain = false;
    if (c == '\\' && i + 1 < pattern.size()) {
      c = pattern[++i];
      plain = std::isalnum(static_cast<unsigned char>(c)) == 0;
    } else if (c == '[') {
      i = BehindBrackets(pattern, i);
    } else if (c == '(') {
      ++depth;
    } else if (c == ')') {
      --depth;
    } else if (c == '|' && depth == 0) {
      return "";
    } else if (c == '?' || c == '*' || c == '{') {
      if (!run.empty()) run.pop_back();
      while (c == '{' && i < pattern.size() && pattern[i] != '}') ++i;
    } else {
      plain = c != '^' && c != '$' && c != '.' && c != '+' && c != ')';
    }
    if (plain && depth == 0) {
      run += c;
    } else {
      end_run();
    }
  }
  end_run();
  return longest;
}

// The number at the beginning of a text.
std::optional<double> NumberIn(std::string_view text) {
  text = Trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument) return std::nullopt;
  const std::string_view read(text.data(), static_cast<size_t>(end - text.data()));
  if (error == std::errc::result_out_of_range) {
    const bool small = read.find("e-") != read.npos || read.find("E-") != read.npos;
    const double largest = std::numeric_limits<double>::infinity();
    return small ? 0 : read.starts_with('-') ? -largest : largest;
  }
  const bool letters =
      end < text.data() + text.size() && std::isalpha(static_cast<unsigned char>(*end)) != 0;
  // "infer" and "nano" are words.
  if (!std::isfinite(value) && letters) return std::nullopt;
  return value;
}

double ChangeBetween(double from, double to, double scale) {
  if (std::isnan(from) && std::isnan(to)) return 0;
  if (from == to) return 0;
  if (!std::isfinite(from) || !std::isfinite(to)) return std::numeric_limits<double>::infinity();
  return std::abs(to - from) / scale;
}

std::vector<double> Present(const std::vector<std::optional<double>>& values) {
  std::vector<double> present;
  for (const std::optional<double>& one : values) {
    if (one.has_value()) present.push_back(*one);
  }
  return present;
}

// The median of those that are numbers; of none, what they are.
double Middle(const std::vector<double>& values) {
  std::vector<double> finite;
  for (const double one : values) {
    if (std::isfinite(one)) finite.push_back(one);
  }
  return finite.empty() ? values.front() : Median(finite);
}

std::string LaunchCount(size_t number) {
  return number == 1 ? "1 launch" : Format("{} launches", number);
}

std::string ShareText(double share) {
  return std::isfinite(share) ? Format("{:.3g} %", share * 100) : "no number";
}

}  // namespace

Result<MetricReader> MetricReader::Make(const MetricRequest& request) {
  const std::string& pattern = request.pattern;
  const auto refuse = [&](const std::string& why) {
    return Invalid("--metric '" + pattern + "' cannot be used: " + why +
                   "; an example: --metric 'loss=([0-9.e+-]+)'");
  };
  if (pattern.size() > kLongestPattern || pattern.size() * Repetitions(pattern) > kLargestPattern) {
    return refuse("it is too large");
  }
  MetricReader reader;
  try {
    const std::regex given(pattern, std::regex::ECMAScript);
    if (given.mark_count() != 1) {
      return refuse(
          Format("it has {} in parentheses, and needs one, the number; (?:...) does not "
                 "count",
                 Count(given.mark_count(), "group")));
    }
    // All matches of a line are followed at once, from its beginning: no text makes that take long
    // or recurse deeply.
    reader.pattern_ = std::regex("(?:[^\n]*?)(?:" + pattern + ")",
                                 std::regex::ECMAScript | std::regex_constants::__polynomial);
  } catch (const std::regex_error& error) {
    return refuse(error.code() == std::regex_constants::error_complexity
                      ? "it refers to a group"
                      : std::string("it is no regular expression (") + error.what() + ")");
  }
  reader.needed_ = NeededText(pattern);
  return reader;
}

void MetricReader::Add(std::string_view output) {
  std::vector<std::string_view> lines;
  std::string first;  // with what came before
  while (!output.empty()) {
    const size_t end = output.find_first_of("\n\r");
    const std::string_view part = output.substr(0, end);
    if (whole_ && line_.size() + part.size() > kLongestLine) {
      whole_ = false;
      line_.clear();
    }
    if (end == output.npos) {
      if (whole_) line_ += part;
      break;
    }
    if (!whole_) {
      whole_ = true;
    } else if (lines.empty() && !line_.empty()) {
      first = std::move(line_) + std::string(part);
      lines.push_back(first);
    } else {
      lines.push_back(part);
    }
    line_.clear();
    output.remove_prefix(end + 1);
  }
  bool known = false;
  size_t searched = 0;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->empty() || (!needed_.empty() && line->find(needed_) == line->npos)) continue;
    if (known && searched > kCounted) break;
    searched += line->size();
    known = Search(*line, known) || known;
  }
}

void MetricReader::Skip() {
  line_.clear();
  whole_ = false;
}

void MetricReader::Finish() {
  if (whole_ && !line_.empty()) (void)Search(line_, false);
  line_.clear();
  whole_ = true;
}

bool MetricReader::Search(std::string_view line, bool known) {
  std::match_results<std::string_view::const_iterator> found;
  try {
    if (!std::regex_search(line.begin(), line.end(), found, pattern_,
                           std::regex_constants::match_continuous)) {
      return false;
    }
  } catch (const std::regex_error&) {
    return false;
  }
  const std::optional<double> value = NumberIn(found[1].str());
  if (!value.has_value()) return false;
  if (!known) last_ = value;
  ++count_;
  return true;
}

MetricJudgement JudgeMetric(const MetricRequest& request,
                            const std::vector<std::optional<double>>& by_default,
                            const std::vector<std::optional<double>>& tuned) {
  using Judged = MetricJudgement::Verdict;
  MetricJudgement judged;
  if (request.pattern.empty()) return judged;
  const std::vector<double> defaults = Present(by_default);
  const std::vector<double> others = Present(tuned);
  judged.silent_defaults = by_default.size() - defaults.size();
  judged.silent_tuned = tuned.size() - others.size();
  judged.allowed = request.tolerance;
  if (defaults.empty() || others.empty()) {
    const bool silent = judged.silent_defaults > 0 || judged.silent_tuned > 0;
    judged.verdict = silent ? Judged::kNotPrinted : Judged::kTooFew;
    return judged;
  }
  judged.by_default = Middle(defaults);
  double scale = std::abs(judged.by_default);
  for (const std::vector<double>& side : {defaults, others}) {
    for (const double one : side) {
      if (judged.by_default == 0 && std::isfinite(one)) scale = std::max(scale, std::abs(one));
    }
  }
  std::vector<double> finite = defaults;
  std::erase_if(finite, [](double one) { return !std::isfinite(one); });
  const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
  const double spread = finite.empty() ? 0 : ChangeBetween(*low, *high, scale);
  if (spread > judged.allowed) {
    judged.allowed = spread;
    judged.by_spread = true;
  }
  judged.tuned = others.front();
  for (const double one : others) {
    const double change = ChangeBetween(judged.by_default, one, scale);
    if (change <= judged.change) continue;
    judged.change = change;
    judged.tuned = one;
  }
  constexpr double kRounding = 1 + 1e-9;
  judged.verdict =
      judged.change > judged.allowed * kRounding ? Judged::kChanged : Judged::kUnchanged;
  return judged;
}

std::string MetricJudgement::Text() const {
  const auto compared = [&] {
    return Format("{:.6g} by default, {:.6g} tuned, a change of {} where {} {} allowed", by_default,
                  tuned, ShareText(change), ShareText(allowed),
                  by_spread ? "(the spread of launches with the default) is" : "is");
  };
  switch (verdict) {
    case MetricJudgement::Verdict::kNotAsked:
      return "";
    case MetricJudgement::Verdict::kUnchanged:
      return "the metric has not changed: " + compared() +
             (std::isfinite(by_default) ? "" : ". It is no number in either");
    case MetricJudgement::Verdict::kChanged:
      return "the metric has changed: " + compared() +
             ". If such a change is harmless, give a larger --metric-tolerance";
    case MetricJudgement::Verdict::kNotPrinted:
      return Format(
          "the metric was not printed in {}: see whether its last lines, in the logs of the output "
          "folder, match --metric, and whether the command prints it before it is ended",
          silent_defaults == 0 ? LaunchCount(silent_tuned) + " with the policy"
                               : LaunchCount(silent_defaults) + " with the default");
    case MetricJudgement::Verdict::kTooFew:
      return "the metric cannot be judged: there was no launch with the default alone, or none "
             "with "
             "the policy; give a larger --budget";
  }
  return "";
}

}  // namespace diapason::job_tune
