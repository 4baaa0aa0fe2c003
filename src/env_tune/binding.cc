#include "env_tune/binding.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"

namespace diapason::env_tune {
namespace {

constexpr double kBusy = 0.9;
constexpr double kSmall = 64 * 1024;
constexpr double kLarge = 1024 * 1024;
constexpr double kMost = 0.6;   // of the time, or of the calls
constexpr double kFlat = 0.35;  // d log time / d log size below it: bytes hardly matter
constexpr double kSteep = 0.65;
constexpr std::string_view kNames[] = {"cannot tell", "latency", "bandwidth", "cpu"};

// How the time grows with the size, from the times of several sizes; nothing where there are none.
bool Slope(const BindingFacts& facts, double* slope) {
  std::map<double, std::vector<double>> times;
  for (const auto& [bytes, seconds] : facts.sizes) {
    if (bytes > 0 && seconds > 0) times[bytes].push_back(seconds);
  }
  if (times.size() < 3) return false;
  std::vector<double> slopes;
  for (auto next = std::next(times.begin()); next != times.end(); ++next) {
    const auto before = std::prev(next);
    slopes.push_back(std::log(Median(next->second) / Median(before->second)) /
                     std::log(next->first / before->first));
  }
  *slope = Median(slopes);
  return true;
}

void BySize(const BindingFacts& facts, Binding* binding) {
  double small = 0;
  double large = 0;
  double all = 0;
  const bool timed = std::any_of(facts.sizes.begin(), facts.sizes.end(),
                                 [](const auto& size) { return size.second > 0; });
  for (const auto& [bytes, seconds] : facts.sizes) {
    const double weight = timed ? seconds : 1;
    all += weight;
    small += bytes <= kSmall ? weight : 0;
    large += bytes >= kLarge ? weight : 0;
  }
  if (!(all > 0)) return;
  const char* of = timed ? "of the time" : "of the messages";
  binding->evidence.push_back(facts.sizes_from +
                              Format(": {:.0f} % {} is in messages up to 64 KiB, {:.0f} % in those "
                                     "of 1 MiB or more",
                                     100 * small / all, of, 100 * large / all));
  if (small >= kMost * all) binding->binds = Binds::kLatency;
  if (large >= kMost * all) binding->binds = Binds::kBandwidth;
}

}  // namespace

std::string_view BindsName(Binds binds) { return kNames[static_cast<size_t>(binds)]; }

Result<Binds> ParseBinds(std::string_view text) {
  const std::vector<std::string> names = {"latency", "bandwidth", "cpu"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (FoldName(text) == names[i]) return static_cast<Binds>(i + 1);
  }
  return Invalid(Format("unknown bottleneck '{:.60}'", std::string(text)) +
                 Suggestion(text, names));
}

Binding FindBinding(const BindingFacts& facts) {
  Binding binding;
  if (facts.wall_s > 0 && facts.cpus > 0) {
    const double busy = facts.cpu_s / facts.wall_s;
    const bool full = busy >= kBusy * facts.cpus;
    binding.evidence.push_back(Format("its processes kept {:.2f} of ", busy) +
                               Count(static_cast<size_t>(facts.cpus), "CPU") + " busy" +
                               (full ? " (threads that only spin count as well)" : ""));
    if (full) {
      binding.binds = Binds::kCpu;
      return binding;
    }
  }
  double slope = 0;
  if (Slope(facts, &slope)) {
    binding.evidence.push_back(
        facts.sizes_from + Format(": twice the size takes {:.2f} times as long", std::exp2(slope)));
    if (slope <= kFlat) binding.binds = Binds::kLatency;
    if (slope >= kSteep) binding.binds = Binds::kBandwidth;
  } else {
    BySize(facts, &binding);
  }
  if (binding.binds == Binds::kUnknown && facts.sizes.empty()) {
    binding.evidence.emplace_back(
        "the sizes of its messages are not known: load the plugin, or say --binds");
  }
  return binding;
}

void AddJournalSizes(const journal::JournalContents& contents, BindingFacts* facts) {
  bool timed = false;
  for (const journal::JournalRecord& record : contents.records) {
    timed = timed || (record.kind == journal::RecordKind::kRan && record.seconds > 0);
  }
  for (const journal::JournalRecord& record : contents.records) {
    const bool counts = timed ? record.kind == journal::RecordKind::kRan && record.seconds > 0
                              : record.kind == journal::RecordKind::kDecision;
    if (!counts) continue;
    facts->sizes.emplace_back(static_cast<double>(record.bytes), timed ? record.seconds : 0.0);
  }
  facts->sizes_from = "the journal";
}

}  // namespace diapason::env_tune
