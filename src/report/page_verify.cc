#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "dataset/summary.h"
#include "report/page_parts.h"

namespace diapason::report {
namespace {

// The repetition and its run.
using VerifyRound = std::pair<size_t, int>;

struct PageSide {
  std::map<VerifyRound, double> seconds;
  size_t failures = 0;

  std::vector<double> All() const {
    std::vector<double> all;
    for (const auto& [round, one] : seconds) all.push_back(one);
    return all;
  }

  PageFigure Time() const {
    if (seconds.empty()) return {};
    const std::vector<double> all = All();
    return {all.size(), Median(all), MedianInterval95(all)};
  }
};

// Drift affects both sides of a round alike, and cancels in its gain.
PageFigure GainOf(const PageSide& standard, const PageSide& tuned) {
  std::vector<double> gains;
  for (const auto& [round, seconds] : tuned.seconds) {
    const auto other = standard.seconds.find(round);
    if (other != standard.seconds.end()) gains.push_back(other->second / seconds);
  }
  if (gains.empty()) return {};
  return {gains.size(), Median(gains), MedianInterval95(gains)};
}

std::string VerdictOf(const PageFigure& gain, bool failed) {
  if (failed) return "failed";
  if (gain.samples < kLeastJudged) return "too few rounds";
  if (gain.interval.low > 1) return "faster";
  if (gain.interval.high < 1) return "slower";
  return "no difference";
}

constexpr int kDraws = 2000;

// The geometric mean of several gains. Its interval is from resampling each gain from a normal
// distribution of its logarithm, fitted to its own interval.
PageFigure GeometricMean(const std::vector<PageFigure>& gains) {
  if (gains.empty()) return {};
  const double count = static_cast<double>(gains.size());
  PageFigure mean;
  double sum = 0;
  for (const PageFigure& gain : gains) {
    sum += std::log(gain.median);
    mean.samples += gain.samples;
  }
  mean.median = std::exp(sum / count);
  std::vector<double> draws;
  for (int draw = 0; draw < kDraws; ++draw) {
    const CounterRandom random(20, static_cast<uint64_t>(draw));
    double drawn = 0;
    for (size_t i = 0; i < gains.size(); ++i) {
      const Interval& interval = gains[i].interval;
      const double deviation = (std::log(interval.high) - std::log(interval.low)) / (2 * 1.96);
      drawn += std::log(gains[i].median) + deviation * random.Normal(i);
    }
    draws.push_back(std::exp(drawn / count));
  }
  mean.interval = {Quantile(draws, 0.025), Quantile(draws, 0.975)};
  return mean;
}

// A size of a context.
using VerifiedCase = std::pair<const PageGroup*, uint64_t>;

PageExtent ExtentOf(const std::set<VerifiedCase>& cases) {
  std::set<const PageGroup*> groups;
  std::set<uint64_t> sizes;
  for (const auto& [group, bytes] : cases) {
    groups.insert(group);
    sizes.insert(bytes);
  }
  return {groups.size(), sizes.size()};
}

// A size with a changed configuration, and its result.
struct Changed {
  const PageGroup* group = nullptr;
  uint64_t bytes = 0;
  PageFigure gain;
  bool improved = false;
  bool slower = false;
};

void Tell(const std::vector<Changed>& changed, PageHeadline* headline) {
  std::vector<PageFigure> gains;
  std::set<VerifiedCase> cases;
  for (const Changed& one : changed) {
    gains.push_back(one.gain);
    cases.insert({one.group, one.bytes});
    headline->improved += one.improved ? 1 : 0;
    headline->slower += one.slower ? 1 : 0;
    const bool few = one.gain.samples < kLeastJudged;
    headline->too_few += few ? 1 : 0;
    headline->no_difference += one.improved || one.slower || few ? 0 : 1;
    if (headline->worst.empty() || one.gain.median < headline->worst_gain.median) {
      headline->worst = one.group->context.collective;
      headline->worst_bytes = one.bytes;
      headline->worst_gain = one.gain;
    }
  }
  headline->sizes = changed.size();
  headline->changed_extent = ExtentOf(cases);
  headline->gain = GeometricMean(gains);
  // If a size is neither verified nor left alone, the total is unknown.
  if (!headline->by_policy || headline->sizes + headline->left_alone != headline->measured) return;
  gains.resize(headline->measured, {0, 1, {1, 1}});
  headline->all = GeometricMean(gains);
}

// A group with decisions of policies: only these count.
void TellPolicy(const PageGroup& group, std::vector<Changed>* changed, std::set<VerifiedCase>* left,
                PageHeadline* headline) {
  headline->by_policy = true;
  headline->measured += group.decided.size();
  for (const auto& [bytes, decided] : group.decided) {
    bool tried = false;
    bool kept = false;
    for (const PageVerified& one : group.verified) {
      if (one.bytes != bytes || one.config == 0) continue;
      tried = tried || !one.kept;
      if (!one.kept || !one.gain.known()) continue;
      kept = true;
      changed->push_back(
          {&group, bytes, one.gain, one.verdict == "faster", one.verdict == "slower"});
    }
    if (kept) continue;
    if (decided == 0) left->insert({&group, bytes});
    headline->left_alone += decided == 0 ? 1 : 0;
    headline->not_kept += decided == 0 && tried ? 1 : 0;
    headline->unverified += decided == 0 ? 0 : 1;
  }
}

// Cases in which another configuration than the default was tried, successfully or not.
std::set<VerifiedCase> TriedCases(const PageData& data) {
  std::set<VerifiedCase> tried;
  for (const PageGroup& group : data.groups) {
    for (const PageSize& size : group.sizes) {
      if (size.cells.size() > 1 || size.cells.front().config != 0)
        tried.insert({&group, size.bytes});
    }
    for (const PageVerified& one : group.verified) {
      if (one.config != 0) tried.insert({&group, one.bytes});
    }
  }
  for (const PageFailure& failure : data.failures) {
    if (failure.config != 0) tried.insert({&data.groups[failure.group], failure.bytes});
  }
  return tried;
}

PageHeadline HeadlineOf(const PageData& data, dataset::Point::Kind kind, size_t place,
                        const std::set<VerifiedCase>& tried) {
  PageHeadline headline;
  headline.place = place;
  std::vector<Changed> changed;
  std::set<VerifiedCase> left;
  std::set<VerifiedCase> measured;
  const auto counts = [&](const PageGroup& group) {
    return group.context.kind == kind && group.place == place;
  };
  for (const PageGroup& group : data.groups) {
    if (counts(group) && !group.verified.empty()) headline.verified = true;
  }
  size_t others = 0;  // sizes that no policy covers
  for (const PageGroup& group : data.groups) {
    if (!counts(group)) continue;
    for (const auto& [bytes, decided] : group.decided) measured.insert({&group, bytes});
    if (headline.verified && !group.decided.empty()) {
      TellPolicy(group, &changed, &left, &headline);
      continue;
    }
    std::set<uint64_t> told;
    for (const PageVerified& one : group.verified) {
      told.insert(one.bytes);
      others += measured.insert({&group, one.bytes}).second ? 1 : 0;
      if (one.verdict == "left alone") left.insert({&group, one.bytes});
      headline.left_alone += one.verdict == "left alone" ? 1 : 0;
      if (!one.gain.known()) continue;
      changed.push_back(
          {&group, one.bytes, one.gain, one.verdict == "faster", one.verdict == "slower"});
    }
    for (const PageSize& size : group.sizes) {
      others += measured.insert({&group, size.bytes}).second ? 1 : 0;
      if (told.contains(size.bytes)) continue;
      if (size.chosen == 0) left.insert({&group, size.bytes});
      headline.left_alone += size.chosen == 0 ? 1 : 0;
      const PageCell* const standard = size.Find(0);
      const PageCell* const chosen = size.Find(size.chosen);
      if (headline.verified || size.chosen <= 0 || standard == nullptr || chosen == nullptr) {
        continue;
      }
      const PageFigure gain = RatioOf(standard->time, chosen->time);
      const bool judged = gain.samples >= kLeastJudged;
      changed.push_back({&group, size.bytes, gain, judged && gain.interval.low > 1,
                         judged && gain.interval.high < 1});
    }
  }
  if (headline.by_policy) headline.measured += others;
  for (const VerifiedCase& one : left) headline.only_default += tried.contains(one) ? 0 : 1;
  headline.left_extent = ExtentOf(left);
  headline.measured_extent = ExtentOf(measured);
  Tell(changed, &headline);
  return headline;
}

}  // namespace

void AddVerification(const PagePart& part, ConfigBook* configs, GroupBook* groups, PageData* data) {
  std::map<dataset::Point, std::map<int, PageSide>> contexts;
  std::map<dataset::Point, std::map<int, std::pair<dataset::SampleOutcome, std::string>>> failed;
  for (const dataset::StoredSample& record : part.contents.records) {
    const dataset::Sample& sample = record.sample;
    const dataset::Point context = dataset::WithoutConfig(sample.point);
    const int config = configs->NumberOf(sample.point);
    PageSide& side = contexts[context][config];
    if (sample.outcome == dataset::SampleOutcome::kFine && std::isfinite(sample.seconds) &&
        sample.seconds > 0) {
      side.seconds[{record.run, sample.round}] = sample.seconds;
    } else {
      ++side.failures;
      failed[context][config] = {sample.outcome, sample.note};
    }
  }
  for (const auto& [context, sides] : contexts) {
    const size_t group = groups->IndexOf(part.place, context);
    const auto found = sides.find(0);
    const PageSide nothing;
    const PageSide& standard = found == sides.end() ? nothing : found->second;
    for (const auto& [config, side] : sides) {
      if (side.failures > 0) {
        const auto& [outcome, note] = failed[context][config];
        data->failures.push_back(
            {group, context.bytes, config, dataset::OutcomeName(outcome), side.failures, note});
      }
      // The default has a line of its own only if nothing was compared with it.
      if (config == 0 && sides.size() > 1) continue;
      PageVerified verified;
      verified.bytes = context.bytes;
      verified.standard = standard.Time();
      verified.config = config;
      if (config == 0) {
        verified.verdict = side.failures > 0 ? "failed" : "left alone";
      } else {
        verified.tuned = side.Time();
        for (const auto& [number, one] : {std::pair(0, &standard), std::pair(config, &side)}) {
          if (!one->seconds.empty()) {
            verified.spreads.push_back(SpreadOf(number, true, one->All()));
          }
        }
        verified.gain = GainOf(standard, side);
        verified.verdict = VerdictOf(verified.gain, side.failures + standard.failures > 0);
      }
      data->groups[group].verified.push_back(std::move(verified));
    }
  }
  for (PageGroup& group : data->groups) {
    std::stable_sort(
        group.verified.begin(), group.verified.end(),
        [](const PageVerified& a, const PageVerified& b) { return a.bytes < b.bytes; });
  }
}

std::string CasesText(size_t count, const PageExtent& extent) {
  if (extent.contexts < 2) return Count(count, "size");
  return Count(count, "case") +
         (count == extent.sizes * extent.contexts
              ? ", " + Count(extent.sizes, "size") + " in each of "
              : " in ") +
         std::to_string(extent.contexts) + " contexts";
}

std::vector<PageHeadline> MakeHeadlines(const PageData& data, dataset::Point::Kind kind) {
  // The sort key of places.
  struct Weight {
    bool policy = false;
    bool verified = false;
    double checked = 0;
    double last = 0;
    auto operator<=>(const Weight&) const = default;
  };
  std::vector<Weight> weights(data.places.size());
  for (const PageGroup& group : data.groups) {
    if (group.context.kind != kind) continue;
    Weight& weight = weights[group.place];
    weight.policy = weight.policy || !group.decided.empty();
    weight.verified = weight.verified || !group.verified.empty();
    weight.last = data.places[group.place].last;
  }
  for (const PageRun& run : data.runs) {
    Weight& weight = weights[run.place];
    if (run.source == "verify") weight.checked = std::max(weight.checked, run.started);
  }
  const std::set<VerifiedCase> tried = TriedCases(data);
  std::vector<PageHeadline> headlines;
  for (size_t place = 0; place < data.places.size(); ++place) {
    // Simulated figures count only if there are no others.
    if (data.places[place].simulated && data.simulated != data.samples) continue;
    PageHeadline headline = HeadlineOf(data, kind, place, tried);
    if (headline.tells()) headlines.push_back(std::move(headline));
  }
  std::stable_sort(headlines.begin(), headlines.end(),
                   [&](const PageHeadline& a, const PageHeadline& b) {
                     return weights[a.place] > weights[b.place];
                   });
  return headlines;
}

}  // namespace diapason::report
