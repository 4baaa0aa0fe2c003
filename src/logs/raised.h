#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "logs/place.h"
#include "logs/trouble.h"

namespace diapason::logs {

// A Python exception that is none of the known messages.
struct Raised {
  std::string type;   // "ValueError"
  std::string text;   // what stands behind it
  std::string frame;  // "train.py, line 12, in step": where it was raised; "" if unknown
  Trouble lines;
};

struct RaisedList {
  std::vector<Raised> list;
  static constexpr size_t kMost = 64;
  void Add(const Spot& spot, std::string_view line, std::string_view type, std::string_view text,
           std::string_view frame, const Writer& writer);
};

// Splits "torch.cuda.FooError: text", after the prefixes that launchers and loggers write. False if
// the line is not the last line of a traceback.
bool ExceptionIn(std::string_view line, std::string_view* type, std::string_view* text);

// Exceptions that show that another process has failed: ChildFailedError, BrokenPipeError.
bool Follows(std::string_view type);

}  // namespace diapason::logs
