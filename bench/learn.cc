// How well contexts are learned, on simulated clusters and on recorded measurements, against
// epsilon-greedy call by call. docs/job/learning.md explains the figures.
//
//   bench_learn [--data tests/data] [--seeds 100] [--opening 8] [--only NAME] [--json FILE]
//               [--contexts]
//
// Bars, for every data set (1000 calls a context):
//   regret at most one third of epsilon-greedy's (epsilon 0.1);
//   after 200 calls the chosen arm has 0.97 of the best arm's speed (geometric mean);
//   at least 99 % of the runs end with an arm of 0.98 of the default's speed or more;
//   at most 3 % of the default's time is lost to trying (mean over contexts and seeds).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/stats.h"
#include "base/text.h"
#include "learn_runs.h"
#include "report/table.h"

namespace diapason::learn {
namespace {

using report::Table;

constexpr double kBarRegret = 1.0 / 3;
constexpr double kBarShare = 0.97;
constexpr double kBarSafe = 0.99;
constexpr double kSafe = 0.98;
constexpr double kBarLost = 0.03;
constexpr double kEpsilon = 0.1;
constexpr uint64_t kLongCalls = 40000;
constexpr uint64_t kLongSeeds = 3;

struct Arguments {
  std::string data = "tests/data";
  std::string only;
  std::string json;
  uint64_t seeds = 100;
  uint64_t opening = 8;  // calls of epochs 0 and 1 each
  bool contexts = false;
};

struct Score {
  double regret = 0;  // sums, over contexts and seeds
  double lost = 0;
  double most_lost = 0;
  double log_200 = 0;
  double log_end = 0;
  double safe_200 = 0;
  double safe = 0;
  double changed = 0;
  double runs = 0;
  std::vector<double> good_after_calls;  // by run
  std::vector<double> good_after_time;

  void Add(const Ground& ground, const Outcome& outcome) {
    regret += outcome.regret;
    lost += outcome.lost / kCalls;
    most_lost = std::max(most_lost, outcome.lost / kCalls);
    log_200 += std::log(ground.BestRatio() / outcome.chosen_200);
    log_end += std::log(ground.BestRatio() / outcome.chosen);
    safe_200 += outcome.chosen_200 * kSafe <= 1 ? 1 : 0;
    safe += outcome.chosen * kSafe <= 1 ? 1 : 0;
    changed += outcome.changed ? 1 : 0;
    runs += 1;
    good_after_calls.push_back(outcome.good_after_calls);
    good_after_time.push_back(outcome.good_after_time);
  }
  void Add(const Score& other) {
    regret += other.regret;
    lost += other.lost;
    most_lost = std::max(most_lost, other.most_lost);
    log_200 += other.log_200;
    log_end += other.log_end;
    safe_200 += other.safe_200;
    safe += other.safe;
    changed += other.changed;
    runs += other.runs;
    const auto append = [](const std::vector<double>& from, std::vector<double>* to) {
      to->insert(to->end(), from.begin(), from.end());
    };
    append(other.good_after_calls, &good_after_calls);
    append(other.good_after_time, &good_after_time);
  }
  // Of the runs that do not end with a good choice.
  double NeverGood() const {
    return static_cast<double>(
               std::count(good_after_calls.begin(), good_after_calls.end(), INFINITY)) /
           runs;
  }
  double Share200() const { return std::exp(log_200 / runs); }
  double Share() const { return std::exp(log_end / runs); }
};

using Runner = std::function<Outcome(const Ground&, uint64_t seed)>;
struct ArmConfig {
  std::string name;
  uint64_t part = 1;  // of the seeds, one in so many; 0: one run
  Runner run;
};

Runner RunnerOf(Strategy strategy, uint64_t opening) {
  return [strategy, opening](const Ground& ground, uint64_t seed) {
    LearnOptions options;
    options.strategy = strategy;
    options.epsilon = kEpsilon;
    options.seed = seed;
    return RunLearner(ground, options, opening);
  };
}

std::vector<ArmConfig> Contenders(uint64_t opening) {
  std::vector<ArmConfig> contenders = {
      {"elimination", 1, RunnerOf(Strategy::kElimination, opening)},
      {"epsilon-greedy, call by call", 1,
       [](const Ground& ground, uint64_t seed) { return RunGreedy(ground, kEpsilon, seed); }},
      {"thompson", 4, RunnerOf(Strategy::kThompson, opening)},
      {"epsilon, in blocks", 4, RunnerOf(Strategy::kEpsilon, opening)},
      {"always the default", 0, [](const Ground& ground, uint64_t) { return RunFixed(ground, 0); }},
      {"best fixed arm", 0, [](const Ground& ground, uint64_t) {
         size_t best = 0;
         for (size_t i = 1; i < ground.arms.size(); ++i) {
           if (ground.arms[i].ratio < ground.arms[best].ratio) best = i;
         }
         return RunFixed(ground, best);
       }}};
  for (const bench::RivalMaker& maker : bench::Rivals()) {
    contenders.push_back({maker.name, 4, [&maker](const Ground& ground, uint64_t seed) {
                            return RunRival(ground, maker, seed);
                          }});
  }
  return contenders;
}

// One score per context; both halves of the seeds at once.
std::vector<Score> Evaluate(const DataSet& set, const ArmConfig& candidate, uint64_t seeds) {
  const uint64_t runs = candidate.part == 0 ? 1 : (seeds + candidate.part - 1) / candidate.part;
  std::vector<std::vector<Score>> halves(2, std::vector<Score>(set.grounds.size()));
  const auto work = [&](uint64_t half) {
    for (size_t i = 0; i < set.grounds.size(); ++i) {
      for (uint64_t seed = 1 + half; seed <= runs; seed += 2) {
        const uint64_t own = seed * 1000 + i;
        halves[half][i].Add(set.grounds[i], candidate.run(set.grounds[i], own));
      }
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (size_t i = 0; i < set.grounds.size(); ++i) halves[0][i].Add(halves[1][i]);
  return halves[0];
}

Score Sum(const std::vector<Score>& scores) {
  Score sum;
  for (const Score& score : scores) sum.Add(score);
  return sum;
}

std::string JsonLine(const DataSet& set, const std::string& name, const Score& score) {
  return Format(
      "  {{\"data\": \"{}\", \"strategy\": \"{}\", \"contexts\": {}, \"runs\": {:.0f}, "
      "\"regret_calls\": {:.3f}, \"share_of_best_200\": {:.5f}, \"share_of_best_1000\": {:.5f}, "
      "\"safe_200\": {:.5f}, \"safe_1000\": {:.5f}, \"lost_share\": {:.5f}, \"most_lost_share\": "
      "{:.5f}, \"never_good\": {:.5f}}}",
      set.name, name, set.grounds.size(), score.runs, score.regret / score.runs, score.Share200(),
      score.Share(), score.safe_200 / score.runs, score.safe / score.runs, score.lost / score.runs,
      score.most_lost, score.NeverGood());
}

void PrintContexts(const DataSet& set, const std::vector<Score>& ours,
                   const std::vector<Score>& greedy) {
  for (size_t i = 0; i < set.grounds.size(); ++i) {
    const Ground& ground = set.grounds[i];
    std::printf(
        "  %-34s best %.2f  regret %6.1f of %6.1f  chosen %.3f %.3f  safe %.2f  lost %.1f %%",
        ground.name.c_str(), ground.BestRatio(), ours[i].regret / ours[i].runs,
        greedy[i].regret / greedy[i].runs, ours[i].Share200(), ours[i].Share(),
        ours[i].safe / ours[i].runs, 100 * ours[i].lost / ours[i].runs);
    for (const Ground::Arm& arm : ground.arms) std::printf(" %.2f/%.1f", arm.ratio, arm.estimate);
    std::printf("\n");
  }
}

std::string Within(const std::vector<double>& values, double share) {
  const double quantile = Quantile(values, share);
  return std::isfinite(quantile) ? Format("{:.0f}", quantile) : "never";
}

// The three quarters that are reached first are what a user can rely on.
std::string Typical(const std::vector<double>& values) { return Within(values, 0.75); }

// When contexts settle, and what looking for drift costs from then on.
void PrintSettling(const DataSet& set, const Arguments& arguments) {
  std::vector<double> settled;
  Settling all;
  for (size_t i = 0; i < set.grounds.size(); ++i) {
    for (uint64_t seed = 1; seed <= kLongSeeds; ++seed) {
      LearnOptions options;
      options.seed = seed * 1000 + i;
      const Settling one = RunLong(set.grounds[i], options, arguments.opening, kLongCalls);
      settled.push_back(one.settled_after);
      all.calls += one.calls;
      all.looking += one.looking;
      all.lost += one.lost;
    }
  }
  std::printf(
      "settled after %s calls in half of the runs, %s in three quarters (of %llu calls); of the "
      "calls from then on %.3f %% look for drift, which takes %.3f %% of the time\n",
      Within(settled, 0.5).c_str(), Within(settled, 0.75).c_str(),
      static_cast<unsigned long long>(kLongCalls), 100 * all.looking / all.calls,
      100 * all.lost / all.calls);
}

struct Verdict {
  std::string json;
  bool met = true;
};

void RunSet(const DataSet& set, const Arguments& arguments, Verdict* verdict) {
  Table table({"strategy", "regret, calls", "of the greedy's", "of best, 200", "of best, 1000",
               "safe, 200", "safe, 1000", "lost", "most lost", "0.97 after, calls", "in time",
               "never", "changed"});
  table.SetAlign(std::vector<Table::Align>(13, Table::Align::kRight));
  std::vector<std::vector<Score>> scores;
  const std::vector<ArmConfig> candidates = Contenders(arguments.opening);
  for (const ArmConfig& candidate : candidates) {
    scores.push_back(Evaluate(set, candidate, arguments.seeds));
  }
  const Score greedy = Sum(scores[1]);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Score score = Sum(scores[i]);
    const double mean = score.regret / score.runs;
    table.Add({candidates[i].name, Format("{:.1f}", mean),
               Format("{:.3f}", mean / (greedy.regret / greedy.runs)),
               Format("{:.4f}", score.Share200()), Format("{:.4f}", score.Share()),
               Format("{:.2f} %", 100 * score.safe_200 / score.runs),
               Format("{:.2f} %", 100 * score.safe / score.runs),
               Format("{:.2f} %", 100 * score.lost / score.runs),
               Format("{:.2f} %", 100 * score.most_lost), Typical(score.good_after_calls),
               Typical(score.good_after_time), Format("{:.1f} %", 100 * score.NeverGood()),
               Format("{:.1f} %", 100 * score.changed / score.runs)});
    if (!verdict->json.empty()) verdict->json += ",\n";
    verdict->json += JsonLine(set, candidates[i].name, score);
  }
  std::printf("%s: %zu contexts, %llu seeds (%s)\n%s", set.name.c_str(), set.grounds.size(),
              static_cast<unsigned long long>(arguments.seeds), set.what.c_str(),
              table.Text().c_str());
  if (arguments.contexts) PrintContexts(set, scores[0], scores[1]);
  PrintSettling(set, arguments);
  const Score ours = Sum(scores[0]);
  const bool regret = ours.regret / ours.runs <= kBarRegret * greedy.regret / greedy.runs;
  const bool share = ours.Share200() >= kBarShare;
  const bool safe = std::min(ours.safe, ours.safe_200) / ours.runs >= kBarSafe;
  const bool lost = ours.lost / ours.runs <= kBarLost;
  const auto word = [](bool met) { return met ? "met" : "NOT met"; };
  std::printf("bars: regret %s, of best %s, safe %s, lost %s\n\n", word(regret), word(share),
              word(safe), word(lost));
  verdict->met = verdict->met && regret && share && safe && lost;
}

Result<Arguments> ParseArguments(int count, char** words) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string name = words[i];
    if (name == "--contexts") {
      arguments.contexts = true;
      continue;
    }
    if (i + 1 == count) return Invalid(name + " needs a value");
    const std::string value = words[++i];
    if (name == "--data") {
      arguments.data = value;
    } else if (name == "--only") {
      arguments.only = value;
    } else if (name == "--json") {
      arguments.json = value;
    } else if (name == "--opening") {
      if (!ParseUnsigned(value, &arguments.opening) || arguments.opening < 1 ||
          arguments.opening > 100) {
        return Invalid("--opening is a number from 1 to 100");
      }
    } else if (name == "--seeds") {
      if (!ParseUnsigned(value, &arguments.seeds) || arguments.seeds < 2 ||
          arguments.seeds > 100000) {
        return Invalid("--seeds is a number from 2 to 100000");
      }
    } else {
      return Invalid(
          "unknown option '" + name + "'" +
          Suggestion(name, {"--data", "--only", "--json", "--seeds", "--opening", "--contexts"}));
    }
  }
  return arguments;
}

Status Main(int count, char** words, bool* met) {
  const Result<Arguments> parsed = ParseArguments(count, words);
  if (!parsed.ok()) return parsed.status();
  const Arguments& arguments = parsed.value();
  const std::string measurements = arguments.data + "/measurements/";
  const auto job = [&](const std::string& machine, const std::string& name, const JobNoise& noise) {
    const bool h200 = machine == "h200";
    return JobGrounds(measurements + (h200 ? "h200_lab_nccl.csv" : "mi355x_allreduce_1n_2n.csv"),
                      name, noise);
  };
  const std::vector<std::pair<std::string, std::function<Result<DataSet>()>>> sets = {
      {"simulated", [] { return SimulatedGrounds(); }},
      {"heldout", [] { return HeldOutGrounds(); }},
      {"h200", [&] { return RecordedGrounds(measurements + "h200_lab_nccl.csv", "h200", false); }},
      {"h200-own",
       [&] { return RecordedGrounds(measurements + "h200_lab_nccl.csv", "h200-own", true); }},
      {"mi355x",
       [&] {
         return RecordedGrounds(measurements + "mi355x_allreduce_1n_2n.csv", "mi355x", false);
       }},
      {"mi355x-own",
       [&] {
         return RecordedGrounds(measurements + "mi355x_allreduce_1n_2n.csv", "mi355x-own", true);
       }},
      {"h200-job", [&] { return job("h200", "h200-job", {}); }},
      {"h200-noisy", [&] { return job("h200", "h200-noisy", {.noise = 0.25}); }},
      {"h200-step", [&] { return job("h200", "h200-step", {.noise = 0.1, .reporting = 1}); }},
      {"h200-null",
       [&] {
         return job("h200", "h200-null", {0.1, 1, true});
       }},
      {"mi355x-job", [&] { return job("mi355x", "mi355x-job", {}); }},
      {"mi355x-noisy", [&] { return job("mi355x", "mi355x-noisy", {.noise = 0.25}); }},
      {"mi355x-step", [&] { return job("mi355x", "mi355x-step", {.noise = 0.1, .reporting = 1}); }},
      {"mi355x-null",
       [&] {
         return job("mi355x", "mi355x-null", {0.1, 1, true});
       }},
      {"lab", [&] { return TableGrounds(arguments.data + "/gpu-lab/allreduce_4ranks.csv"); }}};
  Verdict verdict;
  for (const auto& [name, make] : sets) {
    if (!arguments.only.empty() && arguments.only != name) continue;
    const Result<DataSet> set = make();
    if (!set.ok()) return set.status();
    RunSet(set.value(), arguments, &verdict);
  }
  if (verdict.json.empty()) return Invalid("there is no data set '" + arguments.only + "'");
  *met = verdict.met;
  if (arguments.json.empty()) return {};
  return WriteFileAtomically(arguments.json, "[\n" + verdict.json + "\n]\n");
}

}  // namespace
}  // namespace diapason::learn

int main(int count, char** words) {
  bool met = true;
  const diapason::Status status = diapason::learn::Main(count, words, &met);
  if (!status.ok()) {
    std::fprintf(stderr, "bench_learn: %s\n", status.message().c_str());
    return 1;
  }
  return met ? 0 : 1;
}
