#include "dataset/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "dataset/limits.h"
#include "dataset/summary.h"
#include "dataset/words.h"

namespace diapason::dataset {
namespace {

// Published limits are of links; allow for clocks and rounding.
constexpr double kLinkMargin = 1.3;
// A switch that reduces halves the traffic of a link in an all-reduce.
constexpr double kSwitchMargin = 2.2;
constexpr double kMemoryMargin = 1.2;
// No collective of several GPUs is faster.
constexpr double kShortest = 0.5e-6;
// Repeats disagree if their spread is this multiple of the typical spread of their run...
constexpr double kSpreadFactor = 5;
// ... and at least this fraction of their median.
constexpr double kSpreadLeast = 0.1;
// Values that differ by less than their rounding matter if the rounding is larger than this
// fraction.
constexpr double kCoarseMatters = 0.01;
constexpr size_t kMostEvidence = 4;

// Collects findings of one kind: one line, a count, the first few places.
class Gathering {
 public:
  void Add(const std::string& evidence) {
    if (++count_ <= kMostEvidence) evidence_.push_back(evidence);
  }
  size_t count() const { return count_; }
  void Close(Severity severity, const char* kind, std::string what, std::string advice,
             std::vector<Finding>* findings) {
    if (count_ == 0) return;
    if (count_ > kMostEvidence) {
      evidence_.push_back(Format("and {} more", count_ - kMostEvidence));
    }
    findings->push_back({kind, severity, std::move(what), std::move(evidence_), std::move(advice)});
  }

 private:
  size_t count_ = 0;
  std::vector<std::string> evidence_;
};

std::string RunText(const SampleRun& run) {
  return Printable(run.origin.empty() ? run.id : run.origin) + " (run " + Printable(run.id, 40) +
         ")";
}

std::string PointText(const Point& point) {
  return ContextText(point) + ", " + SizeText(point.bytes) + ", " + point.ConfigText();
}

std::string CellText(const ConfigGroup& group) {
  return ContextText(group.context) + ", " + SizeText(group.context.bytes);
}

std::string Cells(size_t count) { return Count(count, "cell"); }

void CheckRuns(const StoreContents& contents, std::vector<Finding>* findings) {
  std::vector<size_t> samples(contents.runs.size());
  for (const StoredSample& record : contents.records) ++samples[record.run];
  Gathering independent;
  Gathering interrupted;
  for (size_t i = 0; i < contents.runs.size(); ++i) {
    const SampleRun& run = contents.runs[i];
    const size_t at = run.plan.find(" independent=");
    if (at != std::string::npos) {
      const std::string_view rest = std::string_view(run.plan).substr(at + 13);
      independent.Add(RunText(run) + ": " + Printable(rest.substr(0, rest.find(' ')), 8) +
                      " programs, " + Count(samples[i], "sample"));
    }
    if (run.state != SampleRun::State::kDone) {
      interrupted.Add(RunText(run) + ": " + Count(samples[i], "sample") + "; " +
                      Printable(run.plan, 120));
    }
  }
  independent.Close(Severity::kError, "independent-runs",
                    "programs that ran alone pose as one run of several GPUs",
                    "Do not use these figures: nothing was communicated. The launcher started "
                    "programs that were built without MPI; build nccl-tests with MPI=1, or start "
                    "one program with -g.",
                    findings);
  const size_t count = interrupted.count();
  interrupted.Close(
      Severity::kWarning, "interrupted", Count(count, "run") + " did not come to an end",
      "What was measured before is kept. Repeat the run, or find out why it failed.", findings);
}

void CheckSamples(const StoreContents& contents, std::vector<Finding>* findings) {
  Gathering alone;
  Gathering too_fast;
  Gathering memory;
  Gathering wrong;
  Gathering failed;
  std::map<size_t, size_t> alone_in;
  for (const StoredSample& record : contents.records) {
    const Sample& sample = record.sample;
    const Point& point = sample.point;
    const SampleRun& run = contents.runs[record.run];
    if (sample.outcome == SampleOutcome::kWrong || sample.wrong > 0) {
      wrong.Add(PointText(point) + ": " +
                (sample.wrong > 0 ? Format("{} elements", sample.wrong) : Printable(sample.note)) +
                ", " + RunText(run));
    } else if (sample.outcome != SampleOutcome::kFine) {
      failed.Add(PointText(point) + ": " + OutcomeName(sample.outcome) +
                 (sample.note.empty() ? "" : ", " + Printable(sample.note, 120)));
    }
    if (sample.outcome != SampleOutcome::kFine || point.kind != Point::Kind::kCollective) continue;
    const double algbw = static_cast<double>(point.bytes) / sample.seconds;
    const std::optional<GpuLimits> limits = LimitsOf(run.machine.gpu);
    if (point.ranks == 1) {
      ++alone_in[record.run];
      if (limits && !run.machine.simulated && algbw > limits->memory * kMemoryMargin) {
        memory.Add(Format("{}: {:.4g} GB/s, the memory has {:.4g}, {}", PointText(point),
                          algbw * 1e-9, limits->memory * 1e-9, RunText(run)));
      }
      continue;
    }
    const double busbw = BusBandwidth(point, sample.seconds);
    const double margin = limits && limits->reduces_in_switch ? kSwitchMargin : kLinkMargin;
    if (limits && !run.machine.simulated && busbw > limits->link * margin) {
      too_fast.Add(Format("{}: {:.4g} GB/s, the links of a {} carry {:.4g}, {}", PointText(point),
                          busbw * 1e-9, run.machine.gpu, limits->link * 1e-9, RunText(run)));
    } else if (sample.seconds < kShortest && !run.machine.simulated) {
      too_fast.Add(Format("{}: {}, {}", PointText(point), TimeText(sample.seconds), RunText(run)));
    }
  }
  for (const auto& [run, count] : alone_in) {
    alone.Add(RunText(contents.runs[run]) + ": " + Count(count, "sample"));
  }
  alone.Close(Severity::kError, "one-rank",
              "collectives of a single rank: their bus bandwidth is 0",
              "They say nothing about communication. Run with several ranks.", findings);
  const size_t fast = too_fast.count();
  too_fast.Close(
      Severity::kError, "too-fast", Count(fast, "sample") + " faster than the hardware can be",
      "The time or the number of ranks is wrong: look at how it was measured.", findings);
  const size_t above = memory.count();
  memory.Close(Severity::kError, "above-memory",
               Count(above, "sample") + " above the memory's bandwidth",
               "Nothing was moved: with one rank, in place, there is nothing to do.", findings);
  const size_t bad = wrong.count();
  wrong.Close(Severity::kError, "wrong-results", Count(bad, "sample") + " with wrong results",
              "Never choose these configurations; report them to the library's makers.", findings);
  const size_t lost = failed.count();
  failed.Close(Severity::kNote, "failures", Count(lost, "measurement") + " failed",
               "They are kept so that these configurations are not tried again.", findings);
}

double SpreadOf(const ConfigSummary& entry) {
  const auto [low, high] = std::minmax_element(entry.seconds.begin(), entry.seconds.end());
  return (*high - *low) / entry.median;
}

// Typical spread by number of repeats: it grows with the number.
void CheckSpread(const std::vector<ConfigGroup>& groups, const StoreContents& contents,
                 std::vector<Finding>* findings) {
  std::map<std::pair<size_t, size_t>, std::vector<double>> spreads;
  for (const ConfigGroup& group : groups) {
    for (const ConfigSummary& entry : group.entries) {
      if (entry.seconds.size() < 2 || entry.runs.size() != 1) continue;
      spreads[{entry.runs[0], entry.seconds.size()}].push_back(SpreadOf(entry));
    }
  }
  std::map<std::pair<size_t, size_t>, double> medians;
  for (const auto& [kind, values] : spreads) medians[kind] = Median(values);
  Gathering apart;
  for (const ConfigGroup& group : groups) {
    for (const ConfigSummary& entry : group.entries) {
      if (entry.seconds.size() < 2 || entry.runs.size() != 1) continue;
      const double typical = medians[{entry.runs[0], entry.seconds.size()}] + 2 * entry.coarse;
      const double spread = SpreadOf(entry);
      if (spread < kSpreadLeast || spread < kSpreadFactor * typical) continue;
      const auto [low, high] = std::minmax_element(entry.seconds.begin(), entry.seconds.end());
      apart.Add(Format("{}: {} to {} in {} repeats; {:.2g} % apart is typical here, {}",
                       PointText(entry.point), TimeText(*low), TimeText(*high),
                       entry.seconds.size(), typical * 100, RunText(contents.runs[entry.runs[0]])));
    }
  }
  const size_t count = apart.count();
  apart.Close(Severity::kWarning, "repeats-disagree",
              Cells(count) + " whose repeats disagree far more than is typical of their run",
              "Something disturbed them. Measure these cells again.", findings);
}

// Whether the printed digits distinguish the best configuration from the others.
void CheckDigits(const ConfigGroup& group, Gathering* coarse) {
  const std::vector<ConfigSummary>& all = group.entries;
  if (!all.front().fine()) return;
  size_t alike = 0;
  double digits = 0;
  for (size_t i = 1; i < all.size() && all[i].fine(); ++i) {
    const double needed = all[0].coarse + all[i].coarse;
    if (needed < kCoarseMatters || all[i].median / all[0].median - 1 > needed) continue;
    ++alike;
    digits = std::max(digits, needed / 2);
  }
  if (alike == 0) return;
  coarse->Add(Format("{}: {} and {} lie within what the digits show ({:.2g} %)", CellText(group),
                     all[0].point.ConfigText(), alike == 1 ? "another" : Format("{} others", alike),
                     digits * 100));
}

void CheckContests(const std::vector<ConfigGroup>& groups, std::vector<Finding>* findings) {
  size_t cells = 0;
  Gathering single;
  Gathering coarse;
  for (const ConfigGroup& group : groups) {
    for (const ConfigSummary& entry : group.entries) {
      if (!entry.fine()) continue;
      ++cells;
      if (entry.seconds.size() == 1) single.Add(PointText(entry.point));
    }
    CheckDigits(group, &coarse);
  }
  const size_t ones = single.count();
  single.Close(
      Severity::kNote, "single-samples", Format("{} of {} have one sample", ones, Cells(cells)),
      "One sample does not say how much the next would differ. Repeat the measurement.", findings);
  const size_t same = coarse.count();
  coarse.Close(Severity::kWarning, "too-coarse",
               "in " + Count(same, "context") +
                   " the printed digits do not tell the best configuration from others",
               "Treat them as equal, or measure with times that have more digits.", findings);
}

// Several values of a property that should be unique, at some sizes.
struct Mixture {
  std::set<uint64_t> sizes;
  std::set<std::string> names;
  void Add(uint64_t bytes, const std::set<std::string>& more) {
    sizes.insert(bytes);
    names.insert(more.begin(), more.end());
  }
  void Tell(const Point& place, Gathering* gathering) const {
    if (sizes.empty()) return;
    std::vector<std::string> first(names.begin(), names.end());
    if (first.size() > 3) first.resize(3);
    gathering->Add(ContextText(place) + ", " + Count(sizes.size(), "size") + ": " +
                   Printable(Join(first, "; "), 160) +
                   (names.size() > 3 ? Format("; and {} more", names.size() - 3) : ""));
  }
};

// Checks the properties that must be equal within a context for figures to be comparable.
void CheckMixtures(const StoreContents& contents, std::vector<Finding>* findings) {
  struct Kinds {
    std::set<std::string> software;
    std::set<std::string> gpus;
    std::set<std::string> hosts;
    std::set<bool> simulated;
  };
  std::map<Point, Kinds> contexts;
  for (const StoredSample& record : contents.records) {
    Point context = record.sample.point;
    context.algorithm = context.protocol = context.environment = "";
    context.channels = 0;
    context.segment_bytes = 0;
    const MachineInfo& machine = contents.runs[record.run].machine;
    Kinds& kinds = contexts[context];
    kinds.simulated.insert(machine.simulated);
    kinds.software.insert(Trim(machine.library + " " + machine.library_version).empty()
                              ? std::string("unknown library")
                              : std::string(Trim(machine.library + " " + machine.library_version)));
    kinds.gpus.insert(machine.gpu.empty() ? "unknown GPU" : machine.gpu);
    if (!machine.hosts.empty()) kinds.hosts.insert(machine.hosts);
  }
  // One line for all sizes of a context.
  Gathering simulated;
  Gathering software;
  Gathering gpus;
  Gathering hosts;
  std::map<Point, std::array<Mixture, 4>> places;
  for (const auto& [context, kinds] : contexts) {
    Point place = context;
    place.bytes = 0;
    place.in_place = false;
    std::array<Mixture, 4>& mixtures = places[place];
    if (kinds.simulated.size() > 1) mixtures[0].Add(context.bytes, {"simulated", "measured"});
    if (kinds.software.size() > 1) mixtures[1].Add(context.bytes, kinds.software);
    if (kinds.gpus.size() > 1) {
      mixtures[2].Add(context.bytes, kinds.gpus);
    } else if (kinds.hosts.size() > 1) {
      mixtures[3].Add(context.bytes, kinds.hosts);
    }
  }
  for (const auto& [place, mixtures] : places) {
    mixtures[0].Tell(place, &simulated);
    mixtures[1].Tell(place, &software);
    mixtures[2].Tell(place, &gpus);
    mixtures[3].Tell(place, &hosts);
  }
  const auto in = [](size_t count) { return "in " + Count(count, "context") + " "; };
  const std::string advice =
      "Compare inside one of them only: keep them in stores of their own, or filter.";
  const size_t mixed = simulated.count();
  simulated.Close(Severity::kError, "simulated-mixed",
                  in(mixed) + "simulated samples stand beside measured ones", advice, findings);
  const size_t versions = software.count();
  software.Close(Severity::kWarning, "libraries-mixed",
                 in(versions) + "several libraries or versions were measured", advice, findings);
  const size_t machines = gpus.count();
  gpus.Close(Severity::kWarning, "machines-mixed",
             in(machines) + "several kinds of machine were measured", advice, findings);
  const size_t names = hosts.count();
  hosts.Close(Severity::kNote, "hosts-mixed", in(names) + "several hosts of one kind were measured",
              "Fine if the hosts are alike; a slow host hides in the median.", findings);
}

}  // namespace

std::vector<Finding> Check(const StoreContents& contents) {
  std::vector<Finding> findings;
  const std::vector<ConfigGroup> groups = Summarise(contents);
  CheckRuns(contents, &findings);
  CheckSamples(contents, &findings);
  CheckMixtures(contents, &findings);
  CheckSpread(groups, contents, &findings);
  CheckContests(groups, &findings);
  SortBySeverity(&findings);
  return findings;
}

}  // namespace diapason::dataset
