#include "logs/trouble.h"

#include <algorithm>

#include "logs/cursor.h"

namespace diapason::logs {
namespace {

constexpr size_t kMostPlaces = 3;
constexpr size_t kMostSayers = 16;
constexpr size_t kLongestMessage = 240;

// A line without its numbers: lines with the same shape report the same for another rank.
std::string ShapeOf(std::string_view message) {
  std::string shape;
  for (const char c : message.substr(0, 120)) {
    const bool digit =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f' && !shape.empty() && shape.back() == '#');
    if (!digit) {
      shape += c;
    } else if (shape.empty() || shape.back() != '#') {
      shape += '#';
    }
  }
  return shape;
}

bool Digits(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return false;
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at),
                     text.begin() + static_cast<std::ptrdiff_t>(at + count),
                     [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Troubles::Troubles() : kinds(messages::Catalogue::BuiltIn().messages().size()) {}

void AddTo(Trouble* trouble, size_t most, const Spot& spot, std::string_view line,
           std::string_view message, const Writer& writer) {
  if (trouble->count++ == 0) {
    trouble->rank = writer.rank;
    trouble->time = TimeIn(line);
    trouble->message = MaskSecretsIn(message.substr(0, 4 * kLongestMessage));
    if (trouble->message.size() > kLongestMessage) {
      trouble->message = trouble->message.substr(0, kLongestMessage) + "...";
    }
  }
  std::vector<std::string>& sayers = trouble->sayers;
  if (!writer.name.empty() &&
      std::find(sayers.begin(), sayers.end(), writer.name) == sayers.end()) {
    if (sayers.size() < kMostSayers) {
      sayers.push_back(writer.name);
    } else {
      trouble->sayers_left_out = 1;
    }
  }
  if (trouble->places.size() >= most) return;
  std::string shape = ShapeOf(message);
  if (std::find(trouble->shapes.begin(), trouble->shapes.end(), shape) != trouble->shapes.end()) {
    return;
  }
  trouble->shapes.push_back(std::move(shape));
  trouble->places.push_back(MakePlace(spot, line));
}

void Troubles::Add(size_t kind, const Spot& spot, std::string_view line, std::string_view message,
                   const Writer& writer) {
  AddTo(&kinds[kind], kMostPlaces, spot, line, message, writer);
}

bool Troubles::Any() const {
  const std::vector<messages::Message>& known = messages::Catalogue::BuiltIn().messages();
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].count > 0 && known[i].severity == Severity::kError) return true;
  }
  return false;
}

std::string TimeIn(std::string_view line) {
  const std::string_view start = line.substr(0, 96);
  for (size_t i = 2; i + 6 <= start.size(); ++i) {
    if (start[i] != ':' || start[i + 3] != ':') continue;
    if (!Digits(start, i - 2, 2) || !Digits(start, i + 1, 2) || !Digits(start, i + 4, 2)) continue;
    // Not a part of "host01:77:99".
    if (start[i - 2] > '2' || start[i + 1] > '5' || start[i + 4] > '6') continue;
    const size_t first = i - 2;
    // "2025-11-15 " or "2025-11-15T" before it.
    if (first >= 11 && start[first - 4] == '-' && start[first - 7] == '-' &&
        Digits(start, first - 11, 4)) {
      return std::string(start.substr(first - 11, 10)) + " " + std::string(start.substr(first, 8));
    }
    if (first > 0 && start[first - 1] != ' ' && start[first - 1] != '[') continue;
    return std::string(start.substr(first, 8));
  }
  return "";
}

int64_t RankIn(std::string_view line) {
  for (const std::string_view before :
       {"[rank", "[Rank ", "process rank ", "aborted on rank ", "GPU rank ", "[trainer"}) {
    Cursor cursor(line);
    int64_t rank = 0;
    if (cursor.SkipTo(before) && cursor.Number(&rank) && rank >= 0) return rank;
  }
  // "[PG ID 0 PG GUID 0(default_pg) Rank 1]"
  Cursor group(line);
  std::string_view inside;
  if (group.SkipTo("[PG ") && group.Until("]", &inside)) {
    const size_t at = inside.rfind("Rank ");
    int64_t rank = 0;
    if (at != std::string_view::npos && Cursor(inside.substr(at + 5)).Number(&rank)) return rank;
  }
  return -1;
}

}  // namespace diapason::logs
