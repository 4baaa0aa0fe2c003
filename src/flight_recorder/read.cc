#include "flight_recorder/read.h"

#include "base/text.h"
#include "flight_recorder/json_dump.h"
#include "flight_recorder/pickle_dump.h"

namespace diapason::flight_recorder {
namespace {

constexpr int64_t kMajorVersion = 2;
constexpr int64_t kNewestMinorVersion = 10;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsPickle(std::string_view start) {
  return start.size() >= 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5;
}

// The number at the start of `text`, after one separator; -1 for none.
int64_t LeadingNumber(std::string_view text) {
  if (!text.empty() && (text[0] == '_' || text[0] == '-' || text[0] == '.')) text.remove_prefix(1);
  size_t end = 0;
  while (end < text.size() && IsDigit(text[end])) ++end;
  int64_t number = -1;
  return end <= 9 && ParseSigned(text.substr(0, end), &number) ? number : -1;
}

}  // namespace

bool LooksLikeDump(std::string_view start) {
  if (IsPickle(start)) return true;
  const size_t first = start.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || start[first] != '{') return false;
  const std::string_view head = start.substr(first, 64 << 10);
  for (const std::string_view key : {"\"entries\"", "\"pg_config\"", "\"pg_status\""}) {
    if (head.find(key) != std::string_view::npos) return true;
  }
  return false;
}

Status ReadDump(int fd, std::string_view start, const std::string& name, FlightRecord* record) {
  if (IsPickle(start)) return ReadPickleDump(fd, start, name, record);
  return ReadJsonDump(fd, start, name, record);
}

int64_t RankInName(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) name = name.substr(slash + 1);
  for (const std::string_view extension : {".json", ".txt", ".log", ".pkl", ".pickle"}) {
    if (name.ends_with(extension)) name.remove_suffix(extension.size());
  }
  const size_t word = name.rfind("rank");
  if (word != std::string_view::npos) {
    const int64_t rank = LeadingNumber(name.substr(word + 4));
    if (rank >= 0) return rank;
  }
  size_t end = name.size();
  while (end > 0 && !IsDigit(name[end - 1])) --end;
  size_t first = end;
  while (first > 0 && IsDigit(name[first - 1])) --first;
  return LeadingNumber(name.substr(first, end - first));
}

std::string VersionRemark(const std::string& version) {
  const size_t dot = version.find('.');
  int64_t major = -1;
  int64_t minor = -1;
  if (dot == std::string::npos || !ParseSigned(version.substr(0, dot), &major) ||
      !ParseSigned(version.substr(dot + 1), &minor)) {
    return version.empty() ? "" : Format("'{}' is not a version that is known", version);
  }
  if (major == kMajorVersion && minor <= kNewestMinorVersion) return "";
  return Format("version {} of the format is not known ({}.1 to {}.{} are)", version, kMajorVersion,
                kMajorVersion, kNewestMinorVersion);
}

}  // namespace diapason::flight_recorder
