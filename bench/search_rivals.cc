#include "search_rivals.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <tuple>

#include "base/random.h"
#include "base/stats.h"
#include "rivals/rival.h"
#include "search/search.h"

namespace diapason::measure {
namespace {

constexpr int64_t kMostTurns = 1000;
constexpr double kUnusable = 1e6;  // seconds, for what cannot be measured

// The best by the median of what was seen; the default where nothing was.
std::vector<size_t> FastestSeen(const Ground& ground, const search::SamplesByCandidate& known) {
  std::vector<size_t> best;
  for (size_t i = 0; i < ground.call_cases.size(); ++i) {
    size_t chosen = 0;
    double fastest = INFINITY;
    for (size_t j = 0; j < known[i].size(); ++j) {
      if (known[i][j].seconds.empty() || Median(known[i][j].seconds) >= fastest) continue;
      fastest = Median(known[i][j].seconds);
      chosen = j;
    }
    best.push_back(chosen);
  }
  return best;
}

search::SamplesByCandidate Nothing(const Ground& ground) {
  search::SamplesByCandidate known;
  for (const search::CallCase& call_case : ground.call_cases)
    known.emplace_back(call_case.candidates.size());
  return known;
}

bool SampleOne(const Ground& ground, Measurer* measurer, size_t call_case, size_t candidate,
               search::SamplesByCandidate* known) {
  Trial trial = ground.call_cases[call_case].trial;
  trial.config = ground.call_cases[call_case].candidates[candidate].config;
  trial.environment = ground.call_cases[call_case].candidates[candidate].environment;
  const Result<Measurement> measurement = measurer->Measure(trial);
  if (!measurement.ok()) return false;
  (*known)[call_case][candidate].seconds.push_back(measurement.value().seconds);
  return true;
}

Result<Choice> Blind(const Ground& ground, Measurer* measurer, int64_t, uint64_t) {
  Choice choice;
  search::SamplesByCandidate known = Nothing(ground);
  for (size_t i = 0; i < known.size(); ++i) {
    for (size_t j = 0; j < known[i].size(); ++j) {
      if (SampleOne(ground, measurer, i, j, &known)) ++choice.samples;
    }
  }
  choice.best = FastestSeen(ground, known);
  return choice;
}

Result<Choice> Exhaustive(const Ground& ground, Measurer* measurer, int64_t, uint64_t seed) {
  Choice choice;
  search::SamplesByCandidate known;
  search::SearchOptions options;
  options.seed = seed;
  options.least_samples = 1000;
  options.most_samples = 1000;
  const search::MeasurementObserver count = [&](size_t, size_t, const Measurement&) {
    return ++choice.samples > 0;
  };
  const Status status =
      search::SearchExhaustively(measurer, ground.call_cases, options, count, &known);
  if (!status.ok()) return status;
  for (const search::CaseVerdict& verdict : search::Judge(ground.call_cases, known))
    choice.best.push_back(verdict.best);
  return choice;
}

Result<Choice> Random(const Ground& ground, Measurer* measurer, int64_t budget, uint64_t seed) {
  Choice choice;
  search::SamplesByCandidate known = Nothing(ground);
  std::vector<std::tuple<uint64_t, size_t, size_t>> order;
  const CounterRandom random(seed, 1);
  for (size_t i = 0; i < known.size(); ++i) {
    for (size_t j = 0; j < known[i].size(); ++j) {
      order.emplace_back(random.Bits(order.size()), i, j);
    }
  }
  std::sort(order.begin(), order.end());
  for (const auto& [place, i, j] : order) {
    if (choice.samples == budget) break;
    if (SampleOne(ground, measurer, i, j, &known)) ++choice.samples;
  }
  choice.best = FastestSeen(ground, known);
  return choice;
}

// Every case by itself: the default and as many others as half its budget allows, then the
// better half of them again, and so on.
Result<Choice> Halving(const Ground& ground, Measurer* measurer, int64_t budget, uint64_t seed) {
  Choice choice;
  search::SamplesByCandidate known = Nothing(ground);
  const size_t call_cases = known.size();
  for (size_t i = 0; i < call_cases; ++i) {
    int64_t mine =
        budget * static_cast<int64_t>(i + 1) / static_cast<int64_t>(call_cases) - choice.samples;
    const CounterRandom random(seed, 100 + i);
    std::vector<std::pair<double, size_t>> field;
    for (size_t j = 0; j < known[i].size(); ++j) {
      field.emplace_back(j == 0 ? -1 : random.Uniform(j), j);
    }
    std::sort(field.begin(), field.end());
    field.resize(
        std::min<size_t>(field.size(), static_cast<size_t>(std::max<int64_t>(2 * mine / 3, 1))));
    while (mine > 0 && !field.empty()) {
      bool any = false;
      for (auto& [score, j] : field) {
        if (mine == 0) break;
        if (!SampleOne(ground, measurer, i, j, &known)) continue;
        any = true;
        --mine;
        ++choice.samples;
      }
      for (auto& [score, j] : field) {
        score = known[i][j].seconds.empty() ? INFINITY : Median(known[i][j].seconds);
      }
      std::sort(field.begin(), field.end());
      if (!any) break;
      field.resize((field.size() + 1) / 2);
    }
  }
  choice.best = FastestSeen(ground, known);
  return choice;
}

Result<Choice> Adaptive(const Ground& ground, Measurer* measurer, int64_t budget, uint64_t seed) {
  Choice choice;
  search::SamplesByCandidate known;
  search::SearchOptions options;
  options.samples = budget;
  options.seed = seed;
  const search::MeasurementObserver count = [&](size_t, size_t, const Measurement&) {
    return ++choice.samples > 0;
  };
  const std::clock_t start = std::clock();
  const Status status =
      search::SearchAdaptively(measurer, ground.call_cases, options, count, &known);
  choice.planning = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (!status.ok()) return status;
  for (const search::CaseVerdict& verdict : search::Judge(ground.call_cases, known))
    choice.best.push_back(verdict.best);
  return choice;
}

// A method that asks for one call after the other. A sample that was served before is told again
// where there is no fresh one, and costs nothing.
Strategy StrategyOf(const bench::RivalMaker& maker) {
  return [&maker](const Ground& ground, Measurer* measurer, int64_t budget,
                  uint64_t seed) -> Result<Choice> {
    Choice choice;
    search::SamplesByCandidate known = Nothing(ground);
    const auto cases = static_cast<int64_t>(known.size());
    for (size_t i = 0; i < known.size(); ++i) {
      const int64_t until = budget * (static_cast<int64_t>(i) + 1) / cases;
      bench::RivalTask task;
      for (const search::Candidate& one : ground.call_cases[i].candidates) {
        task.candidates.push_back(one.config);
      }
      task.seed = seed * 1000 + i;
      const std::unique_ptr<bench::Rival> rival = maker.make(task);
      // Repeats are free, so that their number has to be limited.
      for (int64_t turn = 0; turn < kMostTurns && choice.samples < until; ++turn) {
        if (rival->finished()) break;
        const size_t candidate = rival->Next();
        std::vector<double>& seconds = known[i][candidate].seconds;
        if (SampleOne(ground, measurer, i, candidate, &known)) {
          ++choice.samples;
        }
        rival->Took(candidate, seconds.empty() ? kUnusable : seconds.back());
      }
      choice.best.push_back(rival->Chosen());
    }
    return choice;
  };
}

}  // namespace

const std::vector<std::pair<std::string, Strategy>>& Strategies() {
  static const std::vector<std::pair<std::string, Strategy>> all = [] {
    std::vector<std::pair<std::string, Strategy>> strategies = {{"one blind sample", Blind},
                                                                {"exhaustive", Exhaustive},
                                                                {"random", Random},
                                                                {"halving", Halving},
                                                                {"adaptive", Adaptive}};
    for (const bench::RivalMaker& maker : bench::Rivals()) {
      strategies.emplace_back(maker.name, StrategyOf(maker));
    }
    return strategies;
  }();
  return all;
}

}  // namespace diapason::measure
