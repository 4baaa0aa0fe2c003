// How good searches are that see a part of a grid of measurements, judged on repeats they did not
// see. docs/internals/search.md explains the figures.
//
//   bench_search --grid FILE.csv [--budget 15%] [--seeds 200] [--simulated-seeds 10]
//                [--ladder-seeds 20] [--only adaptive]
//
// The file has the columns num_nodes, num_gpus, collective, size_bytes, algo, proto, nchannels,
// repeat and busbw_ip, in any order; DEFAULT rows are what the library chose itself.
//
// Bar: with 15 % of the samples, at least 0.985 of the best (geometric mean over contexts) and 0.85
// in the worst context.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/random.h"
#include "base/stats.h"
#include "base/text.h"
#include "report/table.h"
#include "search_grids.h"
#include "search_rivals.h"

namespace diapason::measure {
namespace {

using dataset::Sample;
using report::Table;

constexpr double kBarMean = 0.985;
constexpr double kBarWorst = 0.85;
constexpr double kGood = 0.97;

struct Options {
  std::string grid;
  double budget = 0.15;
  int seeds = 200;
  int simulated_seeds = 10;
  int ladder_seeds = 20;
  std::string only;  // one strategy
};

// Which samples a search may see.
using Visible = std::function<bool(const Sample&)>;

// Shares of the best, over contexts.
struct Shares {
  double log_sum = 0;
  size_t count = 0;
  double worst = INFINITY;

  void Add(double share) {
    log_sum += std::log(share);
    worst = std::min(worst, share);
    ++count;
  }
  double Mean() const { return std::exp(log_sum / static_cast<double>(count)); }
  bool Met() const { return Mean() >= kBarMean && worst >= kBarWorst; }
};

// What came of one search, over all subjects of a grid.
struct Score {
  Shares held_out;  // by the mean bandwidth of the repeats that were not seen
  Shares typical;   // by the median of all repeats
  int64_t samples = 0;
  int64_t all = 0;
  double planning = 0;
  double seconds = 0;  // that the measurements took
};

// What candidates are worth: bandwidths, or anything in proportion.
struct Worth {
  std::map<dataset::Point, double> held_out;
  std::map<dataset::Point, double> typical;
};

Worth Appraise(const Ground& ground, const Visible& visible) {
  Worth worth;
  for (const auto& [point, seconds] : ground.truth) {
    worth.held_out[point] = worth.typical[point] = 1 / seconds;
  }
  if (!ground.truth.empty()) return worth;
  std::map<dataset::Point, std::vector<double>> held_out;
  std::map<dataset::Point, std::vector<double>> all;
  for (const dataset::StoredSample& record : ground.contents.records) {
    const Sample& sample = record.sample;
    all[sample.point].push_back(1 / sample.seconds);
    if (!visible(sample)) held_out[sample.point].push_back(1 / sample.seconds);
  }
  for (const auto& [point, rates] : all) worth.typical[point] = Median(rates);
  for (const auto& [point, rates] : held_out) {
    double sum = 0;
    for (const double rate : rates) sum += rate;
    worth.held_out[point] = sum / static_cast<double>(rates.size());
  }
  return worth;
}

double ShareOfBest(const std::vector<dataset::Point>& candidates, size_t chosen,
                   const std::map<dataset::Point, double>& worth) {
  double best = 0;
  for (const dataset::Point& point : candidates) {
    const auto place = worth.find(point);
    if (place != worth.end()) best = std::max(best, place->second);
  }
  const auto place = worth.find(candidates[chosen]);
  return place == worth.end() ? 0 : place->second / best;
}

Status Evaluate(const Ground& ground, const Strategy& strategy, const Visible& visible,
                const Options& options, uint64_t seed, Score* score) {
  search::ReplayOptions replayed;
  replayed.allowed = visible;
  replayed.shuffle = seed;
  auto replay = search::ReplayMeasurer::Create(ground.contents, ground.subject, replayed);
  if (!replay.ok()) return replay.status();
  int64_t all = 0;
  for (const dataset::StoredSample& record : ground.contents.records) {
    const dataset::Point& point = record.sample.point;
    all += point.nodes == ground.subject.nodes && point.ranks == ground.subject.ranks ? 1 : 0;
  }
  const auto budget = static_cast<int64_t>(options.budget * static_cast<double>(all));
  const Result<Choice> choice = strategy(ground, replay.value().get(), budget, seed);
  if (!choice.ok()) return choice.status();
  const Worth worth = Appraise(ground, visible);
  for (size_t i = 0; i < ground.call_cases.size(); ++i) {
    std::vector<dataset::Point> points;
    for (const search::Candidate& candidate : ground.call_cases[i].candidates) {
      Trial trial = ground.call_cases[i].trial;
      trial.config = candidate.config;
      trial.environment = candidate.environment;
      points.push_back(PointOf(trial, ground.subject));
    }
    const size_t best = choice.value().best[i];
    score->held_out.Add(ShareOfBest(points, best, worth.held_out));
    score->typical.Add(ShareOfBest(points, best, worth.typical));
  }
  score->samples += choice.value().samples;
  score->all += all;
  score->planning += choice.value().planning;
  score->seconds += replay.value()->Now();
  return {};
}

// A line of a table for many runs of one search.
void AddLine(const std::string& what, const std::string& strategy, const std::vector<Score>& scores,
             Shares Score::*judged, Table* table) {
  std::vector<double> means;
  std::vector<double> worsts;
  double share = 0;
  double met = 0;
  for (const Score& score : scores) {
    means.push_back((score.*judged).Mean());
    worsts.push_back((score.*judged).worst);
    share += static_cast<double>(score.samples) / static_cast<double>(score.all);
    met += (score.*judged).Met() ? 1 : 0;
  }
  const auto runs = static_cast<double>(scores.size());
  table->Add({what, strategy, Format("{:.1f} %", 100 * share / runs),
              Format("{:.4f}", Median(means)), Format("{:.4f}", Quantile(means, 0.05)),
              Format("{:.4f}", Quantile(means, 0)), Format("{:.3f}", Median(worsts)),
              Format("{:.3f}", Quantile(worsts, 0.05)), Format("{:.3f}", Quantile(worsts, 0)),
              Format("{:.0f} %", 100 * met / runs)});
}

Table NewTable(const std::string& what) {
  Table table({what, "search", "samples", "mean", "5 %", "least", "worst", "5 %", "least", "bar"});
  std::vector<Table::Align> aligns(10, Table::Align::kRight);
  aligns[0] = aligns[1] = Table::Align::kLeft;
  table.SetAlign(aligns);
  return table;
}

// One repeat of every point, drawn by the seed: the only one that is seen, or that is not.
Visible Drawn(uint64_t seed, const std::vector<int>& rounds, bool seen) {
  return [seed, rounds, seen](const Sample& sample) {
    dataset::Point point = sample.point;
    const std::string name =
        Format("{} {} {} {} ", point.collective, point.bytes, point.nodes, point.ranks) +
        point.ConfigText();
    const CounterRandom random(seed, std::hash<std::string>{}(name));
    return (sample.round == rounds[random.Bits(0) % rounds.size()]) == seen;
  };
}

struct Protocol {
  std::string name;
  bool drawn = false;
  std::function<Visible(uint64_t seed)> visible;
};

std::vector<Protocol> Protocols(const std::vector<int>& rounds) {
  std::vector<Protocol> protocols;
  for (const int round : rounds) {
    const Visible only = [round](const Sample& sample) { return sample.round == round; };
    protocols.push_back({Format("repeat {}", round), false, [only](uint64_t) { return only; }});
  }
  for (const bool seen : {true, false}) {
    protocols.push_back({seen ? "one, drawn" : "all but one", true,
                         [rounds, seen](uint64_t seed) { return Drawn(seed, rounds, seen); }});
  }
  return protocols;
}

Status RunGrid(const Options& options) {
  const Result<std::vector<Ground>> grounds = ReadGrid(options.grid);
  if (!grounds.ok()) return grounds.status();
  std::set<int> rounds;
  for (const Ground& ground : grounds.value()) {
    for (const dataset::StoredSample& record : ground.contents.records) {
      rounds.insert(record.sample.round);
    }
  }
  if (rounds.size() < 2) return Invalid("the grid has no repeats to judge by");
  Table held_out = NewTable("seen");
  Table typical = NewTable("seen");
  double planning = 0;
  int64_t planned = 0;
  for (const auto& [name, strategy] : Strategies()) {
    if (!options.only.empty() && options.only != name) continue;
    const bool seedless = name == "one blind sample" || name == "exhaustive";
    for (const Protocol& protocol : Protocols({rounds.begin(), rounds.end()})) {
      std::vector<Score> scores;
      const int runs = seedless && !protocol.drawn ? 1 : options.seeds;
      for (uint64_t seed = 1; seed <= static_cast<uint64_t>(runs); ++seed) {
        Score score;
        for (const Ground& ground : grounds.value()) {
          const Status status =
              Evaluate(ground, strategy, protocol.visible(seed), options, seed, &score);
          if (!status.ok()) return status;
        }
        if (score.planning > 0) planned += score.samples;
        planning += score.planning;
        scores.push_back(score);
      }
      AddLine(protocol.name, name, scores, &Score::held_out, &held_out);
      AddLine(protocol.name, name, scores, &Score::typical, &typical);
    }
  }
  std::printf("Judged on the repeats that were not seen (%d seeds):\n%s\n", options.seeds,
              held_out.Text().c_str());
  std::printf("The same choices, judged on the median of all repeats:\n%s\n",
              typical.Text().c_str());
  if (planned > 0) {
    std::printf("Planning, adaptive: %.2f ms of processor time a sample.\n\n",
                planning / static_cast<double>(planned) * 1e3);
  }
  return {};
}

// All searches with budgets from few samples to many: what each of them reaches, and with how much
// it first has kGood of the best. All repeats but one, drawn, are seen; judged by the median of
// all, because a single repeat is too noisy to tell 0.97 from 1.
Status RunLadder(const Options& options) {
  const Result<std::vector<Ground>> grounds = ReadGrid(options.grid);
  if (!grounds.ok()) return grounds.status();
  std::set<int> rounds;
  for (const Ground& ground : grounds.value()) {
    for (const dataset::StoredSample& record : ground.contents.records) {
      rounds.insert(record.sample.round);
    }
  }
  const std::vector<double> budgets = {0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5};
  std::vector<std::string> titles = {"search"};
  for (const double budget : budgets) titles.push_back(Format("{:.0f} %", 100 * budget));
  titles.insert(titles.end(), {"0.97 with", "in seconds", "regret"});
  Table table(titles);
  std::vector<Table::Align> aligns(titles.size(), Table::Align::kRight);
  aligns[0] = Table::Align::kLeft;
  table.SetAlign(aligns);
  for (const auto& [name, strategy] : Strategies()) {
    if (name == "one blind sample" || name == "exhaustive") continue;  // they have no budget
    if (!options.only.empty() && options.only != name) continue;
    std::vector<std::string> cells = {name};
    std::string samples = "never";
    std::string seconds = "";
    double regret = 0;
    for (const double budget : budgets) {
      Options own = options;
      own.budget = budget;
      Score all;
      for (uint64_t seed = 1; seed <= static_cast<uint64_t>(options.ladder_seeds); ++seed) {
        for (const Ground& ground : grounds.value()) {
          const Visible visible = Drawn(seed, {rounds.begin(), rounds.end()}, false);
          RETURN_IF_ERROR(Evaluate(ground, strategy, visible, own, seed, &all));
        }
      }
      cells.push_back(Format("{:.4f}", all.typical.Mean()));
      regret += (1 - all.typical.Mean()) / static_cast<double>(budgets.size());
      if (samples != "never" || all.typical.Mean() < kGood) continue;
      samples = Format("{} samples", all.samples / options.ladder_seeds);
      seconds = Format("{:.3g}", all.seconds / options.ladder_seeds);
    }
    cells.insert(cells.end(), {samples, seconds, Format("{:.4f}", regret)});
    table.Add(cells);
  }
  std::printf(
      "Share of the best with a part of the samples (%d seeds; regret: the mean distance from 1):\n"
      "%s\n",
      options.ladder_seeds, table.Text().c_str());
  return {};
}

Status RunSimulated(const Options& options) {
  const std::vector<std::pair<Collective, Operation>> collectives = {
      {Collective::kAllReduce, Operation::kAllReduce},
      {Collective::kAllGather, Operation::kAllGather},
      {Collective::kReduceScatter, Operation::kReduceScatter},
      {Collective::kBroadcast, Operation::kBroadcast},
      {Collective::kReduce, Operation::kReduce}};
  Table table = NewTable("simulated cluster");
  for (const auto& [name, strategy] : Strategies()) {
    if (!options.only.empty() && options.only != name) continue;
    std::vector<Score> all;
    for (const std::string cluster : {"h100x8", "a100x8", "h100x8x4", "mi355x8x2", "lab"}) {
      std::vector<Score> scores;
      for (const auto& [collective, operation] : collectives) {
        for (uint64_t seed = 1; seed <= static_cast<uint64_t>(options.simulated_seeds); ++seed) {
          const Result<Ground> ground = SimulateGrid(cluster, collective, operation, seed);
          if (!ground.ok()) return ground.status();
          Score score;
          const Visible everything = [](const Sample&) { return true; };
          const Status status =
              Evaluate(ground.value(), strategy, everything, options, seed, &score);
          if (!status.ok()) return status;
          scores.push_back(score);
        }
      }
      AddLine(cluster, name, scores, &Score::held_out, &table);
      all.insert(all.end(), scores.begin(), scores.end());
    }
    AddLine("all", name, all, &Score::held_out, &table);
  }
  std::printf("SIMULATED, %zu collectives, %d seeds each, judged on the times without noise:\n%s",
              collectives.size(), options.simulated_seeds, table.Text().c_str());
  return {};
}

Result<Options> ParseOptions(int count, char** words) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string name = words[i];
    if (i + 1 == count) return Invalid(name + " needs a value");
    std::string value = words[i + 1];
    if (name == "--grid" || name == "--only") {
      (name == "--grid" ? options.grid : options.only) = value;
      continue;
    }
    const bool percent = value.ends_with('%');
    if (percent) value.pop_back();
    const Result<double> number = ParseNumber(value);
    if (!number.ok()) return number.status().WithContext(name);
    if (name == "--budget") {
      options.budget = number.value() / (percent ? 100 : 1);
      if (!(options.budget > 0 && options.budget <= 1)) return Invalid("--budget is up to 100%");
    } else if (name == "--seeds") {
      options.seeds = std::clamp(static_cast<int>(number.value()), 0, 100000);
    } else if (name == "--ladder-seeds") {
      options.ladder_seeds = std::clamp(static_cast<int>(number.value()), 0, 100000);
    } else if (name == "--simulated-seeds") {
      options.simulated_seeds = std::clamp(static_cast<int>(number.value()), 0, 100000);
    } else {
      return Invalid("unknown option '" + name + "'" +
                     Suggestion(name, {"--grid", "--budget", "--seeds", "--simulated-seeds",
                                       "--ladder-seeds", "--only"}));
    }
  }
  return options;
}

Status Main(int count, char** words) {
  const Result<Options> options = ParseOptions(count, words);
  if (!options.ok()) return options.status();
  const auto known = [&](const auto& one) { return one.first == options.value().only; };
  if (!options.value().only.empty() &&
      std::none_of(Strategies().begin(), Strategies().end(), known)) {
    return Invalid("unknown search '" + options.value().only + "'");
  }
  if (!options.value().grid.empty() && options.value().seeds > 0) {
    if (Status status = RunGrid(options.value()); !status.ok()) return status;
  }
  if (!options.value().grid.empty() && options.value().ladder_seeds > 0) {
    RETURN_IF_ERROR(RunLadder(options.value()));
  }
  if (options.value().simulated_seeds > 0) return RunSimulated(options.value());
  return {};
}

}  // namespace
}  // namespace diapason::measure

int main(int count, char** words) {
  const diapason::Status status = diapason::measure::Main(count, words);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_search: %s\n", status.message().c_str());
  return 1;
}
