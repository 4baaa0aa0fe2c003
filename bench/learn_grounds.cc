#include "learn_grounds.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

#include "base/file.h"
#include "base/random.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "comm/backends/sim/cluster.h"
#include "comm/backends/sim/library.h"

namespace diapason::learn {
namespace {

using comm::sim::Cluster;
using comm::sim::RankLayout;

// Times around their mean, 1.
std::vector<float> LogNormal(double sigma, double spike_share, uint64_t seed) {
  const CounterRandom random(seed, 77);
  std::vector<double> times;
  double sum = 0;
  for (uint64_t i = 0; i < kFactors; ++i) {
    double time = std::exp(sigma * random.Normal(4 * i));
    if (random.Uniform(4 * i + 1) < spike_share) time *= 2 + 3 * random.Uniform(4 * i + 2);
    times.push_back(time);
    sum += time;
  }
  std::vector<float> factors;
  factors.reserve(times.size());
  for (const double time : times) factors.push_back(static_cast<float>(time * kFactors / sum));
  return factors;
}

// What the library believes of a pair, as a multiple of what it believes of its own choice.
double LibraryEstimate(const Cluster& cluster, const RankLayout& layout, Collective collective,
                       uint64_t bytes, const Config& config) {
  double least = INFINITY;
  double wanted = -1;
  for (const int algorithm : Algorithms(cluster.library, collective)) {
    for (const int protocol : Protocols(cluster.library)) {
      if (!comm::sim::WhyNotOffered(cluster, layout, collective, algorithm, protocol).empty()) {
        continue;
      }
      const double cost =
          comm::sim::FormulaMicros(cluster, layout, collective, bytes, algorithm, protocol);
      if (cost <= 0) continue;
      least = std::min(least, cost);
      if (algorithm == config.algorithm && protocol == config.protocol) wanted = cost;
    }
  }
  return wanted > 0 ? wanted / least : 0;
}

// At most kMostArms - 1 of them, without a look at their times: every pair with its usual number of
// channels (0, or the most there is), then with half, a quarter and so on.
std::vector<Config> Thinned(std::vector<Config> configs) {
  std::map<std::pair<int, int>, std::vector<Config>> pairs;
  for (const Config& config : configs) {
    pairs[{config.algorithm, config.protocol}].push_back(config);
  }
  std::vector<Config> chosen;
  for (double share = 1; share > 0.01 && chosen.size() < kMostArms - 1; share /= 2) {
    for (auto& [pair, all] : pairs) {
      if (all.empty() || chosen.size() == kMostArms - 1) continue;
      int most = 0;
      for (const Config& config : configs) {
        if (std::pair(config.algorithm, config.protocol) == pair) {
          most = std::max(most, config.channels);
        }
      }
      const auto distance = [&](const Config& config) {
        if (config.channels == 0) return share == 1 ? -1.0 : 1e9;
        return std::abs(std::log(config.channels / (share * most)));
      };
      const auto nearest = std::min_element(
          all.begin(), all.end(),
          [&](const Config& a, const Config& b) { return distance(a) < distance(b); });
      chosen.push_back(*nearest);
      all.erase(nearest);
    }
  }
  return chosen;
}

struct Row {
  double median = 0;
  std::vector<double> samples;
};
using Table = std::map<std::tuple<int, int, int, int64_t>, Row>;

Config ConfigOf(const Table::key_type& key) {
  Config config;
  std::tie(config.algorithm, config.protocol, config.channels, config.segment_bytes) = key;
  return config;
}

Result<double> Number(std::string_view text) {
  const std::string copy(Trim(text));
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0') return Invalid("'" + copy + "' is not a number");
  return value;
}

// The columns of a CSV text by their titles.
class Csv {
 public:
  static Result<Csv> Read(const std::string& path) {
    Result<std::string> text = ReadFile(path, size_t{1} << 28);
    if (!text.ok()) return text.status();
    Csv csv;
    for (const std::string_view line : Split(text.value(), '\n')) {
      if (Trim(line).empty() || Trim(line).front() == '#') continue;
      std::vector<std::string> cells;
      for (const std::string_view cell : Split(Trim(line), ',')) cells.emplace_back(Trim(cell));
      if (csv.titles_.empty()) {
        csv.titles_ = cells;
      } else if (cells.size() == csv.titles_.size()) {
        csv.rows_.push_back(cells);
      } else {
        return Invalid(path + ": a line with another number of columns: " + std::string(line));
      }
    }
    return csv;
  }
  size_t size() const { return rows_.size(); }
  bool Has(std::string_view title) const {
    return std::find(titles_.begin(), titles_.end(), title) != titles_.end();
  }
  const std::string& Cell(size_t row, std::string_view title) const {
    static const std::string nothing;
    const auto place = std::find(titles_.begin(), titles_.end(), title);
    if (place == titles_.end()) return nothing;
    return rows_[row][static_cast<size_t>(place - titles_.begin())];
  }
  double Value(size_t row, std::string_view title) const {
    const Result<double> number = Number(Cell(row, title));
    return number.ok() ? number.value() : NAN;
  }

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

Ground MakeGround(const std::string& name, const Table& table, bool own) {
  Ground ground;
  ground.name = name;
  std::vector<float> pooled;
  double sum = 0;
  for (const auto& [key, row] : table) {
    for (const double sample : row.samples) {
      pooled.push_back(static_cast<float>(sample / row.median));
      sum += pooled.back();
    }
  }
  for (float& factor : pooled) factor *= static_cast<float>(pooled.size() / sum);
  std::vector<Config> configs;
  for (const auto& [key, row] : table) {
    if (!ConfigOf(key).IsDefault()) configs.push_back(ConfigOf(key));
  }
  configs = Thinned(configs);
  configs.insert(configs.begin(), Config{});
  double default_time = 0;
  for (const Config& config : configs) {
    const Row& row =
        table.at({config.algorithm, config.protocol, config.channels, config.segment_bytes});
    const double mean = Mean(row.samples);
    const double time = own ? mean : row.median;
    if (config.IsDefault()) default_time = time;
    Ground::Arm arm;
    arm.config = config;
    arm.ratio = time / default_time;
    arm.factors = pooled;
    if (own) {
      arm.factors.clear();
      for (const double sample : row.samples) {
        arm.factors.push_back(static_cast<float>(sample / mean));
      }
    }
    ground.arms.push_back(arm);
  }
  return ground;
}

}  // namespace

bool Usual(const Config& config, const std::vector<Config>& configs) {
  return std::all_of(configs.begin(), configs.end(), [&](const Config& other) {
    if (other.algorithm != config.algorithm || other.protocol != config.protocol) return true;
    if (other.channels == 0 || config.channels == 0) return config.channels == 0;
    return other.channels <= config.channels;
  });
}

double Ground::BestRatio() const {
  double best = 1;
  for (const Arm& arm : arms) best = std::min(best, arm.ratio);
  return best;
}

namespace {

Result<DataSet> Simulate(const std::string& title, const std::vector<std::string>& clusters,
                         const std::vector<Collective>& collectives, uint64_t first_bytes) {
  DataSet set{title, "cost model, log-normal noise 5 %, 1 % spikes", {}};
  const std::vector<float> factors = LogNormal(0.05, 0.01, 1);
  for (const std::string& name : clusters) {
    const Result<Cluster> cluster = comm::sim::LoadCluster(name);
    if (!cluster.ok()) return cluster.status();
    const Result<RankLayout> layout =
        comm::sim::FillNodes(cluster.value(), cluster.value().ranks());
    if (!layout.ok()) return layout.status();
    for (const Collective collective : collectives) {
      for (uint64_t bytes = first_bytes; bytes <= (uint64_t{16} << 20); bytes *= 4) {
        const auto estimate = [&](const Config& config) {
          return comm::sim::Estimate(cluster.value(), layout.value(), collective, bytes, config);
        };
        const auto chosen = estimate({});
        if (!chosen.ok()) return chosen.status();
        // What really runs, each once.
        std::vector<Config> running;
        for (Config config :
             comm::sim::Configurations(cluster.value(), layout.value(), collective)) {
          const auto cost = estimate(config);
          if (!cost.ok() || cost.value().config == chosen.value().config) continue;
          config = cost.value().config;
          if (std::find(running.begin(), running.end(), config) == running.end()) {
            running.push_back(config);
          }
        }
        Ground ground;
        ground.name =
            name + " " + std::string(CollectiveName(collective)) + " " + FormatBytes(bytes);
        ground.arms.push_back({{}, 1, 1, false, factors});
        for (const Config& config : Thinned(running)) {
          const auto cost = estimate(config);
          if (!cost.ok()) continue;
          Ground::Arm arm;
          arm.config = config;
          if (Usual(config, running)) {
            arm.estimate =
                LibraryEstimate(cluster.value(), layout.value(), collective, bytes, config);
          }
          arm.ratio = cost.value().seconds / chosen.value().seconds;
          arm.factors = factors;
          ground.arms.push_back(arm);
        }
        set.grounds.push_back(std::move(ground));
      }
    }
  }
  return set;
}

}  // namespace

Result<DataSet> SimulatedGrounds() {
  return Simulate("simulated", {"a100x8", "h100x8", "h100x8x4", "mi355x8x2", "lab"},
                  {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter},
                  1024);
}

Result<DataSet> HeldOutGrounds() {
  return Simulate("held out", {"h100x8x32", "mi355x8", "h100x8x512"},
                  {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                   Collective::kBroadcast, Collective::kReduce},
                  2048);
}

Result<DataSet> RecordedGrounds(const std::string& path, const std::string& name, bool own) {
  const Result<Csv> read = Csv::Read(path);
  if (!read.ok()) return read.status();
  const Csv& csv = read.value();
  const bool times = csv.Has("time_oop");
  const Library library = times ? Library::kNccl : Library::kRccl;
  DataSet set{
      name,
      own ? "recorded samples of each arm, as they are" : "recorded medians, recorded deviations",
      {}};
  std::map<std::tuple<std::string, int, int, uint64_t>, Table> tables;
  for (size_t i = 0; i < csv.size(); ++i) {
    const Result<Collective> collective = ParseCollective(library, csv.Cell(i, "collective"));
    if (!collective.ok()) return collective.status().WithContext(path);
    Config config;
    if (FoldName(csv.Cell(i, "algo")) != "default") {
      const Result<int> algorithm =
          ParseAlgorithm(library, collective.value(), csv.Cell(i, "algo"));
      const Result<int> protocol = ParseProtocol(library, csv.Cell(i, "proto"));
      if (!algorithm.ok() || !protocol.ok()) continue;
      config.algorithm = algorithm.value();
      config.protocol = protocol.value();
      config.channels = std::max(0, static_cast<int>(csv.Value(i, "nchannels")));
    }
    const double value = csv.Value(i, times ? "time_oop" : "busbw_ip");
    if (!(value > 0)) return Invalid(Format("{}: row {} has no time", path, i + 1));
    Row& row = tables[{std::string(CollectiveName(collective.value())),
                       static_cast<int>(csv.Value(i, "num_nodes")),
                       static_cast<int>(csv.Value(i, "num_gpus")),
                       static_cast<uint64_t>(csv.Value(i, "size_bytes"))}]
                     [{config.algorithm, config.protocol, config.channels, config.segment_bytes}];
    row.samples.push_back(times ? value : 1 / value);
  }
  for (auto& [context, table] : tables) {
    const auto& [collective, nodes, ranks, bytes] = context;
    const Config nothing;
    if (table.count({nothing.algorithm, nothing.protocol, 0, 0}) == 0) continue;
    for (auto& [key, row] : table) row.median = Median(row.samples);
    Ground ground = MakeGround(
        Format("{} {}x{} ", collective, nodes, ranks / nodes) + FormatBytes(bytes), table, own);
    const Result<Cluster> cluster =
        comm::sim::LoadCluster(times ? "lab" : (nodes == 1 ? "mi355x8" : "mi355x8x2"));
    if (!cluster.ok()) return cluster.status();
    const Result<RankLayout> layout = comm::sim::FillNodes(cluster.value(), ranks);
    if (!layout.ok()) return layout.status();
    std::vector<Config> configs;
    for (size_t i = 1; i < ground.arms.size(); ++i) configs.push_back(ground.arms[i].config);
    for (size_t i = 1; i < ground.arms.size(); ++i) {
      if (!Usual(ground.arms[i].config, configs)) continue;
      ground.arms[i].estimate = LibraryEstimate(cluster.value(), layout.value(),
                                                ParseCollective(library, collective).value(), bytes,
                                                ground.arms[i].config);
    }
    set.grounds.push_back(std::move(ground));
  }
  return set;
}

Result<DataSet> TableGrounds(const std::string& path) {
  const Result<Csv> csv = Csv::Read(path);
  if (!csv.ok()) return csv.status();
  DataSet set{"lab table", "default and best of a table, six wrong arms of 2 to 7 times each", {}};
  const std::vector<float> factors = LogNormal(0.06, 0.01, 2);
  const CounterRandom random(3, 3);
  for (size_t i = 0; i < csv.value().size(); ++i) {
    Ground ground;
    ground.name = "lab " + csv.value().Cell(i, "bytes");
    ground.arms.push_back({{}, 1, 1, false, factors});
    const double best = csv.value().Value(i, "best_us") / csv.value().Value(i, "default_us");
    for (int arm = 0; arm < 7; ++arm) {
      const double ratio = arm == 0 ? best : 1 + arm;
      // The library's estimates are wrong by up to a factor of two.
      const double estimate = ratio * std::exp2(2 * random.Uniform(8 * i + arm) - 1);
      ground.arms.push_back({{arm, kSimple, 0, 0}, estimate, ratio, false, factors});
    }
    set.grounds.push_back(std::move(ground));
  }
  return set;
}

}  // namespace diapason::learn
