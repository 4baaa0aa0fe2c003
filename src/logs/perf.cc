#include "logs/perf.h"

#include <algorithm>

#include "base/text.h"
#include "domain/collectives.h"
#include "logs/cursor.h"

namespace diapason::logs {

std::string CollectiveIn(std::string_view text) {
  const std::string folded = FoldName(text);
  for (const TestedCollective& known : TestedCollectives()) {
    if (folded.find(known.name) != std::string::npos) return std::string(known.program);
  }
  return "";
}

void Perf::BeginFile(uint32_t file, std::string_view name) {
  (void)file;
  const size_t slash = name.rfind('/');
  file_collective_ = CollectiveIn(slash == std::string_view::npos ? name : name.substr(slash + 1));
  open_ = false;
  pieces_.clear();
  announced_ = false;
  headers_ = 0;
  library_ = 0;
}

void Perf::Start(const Spot& spot, std::string_view line, bool named) {
  if (open_) {
    PerfTest& last = tests.back();
    // "Collective test starting" and "nThread" are two lines of one header.
    if (announced_ && !named) {
      announced_ = false;
      return;
    }
    // Several programs that write into one file: their headers are consecutive.
    if (last.rows == 0 && last.ends == 0 && last.ranks == 0) {
      ++last.starts;
      announced_ = named;
      return;
    }
  }
  open_ = false;
  if (tests.size() >= kMost) {
    ++left_out;
    return;
  }
  tests.emplace_back();
  PerfTest& test = tests.back();
  test.file = spot.file;
  test.line = spot.line;
  test.start = MakePlace(spot, line);
  test.collective = file_collective_;
  test.headers = headers_;
  test.library = library_;
  open_ = true;
  announced_ = named;
}

void Perf::Device(std::string_view text) {
  // "Rank  0 Group  0 Pid 440010 on cnode2-001 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3"
  PerfTest& test = tests.back();
  Cursor cursor(text);
  int64_t rank = -1;
  cursor.Blanks();
  if (!cursor.Number(&rank)) return;
  ++test.ranks;
  if (rank == 0) ++test.rank_zeros;
  if (!cursor.SkipTo(" on ")) return;
  const std::string_view host = cursor.Word();
  if (test.host_count == 0 || (test.hosts[0] != host && test.hosts[1] != host)) {
    if (test.host_count < 2) test.hosts[test.host_count] = std::string(host.substr(0, 80));
    ++test.host_count;
  }
  if (test.device.empty() && cursor.SkipTo("] ")) {
    test.device = std::string(Trim(cursor.rest().substr(0, 80)));
  }
}

bool Perf::Comment(const Spot& spot, std::string_view line) {
  Cursor cursor(line);
  cursor.Skip("#");
  cursor.Blanks();
  if (cursor.Skip("nccl-tests version")) {
    Cursor numbers = cursor;
    headers_ = library_ = 0;
    if (numbers.SkipTo("nccl-headers=")) numbers.Number(&headers_);
    if (numbers.SkipTo("nccl-library=")) numbers.Number(&library_);
    return true;
  }
  if (cursor.Skip("Collective test starting: ")) {
    Start(spot, line, true);
    const std::string name = CollectiveIn(cursor.Word());
    if (open_ && !name.empty()) tests.back().collective = name;
    return true;
  }
  if (cursor.Skip("nThread ")) {
    Start(spot, line, false);
    return true;
  }
  if (!open_) return false;
  if (cursor.Skip("Rank ")) {
    Device(cursor.rest());
    return true;
  }
  if (cursor.Skip("Avg bus bandwidth")) {
    double average = 0;
    if (cursor.SkipTo(": ")) cursor.Real(&average);
    PerfTest& test = tests.back();
    ++test.ends;
    test.average = std::max(test.average, average);
    return true;
  }
  if (cursor.Skip("Out of bounds values")) {
    int64_t wrong = 0;
    if (cursor.SkipTo(": ") && cursor.Number(&wrong) && wrong > 0 && tests.back().wrong == 0) {
      tests.back().wrong = static_cast<uint64_t>(wrong);
      tests.back().wrong_place = MakePlace(spot, line);
    }
    return true;
  }
  return false;
}

bool Perf::Row(const Spot& spot, std::string_view line) {
  // size count [type redop root] (time algbw busbw [wrong]) twice, or once.
  std::string_view words[16];
  size_t count = 0;
  Cursor cursor(line);
  while (count < 16) {
    const std::string_view word = cursor.Word();
    if (word.empty()) break;
    words[count++] = word;
  }
  if (count < 7 || count > 14) return false;
  int64_t bytes = 0;
  int64_t elements = 0;
  Cursor size(words[0]);
  Cursor number(words[1]);
  if (!size.Number(&bytes) || !size.AtEnd() || bytes < 0) return false;
  if (!number.Number(&elements) || !number.AtEnd()) return false;
  const size_t halves = count >= 11 ? 2 : 1;
  const size_t first = count - 4 * halves;
  if (first < 3) return false;
  double best_us = 0;
  double best_busbw = 0;
  uint64_t wrong = 0;
  for (size_t half = 0; half < halves; ++half) {
    const std::string_view* at = words + first + 4 * half;
    double values[3] = {};
    for (int i = 0; i < 3; ++i) {
      Cursor real(at[i]);
      if (!real.Real(&values[i]) || !real.AtEnd() || values[i] < 0) return false;
    }
    if (half == 0 || values[0] < best_us) best_us = values[0];
    best_busbw = std::max(best_busbw, values[2]);
    Cursor check(at[3]);
    double bad = 0;
    // Older versions print the largest difference ("2e-05") instead of a count.
    if (check.Real(&bad) && check.AtEnd() && bad >= 1) wrong += static_cast<uint64_t>(bad);
  }
  PerfTest& test = tests.back();
  ++test.rows;
  if (test.rows == 1) {
    test.zero = MakePlace(spot, line);
    test.smallest = UINT64_MAX;
  }
  if (best_busbw > 0) test.moved = true;
  const auto unsigned_bytes = static_cast<uint64_t>(bytes);
  if (unsigned_bytes < test.smallest) {
    test.smallest = unsigned_bytes;
    test.smallest_us = best_us;
  }
  test.largest = std::max(test.largest, unsigned_bytes);
  if (best_busbw > test.peak) {
    test.peak = best_busbw;
    test.peak_bytes = unsigned_bytes;
  }
  if (wrong > 0) {
    if (test.wrong == 0) test.wrong_place = MakePlace(spot, line);
    test.wrong += wrong;
  }
  return true;
}

void Perf::Fragment(std::string_view piece) {
  if (pieces_.size() + piece.size() > 512) pieces_.clear();
  pieces_.append(piece.substr(0, 512));
}

bool Perf::Line(const Spot& spot, std::string_view line) {
  if (!pieces_.empty()) {
    if (open_ && pieces_.size() + line.size() < 512 && Row(spot, pieces_ + std::string(line))) {
      pieces_.clear();
      return true;
    }
    if (line.starts_with("#")) pieces_.clear();
  }
  size_t at = 0;
  while (at < line.size() && line[at] == ' ') ++at;
  if (at == line.size()) return false;
  if (line[at] == '#') return Comment(spot, line.substr(at));
  if (!open_ || line[at] < '0' || line[at] > '9') return false;
  if (!Row(spot, line.substr(at))) return false;
  pieces_.clear();
  return true;
}

}  // namespace diapason::logs
