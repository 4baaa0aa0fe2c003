#include "job_profile/job_profile.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/stats.h"
#include "base/text.h"
#include "domain/schedule.h"
#include "job_profile/counted.h"
#include "job_profile/iterations.h"
#include "job_profile/timeline.h"
#include "job_profile/turns.h"

namespace diapason::job_profile {
namespace {

constexpr double kLonger = 1.25;
constexpr int kFirstWithoutGroups = 22900;  // groups and broadcasts are not counted from here on

using ClassKey = std::tuple<size_t, uint8_t, int>;
ClassKey KeyOf(const Call& call) { return {call.role, call.collective, SizeBand(call.bytes)}; }

enum class Untried { kNo, kCaptured, kBypassed, kGroup, kBroadcast };

Untried WhyUntried(const Call& call, const Role& role) {
  if (call.bypassed) return Untried::kBypassed;
  if (call.captured) return Untried::kCaptured;
  const bool newer = role.library == Library::kNccl && role.library_version >= kFirstWithoutGroups;
  if (newer && call.grouped) return Untried::kGroup;
  if (newer && call.collective == static_cast<uint8_t>(Collective::kBroadcast)) {
    return Untried::kBroadcast;
  }
  return Untried::kNo;
}

void Add(const Times& more, double weight, Times* sum) {
  sum->total += more.total * weight;
  sum->exposed += more.exposed * weight;
  sum->exposed_low += more.exposed_low * weight;
  sum->exposed_high += more.exposed_high * weight;
  sum->waiting += more.waiting * weight;
  sum->slowed += more.slowed * weight;
}

// Sums over the ranks; made into means at the end. Of all iterations, or of those of one side.
class Profiler {
 public:
  explicit Profiler(const Job& job, std::optional<Side> side = {}, const CountedCalls& counted = {})
      : job_(job), side_(side), counted_(counted) {}

  JobProfile Run() {
    std::vector<RankIterations> found;
    bool any = false;
    for (const Timeline& timeline : job_.ranks) {
      found.push_back(counted_.per_iteration > 0 ? CountIterations(timeline, job_.roles, counted_)
                                                 : FindIterations(timeline));
      any = any || (!found.back().timed.empty() && found.back().source != Source::kCalls);
    }
    for (size_t i = 0; i < found.size(); ++i) {
      // Calls that are only counted are no iterations beside those of other ranks.
      if (any && found[i].source == Source::kCalls) found[i] = {};
      if (side_) found[i].timed = IterationsOf(job_.ranks[i], found[i].timed, *side_);
      with_iterations_ += found[i].timed.empty() ? 0 : 1;
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (Counts(found[i])) AddRank(job_.ranks[i], found[i]);
    }
    JobProfile profile;
    profile.roles = job_.roles;
    profile.ranks = std::move(ranks_);
    profile.missing_ranks = job_.missing_ranks;
    profile.untried_seconds = untried_seconds_;
    profile.untimed_per_iteration = untimed_per_iteration_;
    profile.captures = captures_;
    Combine(&profile);
    for (const auto& [key, one] : classes_) {
      profile.untried_calls += one.Untried();
      profile.classes.push_back(one);
    }
    std::stable_sort(profile.classes.begin(), profile.classes.end(),
                     [](const CallClass& a, const CallClass& b) {
                       return std::pair(a.times.total, a.calls) > std::pair(b.times.total, b.calls);
                     });
    return profile;
  }

 private:
  CallClass& ClassOf(const Call& call) {
    const auto [at, fresh] = classes_.try_emplace(KeyOf(call));
    CallClass& one = at->second;
    if (fresh) {
      one.role = call.role;
      one.collective = call.collective;
      one.band = SizeBand(call.bytes);
      one.least_bytes = one.most_bytes = call.bytes;
    }
    one.least_bytes = std::min(one.least_bytes, call.bytes);
    one.most_bytes = std::max(one.most_bytes, call.bytes);
    return one;
  }

  void Count(const Call& call, RankProfile* rank) {
    CallClass& one = ClassOf(call);
    ++one.calls;
    ++rank->calls;
    rank->timed_calls += call.timed() ? 1 : 0;
    switch (WhyUntried(call, job_.roles[call.role])) {
      case Untried::kNo:
        break;
      case Untried::kCaptured:
        ++one.captured;
        break;
      case Untried::kBypassed:
        ++one.bypassed;
        break;
      case Untried::kGroup:
        ++one.in_groups;
        break;
      case Untried::kBroadcast:
        ++one.broadcasts;
        break;
    }
  }

  void CountAll(const Timeline& timeline, const RankIterations& found, RankProfile* rank) {
    if (!side_) {
      for (const Call& call : timeline.calls) Count(call, rank);
      return;
    }
    for (const RankIteration& iteration : found.timed) {
      for (size_t i = iteration.first; i < iteration.end; ++i) Count(timeline.calls[i], rank);
    }
  }

  static void Lengths(const RankIterations& found, RankProfile* rank) {
    std::vector<double> lengths;
    std::vector<double> calls;
    for (const RankIteration& iteration : found.timed) {
      lengths.push_back(iteration.length);
      calls.push_back(static_cast<double>(iteration.end - iteration.first));
    }
    rank->iterations = lengths.size();
    if (lengths.empty()) return;
    rank->calls_per_iteration = Median(std::move(calls));
    rank->iteration = Median(lengths);
    rank->iteration_low = Quantile(lengths, 0.1);
    rank->iteration_high = Quantile(lengths, 0.9);
    std::erase_if(lengths, [&](double one) { return one <= kLonger * rank->iteration; });
    rank->longer = lengths.size();
    if (!lengths.empty()) rank->longer_length = Median(std::move(lengths));
  }

  void AddTimes(const Timeline& timeline, const RankIterations& found, RankProfile* rank) {
    if (found.timed.empty()) return;
    const double share = 1.0 / static_cast<double>(with_iterations_);
    const double each = share / static_cast<double>(found.timed.size());
    for (const RankIteration& iteration : found.timed) {
      for (size_t i = iteration.first; i < iteration.end; ++i) {
        ClassOf(timeline.calls[i]).calls_per_iteration += each;
        if (!timeline.calls[i].timed()) untimed_per_iteration_ += each;
      }
    }
    const PositionSpans spans = SpansOf(timeline, found);
    const std::vector<PositionTime> positions =
        EstimateExposure(spans.iterations, spans.examples.size());
    for (size_t p = 0; p < positions.size(); ++p) {
      const PositionTime& one = positions[p];
      const Times times{one.total, one.exposed, one.low, one.high, one.total * spans.waiting[p],
                        one.slowed};
      Add(times, 1, &rank->times);
      rank->hidden_by_host += one.behind_host;
      Add(times, share, &ClassOf(*spans.examples[p]).times);
      if (WhyUntried(*spans.examples[p], job_.roles[spans.examples[p]->role]) != Untried::kNo) {
        untried_seconds_ += one.total * share;
      }
    }
  }

  // A rank without iterations of the side has no part in its profile.
  bool Counts(const RankIterations& found) const { return !side_ || !found.timed.empty(); }

  void AddRank(const Timeline& timeline, const RankIterations& found) {
    RankProfile rank;
    rank.label = timeline.label;
    rank.rank = timeline.rank;
    rank.complete = timeline.complete;
    CountAll(timeline, found, &rank);
    rank.source = found.source;
    rank.gpu_clock = found.gpu_clock;
    rank.startup_calls = found.startup_calls;
    rank.other_calls = found.other_calls;
    rank.parts = found.parts;
    Lengths(found, &rank);
    rank.after_capture = AfterCapture(timeline, found);
    captures_ = captures_ || timeline.last_capture > 0;
    AddTimes(timeline, found, &rank);
    ranks_.push_back(std::move(rank));
  }

  // From the ranks to the job.
  static void Combine(JobProfile* profile) {
    std::vector<const RankProfile*> by_length;
    std::map<Source, size_t> sources;
    for (const RankProfile& rank : profile->ranks) {
      profile->calls += rank.calls;
      profile->untimed_calls += rank.calls - rank.timed_calls;
      profile->has_times = profile->has_times || rank.timed_calls > 0;
      profile->iterations = std::max(profile->iterations, rank.iterations);
      profile->after_capture = std::max(profile->after_capture, rank.after_capture);
      ++sources[rank.source];
      if (rank.iterations > 0) by_length.push_back(&rank);
    }
    if (sources.empty()) return;
    // Ranks without iterations say nothing about the others.
    for (const RankProfile* rank : by_length) {
      const double share = 1.0 / static_cast<double>(by_length.size());
      Add(rank->times, share, &profile->times);
      profile->hidden_by_host += rank->hidden_by_host * share;
    }
    if (!by_length.empty()) sources.erase(Source::kNone);
    profile->source =
        std::max_element(sources.begin(), sources.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    if (by_length.empty()) return;
    std::stable_sort(by_length.begin(), by_length.end(),
                     [](const auto* a, const auto* b) { return a->iteration < b->iteration; });
    const RankProfile& middle = *by_length[(by_length.size() - 1) / 2];
    profile->iteration = middle.iteration;
    profile->iteration_low = middle.iteration_low;
    profile->iteration_high = middle.iteration_high;
    profile->slowest_rank = by_length.back()->label;
    profile->slowest_iteration = by_length.back()->iteration;
  }

  const Job& job_;
  std::optional<Side> side_;
  CountedCalls counted_;
  std::map<ClassKey, CallClass> classes_;
  std::vector<RankProfile> ranks_;
  size_t with_iterations_ = 0;  // ranks
  bool captures_ = false;
  double untried_seconds_ = 0;
  double untimed_per_iteration_ = 0;
};

}  // namespace

ProfileMaker::ProfileMaker() : job_(std::make_unique<JobMaker>()) {}
ProfileMaker::~ProfileMaker() = default;

void ProfileMaker::Add(const std::string& name, const journal::JournalContents& contents) {
  job_->Add(name, contents);
  // Counts come from files: their sum may be too large for the type.
  dropped_ += std::min(contents.dropped, UINT64_MAX - dropped_);
  bad_lines_ += contents.bad_lines;
}

Result<Job> ProfileMaker::FinishJob() {
  Job job = job_->Finish();
  if (job.ranks.empty()) {
    return Invalid(
        "no call of a collective is in these journals: the job never reached one, or its library "
        "asked no tuner; NCCL_DEBUG=INFO shows whether it has loaded the plugin");
  }
  return job;
}

Result<JobProfile> ProfileMaker::Finish(bool runs) {
  ASSIGN_OR_RETURN(const Job job, FinishJob());
  JobProfile profile = Profiler(job).Run();
  profile.dropped = dropped_;
  profile.bad_lines = bad_lines_;
  profile.notes = NotesOf(profile, job.several_devices, runs);
  return profile;
}

Result<SidedProfiles> ProfileMaker::FinishSides(const CountedCalls& counted) {
  ASSIGN_OR_RETURN(const Job job, FinishJob());
  SidedProfiles sides;
  for (const auto& [side, profile] :
       {std::pair(Side::kDefault, &sides.by_default), std::pair(Side::kPolicy, &sides.by_policy)}) {
    *profile = Profiler(job, side, counted).Run();
    profile->dropped = dropped_;
    profile->bad_lines = bad_lines_;
    profile->notes = NotesOf(*profile, job.several_devices);
    if (profile->iterations > 0) continue;
    return NotFound(
        Format("no iteration of these journals ran in turns of the {} alone: run the job with "
               "DIAPASON_MODE=compare and a policy whose rows match its calls, for at least two "
               "turns of each",
               side == Side::kDefault ? "default" : "policy"));
  }
  return sides;
}

}  // namespace diapason::job_profile
