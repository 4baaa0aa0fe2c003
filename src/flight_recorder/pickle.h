#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace diapason::flight_recorder {

// A value of a pickle. Containers are shared where the pickle shares them, and may contain
// themselves: who walks them has to bound the depth.
struct PickleValue {
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kList, kDict };

  union {
    int64_t number = 0;  // of a bool or int; numbers beyond 64 bits are limited to their range
    double real;         // of a float
    uint64_t index;      // of texts, lists or dicts
  };
  Kind kind = Kind::kNone;
};

// Plain data that was pickled: None, bool, int, float, str, bytes, list, tuple, dict. Owns all
// values.
class Pickle {
 public:
  using Kind = PickleValue::Kind;

  static constexpr size_t kMostValues = 4 << 20;   // in all containers together, and in the memo
  static constexpr size_t kMostBytes = 256 << 20;  // of all texts together
  static constexpr size_t kLongestText = 65536;    // longer ones are cut
  static constexpr size_t kDeepestMarks = 256;
  static constexpr size_t kMostSearched = 256;

  // Parses `start` followed by the contents of `fd` (if not negative): protocols 2 to 5. Never
  // imports or calls anything: an opcode that would is an error that names it.
  Status Parse(int fd, std::string_view start);

  const PickleValue& root() const { return root_; }
  const std::string& Text(const PickleValue& value) const;  // "" for other kinds
  // The items of a list or tuple; none for other kinds.
  const std::vector<PickleValue>& Items(const PickleValue& value) const;
  const std::vector<std::pair<PickleValue, PickleValue>>& Pairs(const PickleValue& value) const;
  // The value under a text key among the first kMostSearched of a dict; nullptr for none.
  const PickleValue* Find(const PickleValue& dict, std::string_view key) const;

 private:
  friend class Unpickler;
  PickleValue root_;
  std::deque<std::string> texts_;
  std::deque<std::vector<PickleValue>> lists_;
  std::deque<std::vector<std::pair<PickleValue, PickleValue>>> dicts_;
};

}  // namespace diapason::flight_recorder
