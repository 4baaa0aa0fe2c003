#include "cli/framework/rules.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "base/units.h"

namespace diapason::cli {
namespace {

// Bounds that only exclude nonsense are not shown in --help.
constexpr double kWorthShowing = 1e6;

std::string BoundsText(const std::string& low, const std::string& high, double most) {
  return most < kWorthShowing ? low + " to " + high : "";
}

bool ReadNumber(const std::string& text, double* value) {
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(*value);
}

}  // namespace

ValueRule Range(int low, int high) { return Range(int64_t{low}, int64_t{high}); }
ValueRule Range(int64_t low, int64_t high) {
  const auto wrong = [low, high](std::string& text) -> std::string {
    int64_t value = 0;
    if (ParseSigned(text, &value) && value >= low && value <= high) return "";
    return Format("'{}' is not a whole number from {} to {}", text, low, high);
  };
  return {wrong, BoundsText(Format("{}", low), Format("{}", high), static_cast<double>(high))};
}
ValueRule Range(double low, double high) {
  const auto wrong = [low, high](std::string& text) -> std::string {
    double value = 0;
    if (ReadNumber(text, &value) && value >= low && value <= high) return "";
    return Format("'{}' is not a number from {:g} to {:g}", text, low, high);
  };
  return {wrong, BoundsText(Format("{:g}", low), Format("{:g}", high), high)};
}
ValueRule Positive() {
  const auto wrong = [](std::string& text) -> std::string {
    int64_t value = 0;
    if (ParseSigned(text, &value) && value > 0) return "";
    return "'" + text + "' is not a whole number above 0";
  };
  return {wrong, ""};
}
ValueRule OneOf(const std::vector<std::string>& words) {
  const auto wrong = [words](std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    return "unknown value '" + text + "'" + Suggestion(text, words);
  };
  return {wrong, "", words};
}

bool ReadTime(const std::string& text, double* seconds) {
  if (ReadNumber(text, seconds)) return true;
  const Result<double> read = ParseSeconds(text);
  if (read.ok()) *seconds = read.value();
  return read.ok();
}

bool ReadShare(const std::string& text, double* share) {
  const bool percent = text.ends_with('%');
  if (!ReadNumber(percent ? text.substr(0, text.size() - 1) : text, share)) return false;
  if (percent) *share /= 100;
  return true;
}

std::string TimeText(double seconds) {
  if (seconds >= 3600 && std::fmod(seconds, 3600) == 0) return Format("{:g}h", seconds / 3600);
  if (seconds >= 60 && std::fmod(seconds, 60) == 0) return Format("{:g}m", seconds / 60);
  return Format("{:g}s", seconds);
}

// Numbers are checked before CLI11 converts them, to avoid its message "Could not convert: --seed =
// x".
ValueRule WholeNumber(bool negative_too) {
  const auto wrong = [negative_too](std::string& text) -> std::string {
    int64_t value = 0;
    uint64_t large = 0;
    if (ParseUnsigned(text, &large) || (negative_too && ParseSigned(text, &value))) return "";
    return "'" + text + "' is not a whole number";
  };
  return {wrong, ""};
}
ValueRule AnyNumber() {
  const auto wrong = [](std::string& text) -> std::string {
    double value = 0;
    return ReadNumber(text, &value) ? "" : "'" + text + "' is not a number";
  };
  return {wrong, ""};
}
ValueRule TimeBetween(double least, double most) {
  const auto wrong = [least, most](std::string& text) -> std::string {
    double value = 0;
    if (!ReadTime(text, &value)) {
      return "'" + text + "' is not a time such as 90s, 5m, 1.5h or 500ms";
    }
    if (value >= least && value <= most) return "";
    return Format("'{}' is not between {} and {}", text, TimeText(least), TimeText(most));
  };
  return {wrong, ""};
}
ValueRule ShareBetween(double least, double most) {
  const auto wrong = [least, most](std::string& text) -> std::string {
    double value = 0;
    if (ReadShare(text, &value) && value >= least && value <= most) return "";
    return Format("'{}' is not a share from {:g}% to {:g}%", text, 100 * least, 100 * most);
  };
  return {wrong, Format("{:g}% to {:g}%", 100 * least, 100 * most)};
}

}  // namespace diapason::cli
