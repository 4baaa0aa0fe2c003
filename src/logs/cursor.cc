#include "logs/cursor.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace diapason::logs {

bool Cursor::Real(double* value) {
  char digits[40];
  size_t length = 0;
  while (length < rest_.size() && length < sizeof digits - 1 &&
         std::strchr("0123456789.+-eE", rest_[length]) != nullptr && rest_[length] != '\0') {
    digits[length] = rest_[length];
    ++length;
  }
  digits[length] = '\0';
  char* end = digits;
  const double number = std::strtod(digits, &end);
  if (end == digits || !std::isfinite(number)) return false;
  *value = number;
  rest_.remove_prefix(static_cast<size_t>(end - digits));
  return true;
}

}  // namespace diapason::logs
