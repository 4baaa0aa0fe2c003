#include "agree/epochs.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr char kHold[] = "hold";
constexpr uint32_t kMostDoublings = 7;
// Limit on the epochs that one call of At may enter.
constexpr int kMostEntered = 1 << 16;
// Beyond it call numbers could overflow; no job makes that many calls.
constexpr uint64_t kLastStart = uint64_t{1} << 62;

Schedule OnlyIncumbent(const Config& incumbent, uint64_t calls) {
  Schedule schedule;
  schedule.incumbent = incumbent;
  schedule.segments.push_back({incumbent, calls, true});
  return schedule;
}

Result<Schedule> ParseCell(const std::string& key, const std::string& value) {
  Result<Schedule> schedule = ParseSchedule(value);
  if (schedule.ok()) return schedule;
  return schedule.status().WithContext("what stands in cell '" + key + "' was written by no rank");
}

}  // namespace

std::string EpochLog::CellKey(const std::string& prefix, uint32_t epoch) {
  return prefix + Format("e{}", epoch);
}

EpochLog::EpochLog(CellStore* store, Options options)
    : store_(store), options_(std::move(options)) {
  // Epochs without calls would have no end.
  if (options_.opening_calls == 0) options_.opening_calls = 1;
  options_.hold_calls = std::clamp<uint64_t>(options_.hold_calls, 1, kMostCalls >> kMostDoublings);
  epochs_.push_back({0, 0, false, OnlyIncumbent(options_.incumbent, options_.opening_calls)});
}

Result<std::string> EpochLog::Cell(uint32_t epoch) {
  if (options_.known != nullptr) {
    if (std::optional<std::string> text = options_.known->Take(epoch)) return *std::move(text);
  }
  return store_->Propose(CellKey(options_.prefix, epoch), kHold);
}

Result<EpochLog::Epoch> EpochLog::EnterAfter(const Epoch& last) {
  const Config& incumbent = last.schedule.incumbent;
  Epoch epoch;
  epoch.number = last.number + 1;
  epoch.start = last.end();
  if (epoch.number < 2) {
    epoch.schedule = OnlyIncumbent(incumbent, options_.opening_calls);
    return epoch;
  }
  ASSIGN_OR_RETURN(const std::string stands, Cell(epoch.number));
  if (stands == kHold) {
    epoch.held = true;
    epoch.holds = last.holds + 1;
    epoch.schedule =
        OnlyIncumbent(incumbent, options_.hold_calls << std::min(last.holds, kMostDoublings));
    return epoch;
  }
  ASSIGN_OR_RETURN(epoch.schedule, ParseCell(CellKey(options_.prefix, epoch.number), stands));
  return epoch;
}

Result<EpochLog::Span> EpochLog::At(uint64_t index) {
  for (int entered = 0; index >= epochs_.back().end(); ++entered) {
    const Epoch& last = epochs_.back();
    if (entered == kMostEntered || last.end() > kLastStart) {
      return Internal(Format("call {} is too far ahead of epoch {}, which ends at {}", index,
                             last.number, last.end()));
    }
    ASSIGN_OR_RETURN(Epoch next, EnterAfter(last));
    epochs_.push_back(std::move(next));
  }
  if (index < epochs_.front().start) {
    return Internal(Format("call {} was asked for again after it was forgotten", index));
  }
  auto epoch = epochs_.rbegin();
  while (index < epoch->start) ++epoch;
  Span span;
  span.epoch = epoch->number;
  span.held = epoch->held;
  span.first = epoch->start;
  for (const Segment& segment : epoch->schedule.segments) {
    span.end = span.first + segment.calls;
    if (index < span.end) {
      span.config = segment.config;
      span.counts = segment.counts;
      span.by_policy = segment.by_policy;
      return span;
    }
    span.first = span.end;
    ++span.segment;
  }
  return Internal("an epoch is shorter than its calls");
}

void EpochLog::Forget(uint64_t index) {
  while (epochs_.size() > 1 && epochs_.front().end() <= index) epochs_.pop_front();
}

Result<EpochLog::Standing> EpochLog::Propose(CellStore* store, const std::string& prefix,
                                             uint32_t epoch, const Schedule& schedule) {
  const std::string text = ScheduleText(schedule);
  // A proposal that other ranks could not parse must not stand.
  if (epoch < 2) return Internal(Format("epoch {} has no cell", epoch));
  if (const Result<Schedule> back = ParseSchedule(text); !back.ok()) return back.status();
  const std::string key = CellKey(prefix, epoch);
  ASSIGN_OR_RETURN(std::string stands, store->Propose(key, text));
  Standing standing;
  standing.text = std::move(stands);
  standing.held = standing.text == kHold;
  if (standing.held) return standing;
  ASSIGN_OR_RETURN(standing.schedule, ParseCell(key, standing.text));
  return standing;
}

}  // namespace diapason::agree
