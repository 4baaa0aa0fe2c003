#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace diapason::cli {

// A check of an option's value. `wrong` returns the reason, or "" for a valid value; `shown` is
// printed in --help, `words` are offered by completion.
struct ValueRule {
  std::function<std::string(std::string& text)> wrong;
  std::string shown;
  std::vector<std::string> words = {};
};
ValueRule Range(int low, int high);
ValueRule Range(int64_t low, int64_t high);
ValueRule Range(double low, double high);
ValueRule Positive();
ValueRule OneOf(const std::vector<std::string>& words);
ValueRule WholeNumber(bool negative_too);
ValueRule AnyNumber();
// "90s", "2m", "500ms" or plain seconds, between two bounds in seconds.
ValueRule TimeBetween(double least, double most);
// "5%" or 0.05.
ValueRule ShareBetween(double least, double most);

// Parse the value; return false if the text is invalid.
bool ReadTime(const std::string& text, double* seconds);
bool ReadShare(const std::string& text, double* share);
// "90s", "2m": a text that ReadTime parses to the same value.
std::string TimeText(double seconds);

}  // namespace diapason::cli
