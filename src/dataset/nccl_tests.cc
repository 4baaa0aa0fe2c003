#include "dataset/nccl_tests.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "dataset/words.h"

namespace diapason::dataset {
namespace {

// Longer lines are not output of these programs.
constexpr size_t kLongestLine = 1 << 16;
constexpr size_t kMostWords = 64;
// 2 to the 50: larger than any message.
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (words.size() < kMostWords) {
    at = line.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) break;
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// The prefix that launchers write: "[1,0]<stdout>:" (mpirun), "0: " (srun).
std::string_view WithoutTag(std::string_view line) {
  if (line.starts_with('[')) {
    const size_t end = line.find(">:");
    const size_t open = line.find("]<");
    if (open != std::string_view::npos && end != std::string_view::npos && open < end) {
      return line.substr(end + 2);
    }
    return line;
  }
  const size_t digits = line.find_first_not_of("0123456789", line.find_first_not_of(' '));
  if (digits != std::string_view::npos && digits > 0 && line[digits] == ':') {
    return line.substr(digits + 1);
  }
  return line;
}

// 22903 -> "2.29.3"; before 2.9 the minor number had one digit: 2708 -> "2.7.8".
std::string VersionText(uint64_t code) {
  if (code == 0 || code > 999999) return "";
  const unsigned long long n = code;
  if (n < 10000) return Format("{}.{}.{}", n / 1000, n / 100 % 10, n % 100);
  return Format("{}.{}.{}", n / 10000, n / 100 % 100, n % 100);
}

struct Columns {
  // The size is always the first.
  size_t type = 0;
  size_t reduce = 0;
  size_t root = 0;
  struct Group {
    bool in_place = false;
    size_t time = 0;
    size_t algbw = 0;
    size_t busbw = 0;
    size_t wrong = 0;
    bool counts = true;  // "#wrong" counts elements; the older "error" is a difference
    size_t end = 0;      // behind its last column
  };
  std::vector<Group> groups;
  size_t count = 0;
};

class Reader {
 public:
  void Line(std::string_view line, int number);
  std::vector<LogTest> Finish() { return std::move(tests_); }

 private:
  // The test that a header line belongs to: a new one if the last is past its header. `again`: the
  // last one already has this line.
  LogTest* StartTest(bool again);
  void Comment(std::string_view line);
  void Version(std::string_view words, const char* library);
  void Parameters(const std::vector<std::string_view>& words);
  void Device(std::string_view line, const std::vector<std::string_view>& words);
  void Titles(const std::vector<std::string_view>& words);
  void Row(const std::vector<std::string_view>& words);
  Result<LogTiming> Timing(const std::vector<std::string_view>& words, const Columns::Group& group);
  void Bad(const std::string& why);

  std::vector<LogTest> tests_;
  // Which of its header lines the current test has.
  bool has_version_ = false;
  bool has_name_ = false;
  bool has_parameters_ = false;
  std::string early_library_;  // a version line before any test
  std::string early_version_;
  std::vector<bool> order_;  // of the halves: whether it is in place
  Columns columns_;
  int number_ = 0;
};

LogTest* Reader::StartTest(bool again) {
  const bool past_header = tests_.empty() || tests_.back().titles || !tests_.back().rows.empty() ||
                           !tests_.back().devices.empty();
  if (past_header) {
    tests_.emplace_back();
    tests_.back().line = number_;
    tests_.back().library = early_library_;
    tests_.back().version = early_version_;
    has_version_ = has_name_ = has_parameters_ = false;
  } else if (again) {
    // The same header line again, without rows in between: several programs write into this log.
    ++tests_.back().starts;
    has_version_ = has_name_ = has_parameters_ = false;
  }
  return &tests_.back();
}

void Reader::Version(std::string_view line, const char* library) {
  // "NCCL version 2.29.2+cuda13.1", "RCCL version : 2.27.7-HEAD:0123456"
  const std::vector<std::string_view> words = Words(line);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "version") continue;
    std::string_view text = words[i + 1];
    if (text == ":" && i + 2 < words.size()) text = words[i + 2];
    text = text.substr(0, text.find_first_not_of("0123456789."));
    if (text.empty() || text.find('.') == std::string_view::npos) return;
    std::string* to = tests_.empty() ? &early_version_ : &tests_.back().version;
    *to = Printable(text, 32);
    (tests_.empty() ? early_library_ : tests_.back().library) = library;
    return;
  }
}

void Reader::Parameters(const std::vector<std::string_view>& words) {
  LogTest* test = StartTest(has_parameters_);
  has_parameters_ = true;
  uint64_t iterations = 1;
  uint64_t aggregated = 1;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "iters:") continue;
    uint64_t count = 0;
    if (!ParseUnsigned(words[i + 1], &count) || count > 1'000'000'000) continue;
    if (i > 0 && words[i - 1] == "agg") aggregated = count;
    if (i == 0 || (words[i - 1] != "agg" && words[i - 1] != "warmup")) iterations = count;
  }
  test->iterations = static_cast<int64_t>(std::max<uint64_t>(iterations * aggregated, 1));
  for (const std::string_view word : words) {
    test->parameters += (test->parameters.empty() ? "" : " ") + Printable(word, 40);
  }
}

void Reader::Device(std::string_view line, const std::vector<std::string_view>& words) {
  // Rank  0 Group  0 Pid 1176279 on     oat-04 device  0 [0000:4a:00] NVIDIA L40S
  LogDevice device;
  uint64_t rank = 0;
  if (!ParseUnsigned(words[1], &rank) || rank > 10'000'000) return;
  device.rank = static_cast<int>(rank);
  for (size_t i = 2; i + 1 < words.size(); ++i) {
    if (words[i] == "on") device.host = Printable(words[i + 1], 80);
  }
  const size_t bracket = line.find(']');
  if (bracket != std::string_view::npos) device.gpu = Printable(Trim(line.substr(bracket + 1)), 80);
  if (tests_.empty()) StartTest(false);
  tests_.back().devices.push_back(std::move(device));
}

void Reader::Titles(const std::vector<std::string_view>& words) {
  columns_ = {};
  columns_.count = words.size();
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "type") columns_.type = i;
    if (words[i] == "redop") columns_.reduce = i;
    if (words[i] == "root") columns_.root = i;
    if (words[i] == "time") {
      columns_.groups.emplace_back();
      columns_.groups.back().time = i;
      const size_t index = columns_.groups.size() - 1;
      columns_.groups.back().in_place = index < order_.size() ? order_[index] : index == 1;
    }
    if (columns_.groups.empty()) continue;
    Columns::Group& group = columns_.groups.back();
    if (words[i] == "algbw") group.algbw = i;
    if (words[i] == "busbw") group.busbw = i;
    if (words[i] == "#wrong" || words[i] == "error") {
      group.wrong = i;
      group.counts = words[i] == "#wrong";
    }
    group.end = i + 1;
  }
  if (tests_.empty()) StartTest(false);
  tests_.back().titles = true;
}

void Reader::Comment(std::string_view line) {
  const std::vector<std::string_view> words = Words(line.substr(1));
  if (words.empty()) return;
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (words.size() >= 3 && words[0].ends_with("ccl-tests") && words[1] == "version") {
    LogTest* test = StartTest(has_version_);
    has_version_ = true;
    test->library = words[0].starts_with('r') ? "rccl" : "nccl";
    test->tool = Printable(words[0], 32) + " " + Printable(words[2], 32);
    for (const std::string_view word : words) {
      constexpr std::string_view kLibrary = "nccl-library=";
      uint64_t code = 0;
      if (word.starts_with(kLibrary) && ParseUnsigned(word.substr(kLibrary.size()), &code)) {
        test->version = VersionText(code);
      }
    }
  } else if (words.size() >= 4 && words[0] == "Collective" && words[2] == "starting:") {
    LogTest* test = StartTest(has_name_);
    has_name_ = true;
    test->program = Printable(words[3], 64);
  } else if (words[0] == "nThread") {
    Parameters(words);
  } else if (words[0] == "Rank" && words.size() >= 4 && has("device")) {
    Device(line, words);
  } else if (has("out-of-place") || has("in-place")) {
    order_.clear();
    for (const std::string_view word : words) {
      if (word == "out-of-place" || word == "in-place") order_.push_back(word == "in-place");
    }
  } else if (words[0] == "size" && has("time") && has("busbw")) {
    Titles(words);
  } else if (line.find("Avg bus bandwidth") != std::string_view::npos && !tests_.empty()) {
    ++tests_.back().ends;
  }
}

void Reader::Bad(const std::string& why) {
  LogTest& test = tests_.back();
  if (++test.bad_rows > 1) return;
  test.first_bad_line = number_;
  test.first_bad_why = why;
}

Result<LogTiming> Reader::Timing(const std::vector<std::string_view>& words,
                                 const Columns::Group& group) {
  LogTiming timing;
  double half = 0;
  if (!ParseDecimal(words[group.time], &timing.seconds, &half) || timing.seconds <= 0) {
    return Invalid("the time '" + Printable(words[group.time], 32) + "' is none");
  }
  timing.coarse = half / timing.seconds;
  timing.seconds *= 1e-6;
  const auto bandwidth = [&](size_t column, double* value, double* coarse) {
    if (column == 0 || !ParseDecimal(words[column], value, &half)) return false;
    *coarse = *value > 0 ? half / *value : 1;
    *value *= 1e9;
    return *value >= 0;
  };
  if (!bandwidth(group.algbw, &timing.algbw, &timing.algbw_coarse) ||
      !bandwidth(group.busbw, &timing.busbw, &timing.busbw_coarse)) {
    return Invalid("a bandwidth is none");
  }
  if (group.wrong != 0 && words[group.wrong] != "N/A") {
    double wrong = 0;
    std::string_view text = words[group.wrong];
    if (text.ends_with('*')) text.remove_suffix(1);
    if (!ParseDecimal(text, &wrong, &half) || wrong < 0) {
      return Invalid("'" + Printable(text, 32) + "' wrong elements are no number");
    }
    // A non-zero difference is not a count, and may be within the tolerance.
    if (group.counts || wrong == 0) timing.wrong = static_cast<int64_t>(std::min(wrong, 1e15));
  }
  timing.there = true;
  return timing;
}

void Reader::Row(const std::vector<std::string_view>& words) {
  if (tests_.empty()) StartTest(false);
  LogTest& test = tests_.back();
  if (!test.titles || columns_.groups.empty()) return Bad("it has no line of column titles above");
  if (std::find(words.begin(), words.end(), "NCCL") != words.end()) {
    return Bad(
        "NCCL's debug lines cut through it; run without NCCL_DEBUG, or with NCCL_DEBUG_FILE");
  }
  if (words.size() > columns_.count) return Bad("it has more columns than titles");
  LogRow row;
  row.line = number_;
  if (!ParseUnsigned(words[0], &row.bytes) || row.bytes > kMostBytes) {
    return Bad("its size is out of range");
  }
  const bool cut = words.size() < columns_.count;
  if (columns_.type < words.size()) row.type = Printable(words[columns_.type], 32);
  if (columns_.reduce > 0 && columns_.reduce < words.size()) {
    row.reduce = Printable(words[columns_.reduce], 32);
  }
  int64_t root = -1;
  if (columns_.root > 0 && columns_.root < words.size() &&
      (!ParseSigned(words[columns_.root], &root) || root < -1 || root > 10'000'000)) {
    return Bad("its root is no rank");
  }
  row.root = static_cast<int>(root);
  std::string why;  // the first half that cannot be used
  for (const Columns::Group& group : columns_.groups) {
    // In a truncated row the last word may have lost digits.
    if (cut && words.size() <= group.end) continue;
    const Result<LogTiming> timing = Timing(words, group);
    if (!timing.ok()) {
      // The other half is not to blame.
      if (why.empty()) why = timing.status().message();
      continue;
    }
    (group.in_place ? row.in_place : row.out_of_place) = timing.value();
  }
  if (!why.empty()) Bad(why);
  if (cut) ++test.cut_rows;
  if (row.out_of_place.there || row.in_place.there) test.rows.push_back(std::move(row));
}

void Reader::Line(std::string_view line, int number) {
  number_ = number;
  if (line.size() > kLongestLine) return;
  if (line.ends_with('\r')) line.remove_suffix(1);
  line = WithoutTag(line);
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return;
  line.remove_prefix(first);
  if (line[0] == '#') return Comment(line);
  if (line.find("RCCL version") != std::string_view::npos) return Version(line, "rccl");
  if (line.find("NCCL version") != std::string_view::npos) return Version(line, "nccl");
  if (line.starts_with("rccl-tests:") && !tests_.empty()) {
    tests_.back().tool = "rccl-tests";
    tests_.back().library = "rccl";
    return;
  }
  if (!tests_.empty() && tests_.back().failure.empty() &&
      ((line.find("Test ") != std::string_view::npos &&
        line.find(" failure") != std::string_view::npos) ||
       line.find("NCCL WARN") != std::string_view::npos)) {
    tests_.back().failure = Printable(line, 300);
    return;
  }
  if (line[0] < '0' || line[0] > '9') return;
  const std::vector<std::string_view> words = Words(line);
  uint64_t count = 0;
  uint64_t size = 0;
  if (words.size() < 3 || !ParseUnsigned(words[0], &size) || !ParseUnsigned(words[1], &count)) {
    return;
  }
  Row(words);
}

}  // namespace

bool IsTestLog(std::string_view text) {
  return text.find("# nThread ") != std::string_view::npos ||
         text.find("Collective test starting:") != std::string_view::npos ||
         (text.find("busbw") != std::string_view::npos &&
          text.find("algbw") != std::string_view::npos &&
          text.find("(GB/s)") != std::string_view::npos);
}

std::vector<LogTest> ParseTestLog(std::string_view text) {
  Reader reader;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    reader.Line(text.substr(0, end), ++number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.Finish();
}

}  // namespace diapason::dataset
