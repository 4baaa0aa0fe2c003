#include "domain/schedule.h"

#include <charconv>

#include "base/text.h"

namespace diapason {
namespace {

constexpr int kMostAlgorithm = 63;
constexpr int kMostProtocol = 15;
constexpr int kMostChannels = 127;
constexpr char kByPolicy = 'p';

std::string ConfigWord(const Config& config) {
  return Format("{}.{}.{}", config.algorithm, config.protocol, config.channels);
}

bool TakeNumber(std::string_view* text, int64_t low, int64_t high, int64_t* value) {
  const char* begin = text->data();
  const auto [end, error] = std::from_chars(begin, begin + text->size(), *value);
  if (error != std::errc() || *value < low || *value > high) return false;
  text->remove_prefix(static_cast<size_t>(end - begin));
  return true;
}

bool TakeLetter(std::string_view* text, char letter) {
  if (text->empty() || text->front() != letter) return false;
  text->remove_prefix(1);
  return true;
}

bool TakeConfig(std::string_view* text, Config* config) {
  int64_t algorithm = 0;
  int64_t protocol = 0;
  int64_t channels = 0;
  if (!TakeNumber(text, kKeep, kMostAlgorithm, &algorithm) || !TakeLetter(text, '.') ||
      !TakeNumber(text, kKeep, kMostProtocol, &protocol) || !TakeLetter(text, '.') ||
      !TakeNumber(text, 0, kMostChannels, &channels)) {
    return false;
  }
  config->algorithm = static_cast<int>(algorithm);
  config->protocol = static_cast<int>(protocol);
  config->channels = static_cast<int>(channels);
  return true;
}

}  // namespace

uint64_t BandFirst(int band) { return band <= 0 ? 0 : (uint64_t{1} << (band - 1)) + 1; }

uint64_t BandLast(int band) {
  if (band >= 64) return UINT64_MAX;
  return band <= 0 ? 1 : uint64_t{1} << band;
}

uint64_t Schedule::Calls() const {
  uint64_t calls = 0;
  for (const Segment& segment : segments) calls += segment.calls;
  return calls;
}

bool Schedule::Explores() const {
  for (const Segment& segment : segments) {
    if (segment.by_policy || segment.config != segments.front().config) return true;
  }
  return false;
}

std::string ScheduleText(const Schedule& schedule) {
  std::string text = ConfigWord(schedule.incumbent);
  if (schedule.timed) text += "*";
  for (const Segment& segment : schedule.segments) {
    text += ";" + (segment.by_policy ? std::string(1, kByPolicy) : ConfigWord(segment.config)) +
            Format("x{}", segment.calls);
    if (!segment.counts) text += "!";
  }
  return text;
}

Result<Schedule> ParseSchedule(std::string_view text) {
  const Status bad = Invalid("not a schedule: '" + std::string(text.substr(0, 60)) + "'");
  Schedule schedule;
  if (!TakeConfig(&text, &schedule.incumbent)) return bad;
  schedule.timed = TakeLetter(&text, '*');
  while (!text.empty()) {
    Segment segment;
    int64_t calls = 0;
    if (!TakeLetter(&text, ';')) return bad;
    segment.by_policy = TakeLetter(&text, kByPolicy);
    if ((!segment.by_policy && !TakeConfig(&text, &segment.config)) || !TakeLetter(&text, 'x') ||
        !TakeNumber(&text, 1, static_cast<int64_t>(kMostCalls), &calls) ||
        schedule.segments.size() == kMostSegments) {
      return bad;
    }
    segment.calls = static_cast<uint64_t>(calls);
    segment.counts = !TakeLetter(&text, '!');
    schedule.segments.push_back(segment);
  }
  if (schedule.segments.empty()) return bad;
  return schedule;
}

}  // namespace diapason
