#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diapason::knobs {

// "key: rest" of a line.
struct YamlKey {
  std::string key;   // without quotes
  std::string rest;  // "" where the value stands below
};
std::optional<YamlKey> SplitYamlKey(std::string_view line);

struct YamlValue {
  enum class Kind {
    kNone,    // stands below, or null
    kScalar,  // on one line, or in quotes
    kBlock,   // after | or >
    kFlow,    // {...} or [...]
  };
  Kind kind = Kind::kScalar;
  std::string text;  // without quotes; block texts without their indentation
  bool known = true;
  bool quoted = false;
  size_t line = 0;  // the index of the line where the text begins
};
// The value that begins with `rest` on line *i, of a key or item in `column`. *i becomes the last
// line that belongs to it.
YamlValue ReadYamlValue(const std::vector<std::string_view>& lines, size_t* i,
                        const std::string& rest, size_t column);

// An entry of {A: 1, B: x} or an item of [a, b], also of nested ones; `key` is "" for items.
struct FlowEntry {
  std::string key;
  std::string value;
  bool known = true;
  size_t line = 0;  // after the first
};
std::vector<FlowEntry> ReadFlow(const std::string& text);

}  // namespace diapason::knobs
