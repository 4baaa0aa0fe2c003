#include "policy/header.h"

#include <charconv>

#include "base/text.h"

namespace diapason::policy {
namespace {

constexpr std::string_view kMark = "diapason:";
constexpr std::string_view kChecksumKind = "fnv1a64:";
constexpr int kNewestVersion = 1;

// The text after "# diapason:"; nullopt for another comment.
std::optional<std::string_view> AfterMark(std::string_view line) {
  if (!line.starts_with('#')) return std::nullopt;
  line = Trim(line.substr(line.find_first_not_of('#') == std::string_view::npos
                              ? line.size()
                              : line.find_first_not_of('#')));
  if (!line.starts_with(kMark)) return std::nullopt;
  return Trim(line.substr(kMark.size()));
}

}  // namespace

bool IsHeaderLine(std::string_view line) { return AfterMark(line).has_value(); }

Status HeaderReader::Read(std::string_view line) {
  std::string_view rest = AfterMark(line).value_or("");
  while (!rest.empty()) {
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos) {
      return Invalid("the header holds a word that is no key=value: '" +
                     std::string(rest.substr(0, 40)) + "'");
    }
    const std::string_view key = Trim(rest.substr(0, equals));
    rest = rest.substr(equals + 1);
    std::string_view value;
    if (rest.starts_with('"')) {
      const size_t close = rest.find('"', 1);
      if (close == std::string_view::npos) return Invalid("a quote in the header is never closed");
      value = rest.substr(1, close - 1);
      rest = rest.substr(close + 1);
    } else {
      value = rest.substr(0, rest.find_first_of(" \t"));
      rest = rest.substr(value.size());
    }
    rest = Trim(rest);
    RETURN_IF_ERROR(Set(key, value));
  }
  return {};
}

Status HeaderReader::Set(std::string_view key, std::string_view value) {
  if (key == "version") {
    int64_t version = 0;
    if (!ParseSigned(value, &version) || version < 1) {
      return Invalid("version is not a number from 1");
    }
    if (version > kNewestVersion) {
      return Invalid(Format("the file has format version {}; this diapason reads up to {}", version,
                            kNewestVersion));
    }
    header.version = static_cast<int>(version);
  } else if (key == "library") {
    ASSIGN_OR_RETURN(const Library parsed, ParseLibrary(value));
    library = parsed;
  } else if (key == "origin") {
    header.origin = value;
  } else if (key == "fingerprint") {
    header.fingerprint = value;
  } else if (key == "checksum") {
    uint64_t number = 0;
    const std::string_view digits =
        value.starts_with(kChecksumKind) ? value.substr(kChecksumKind.size()) : "";
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    if (digits.size() != 16 || error != std::errc() || end != digits.data() + digits.size()) {
      return Invalid("the checksum is not of the form fnv1a64:0123456789abcdef");
    }
    checksum = number;
  } else {
    return Invalid(Format("the header has an unknown key '{}'", std::string(key.substr(0, 40))) +
                   Suggestion(key, {"version", "library", "origin", "fingerprint", "checksum"}));
  }
  return {};
}

}  // namespace diapason::policy
