#include "plugin/profiler/call_times.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <new>

#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/collectives.h"
#include "domain/decision.h"

namespace diapason::plugin {
namespace {

constexpr uint64_t kLineNs = 1'000'000'000;
constexpr uint64_t kLeastUsual = 8;   // calls before a time is usual
constexpr uint64_t kUsualEvery = 32;  // calls after which the usual time is looked up again
constexpr size_t kMostWrite = 4096;   // bytes that a pipe with any room accepts at once
constexpr int kEndWaitMs = 100;
constexpr uint64_t kTakenConfig = uint64_t{1} << 63;

uint64_t Pack(const RunSeen& run) {
  return kTakenConfig | (static_cast<uint64_t>(run.algorithm & 0xff) << 40) |
         (static_cast<uint64_t>(run.protocol & 0xff) << 32) |
         static_cast<uint64_t>(run.channels & 0xffff);
}

std::string Milliseconds(double seconds) { return Format("{:.3g} ms", seconds * 1e3); }

std::string Microseconds(double seconds) { return Format("{:.1f}", seconds * 1e6); }

std::string SizeText(uint64_t bytes) {
  return bytes < 1024 ? Format("{} bytes", bytes) : FormatBytes(bytes);
}

bool WriteSome(const std::string& text, int wait_ms) noexcept {
  size_t at = 0;
  while (at < text.size()) {
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    if (poll(&out, 1, wait_ms) != 1 || (out.revents & POLLOUT) == 0) return at > 0;
    const ssize_t written =
        write(STDERR_FILENO, text.data() + at, std::min(kMostWrite, text.size() - at));
    if (written <= 0) return at > 0;
    at += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

SlowCallLimits ReadSlowCallLimits(const Settings& settings) {
  SlowCallLimits limits;
  // The default is for the groups of comm.h, whose calls are timed anyway.
  if (settings.IsSet(Setting::kSlowCall)) {
    limits.seconds = static_cast<double>(settings.Number(Setting::kSlowCall)) * 1e-3;
  }
  limits.factor = static_cast<double>(settings.Number(Setting::kSlowFactor));
  return limits;
}

bool CallTimes::ToStandardError(const std::string& text) noexcept { return WriteSome(text, 0); }

CallTimes::CallTimes(Place place, SlowCallLimits limits, Sink sink)
    : place_(std::move(place)), limits_(limits), sink_(sink) {}

CallTimes::~CallTimes() {
  for (auto& bands : table_) {
    for (auto& one : bands) delete one.load(std::memory_order_relaxed);
  }
}

int CallTimes::StepOf(uint64_t ns) {
  const double octaves = std::log2(static_cast<double>(std::max<uint64_t>(ns, 1)) / 62.5);
  return std::clamp(static_cast<int>(octaves * kStepsPerOctave), 0, kSteps - 1);
}

// The time that this share of the calls does not exceed: the middle of its step.
double CallTimes::SecondsAt(const Class& one, double share) {
  uint64_t calls = 0;
  for (const auto& step : one.steps) calls += step.load(std::memory_order_relaxed);
  const auto wanted = static_cast<uint64_t>(std::ceil(static_cast<double>(calls) * share));
  uint64_t seen = 0;
  for (int step = 0; step < kSteps; ++step) {
    seen += one.steps[step].load(std::memory_order_relaxed);
    if (seen < std::max<uint64_t>(wanted, 1)) continue;
    const double middle = 62.5e-9 * std::exp2((step + 0.5) / kStepsPerOctave);
    // A step may extend beyond the longest call.
    return std::min(middle,
                    static_cast<double>(one.most_ns.load(std::memory_order_relaxed)) * 1e-9);
  }
  return 0;
}

CallTimes::Class* CallTimes::ClassOf(const RunSeen& run) noexcept {
  if (run.collective < 0 || run.collective >= kCollectiveCount) return nullptr;
  std::atomic<Class*>& place = table_[run.collective][SizeBand(run.bytes)];
  Class* one = place.load(std::memory_order_acquire);
  if (one != nullptr) return one;
  std::unique_ptr<Class> made(new (std::nothrow) Class());
  if (made == nullptr) return nullptr;
  if (!place.compare_exchange_strong(one, made.get(), std::memory_order_acq_rel)) return one;
  return made.release();
}

bool CallTimes::IsSlow(const Class& one, double seconds) const {
  if (limits_.seconds >= 0 && seconds > limits_.seconds) return true;
  const uint64_t usual = one.usual_ns.load(std::memory_order_relaxed);
  return limits_.factor > 0 && usual > 0 &&
         seconds > limits_.factor * static_cast<double>(usual) * 1e-9;
}

void CallTimes::Count(const RunSeen& run, double seconds, uint64_t now_ns) noexcept {
  Class* one = ClassOf(run);
  if (one == nullptr || !(seconds >= 0)) return CountUntimed();
  const auto ns = static_cast<uint64_t>(std::min(seconds, 3600.0) * 1e9);
  const bool slow = IsSlow(*one, seconds);
  const double usual_s = static_cast<double>(one->usual_ns.load(std::memory_order_relaxed)) * 1e-9;
  const uint64_t calls = one->calls.fetch_add(1, std::memory_order_relaxed) + 1;
  one->bytes.fetch_add(run.bytes, std::memory_order_relaxed);
  one->total_ns.fetch_add(ns, std::memory_order_relaxed);
  one->steps[StepOf(ns)].fetch_add(1, std::memory_order_relaxed);
  uint64_t most = one->most_ns.load(std::memory_order_relaxed);
  while (ns > most && !one->most_ns.compare_exchange_weak(most, ns, std::memory_order_relaxed)) {
  }
  const uint64_t packed = Pack(run);
  for (size_t i = 0; i < kConfigs; ++i) {
    uint64_t there = one->config[i].load(std::memory_order_relaxed);
    if (there == 0 && one->config[i].compare_exchange_strong(there, packed)) there = packed;
    if (there != packed) continue;
    one->config_calls[i].fetch_add(1, std::memory_order_relaxed);
    break;
  }
  if (calls == kLeastUsual || calls % kUsualEvery == 0) {
    one->usual_ns.store(static_cast<uint64_t>(SecondsAt(*one, 0.5) * 1e9),
                        std::memory_order_relaxed);
  }
  if (slow) LogSlow(run, seconds, usual_s, now_ns);
}

void CallTimes::LogSlow(const RunSeen& run, double seconds, double usual_s,
                        uint64_t now_ns) noexcept {
  slow_.fetch_add(1, std::memory_order_relaxed);
  uint64_t next = next_line_ns_.load(std::memory_order_relaxed);
  if (now_ns < next || !next_line_ns_.compare_exchange_strong(next, now_ns + kLineNs)) {
    unsaid_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const uint64_t unsaid = unsaid_.exchange(0, std::memory_order_relaxed);
  try {
    const auto collective = static_cast<Collective>(run.collective);
    std::string line = Format("diapason: rank {}: slow call: {} number {}, {} took {} (",
                              place_.rank, CollectiveName(collective), run.sequence,
                              SizeText(run.bytes), Milliseconds(seconds));
    if (limits_.seconds >= 0) line += "limit " + Milliseconds(limits_.seconds) + ", ";
    line += usual_s > 0 ? "usually " + Milliseconds(usual_s) : "no usual time yet";
    line += Format("), {:.3g} GB/s, {}, communicator {}",
                   static_cast<double>(run.bytes) / std::max(seconds, 1e-9) / 1e9,
                   ConfigOf(run.collective, Pack(run)), Printable(place_.communicator));
    if (unsaid > 0) line += Format("; {} more since the last line", unsaid);
    if (!sink_(line + "\n")) unsaid_.fetch_add(unsaid + 1, std::memory_order_relaxed);
  } catch (...) {  // no memory: the line is lost
    unsaid_.fetch_add(unsaid + 1, std::memory_order_relaxed);
  }
}

namespace {

// A byte as it was packed: -1 is none.
int Signed(uint64_t byte) { return byte > 127 ? -1 : static_cast<int>(byte); }

}  // namespace

std::string CallTimes::ConfigOf(int collective, uint64_t packed) const {
  Config config;
  config.algorithm = Signed(packed >> 40 & 0xff);
  config.protocol = Signed(packed >> 32 & 0xff);
  config.channels = static_cast<int>(packed & 0xffff);
  if (config.algorithm < 0 || config.protocol < 0) return "another kernel";
  return ConfigText(place_.library, static_cast<Collective>(collective), config);
}

std::string CallTimes::Row(int collective, int band, const Class& one) const {
  const auto kind = static_cast<Collective>(collective);
  size_t most = 0;
  for (size_t i = 0; i < kConfigs; ++i) {
    if (one.config_calls[i].load(std::memory_order_relaxed) >
        one.config_calls[most].load(std::memory_order_relaxed)) {
      most = i;
    }
  }
  const uint64_t calls = one.calls.load(std::memory_order_relaxed);
  const uint64_t bytes = one.bytes.load(std::memory_order_relaxed);
  const double seconds = static_cast<double>(one.total_ns.load(std::memory_order_relaxed)) * 1e-9;
  std::string ran = ConfigOf(collective, one.config[most].load(std::memory_order_relaxed));
  if (one.config_calls[most].load(std::memory_order_relaxed) < calls) {
    ran += Format(" ({} %)", 100 * one.config_calls[most].load(std::memory_order_relaxed) /
                                 std::max<uint64_t>(calls, 1));
  }
  const double bus = seconds > 0 ? static_cast<double>(bytes) *
                                       BusFactor(kind, std::max(place_.ranks, 1)) / seconds / 1e9
                                 : 0;
  return Format(
      "{:<13}  {:>8}  {:>9}  {:>9}  {:>11}  {:>11}  {:>11}  {:>8.3g}  {}\n", CollectiveName(kind),
      FormatBytes(BandLast(band)), calls, AboutBytes(bytes), Microseconds(SecondsAt(one, 0.5)),
      Microseconds(SecondsAt(one, 0.99)),
      Microseconds(static_cast<double>(one.most_ns.load(std::memory_order_relaxed)) * 1e-9), bus,
      ran);
}

std::string CallTimes::Summary() const {
  std::string rows;
  uint64_t calls = 0;
  const std::string prefix = Format("diapason: rank {}: ", place_.rank);
  for (int collective = 0; collective < kCollectiveCount; ++collective) {
    for (int band = 0; band < kSizeBands; ++band) {
      const Class* one = table_[collective][band].load(std::memory_order_acquire);
      if (one == nullptr || one->calls.load(std::memory_order_relaxed) == 0) continue;
      calls += one->calls.load(std::memory_order_relaxed);
      rows += prefix + Row(collective, band, *one);
    }
  }
  const uint64_t untimed = untimed_.load(std::memory_order_relaxed);
  if (calls + untimed == 0) return "";
  std::string text = prefix + Format("calls of communicator {} ({} ranks): {} timed, {} slow",
                                     Printable(place_.communicator), place_.ranks, calls,
                                     slow_.load(std::memory_order_relaxed));
  if (untimed > 0) text += Format(", {} without a GPU time", untimed);
  text += "\n";
  if (rows.empty()) return text;
  return text + prefix +
         Format("{:<13}  {:>8}  {:>9}  {:>9}  {:>11}  {:>11}  {:>11}  {:>8}  {}\n", "collective",
                "up to", "calls", "bytes", "median us", "p99 us", "longest us", "bus GB/s",
                "most often ran") +
         rows;
}

void CallTimes::End() noexcept {
  if (place_.rank > 0 && slow_.load(std::memory_order_relaxed) == 0) return;
  try {
    const std::string text = Summary();
    if (text.empty()) return;
    if (sink_ == ToStandardError) {
      WriteSome(text, kEndWaitMs);
    } else {
      sink_(text);
    }
  } catch (...) {  // no memory: no summary
  }
}

}  // namespace diapason::plugin
