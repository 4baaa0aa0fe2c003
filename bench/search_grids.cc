#include "search_grids.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "comm/backends/sim/cluster.h"
#include "comm/backends/sim/library.h"

namespace diapason::measure {

using dataset::StoreContents;

Result<double> ParseNumber(std::string_view text) {
  const std::string copy(Trim(text));
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0') return Invalid("'" + copy + "' is not a number");
  return value;
}

namespace {

Result<Ground> Prepare(StoreContents contents, const Subject& subject) {
  Ground ground;
  ground.contents = std::move(contents);
  ground.subject = subject;
  Result<search::CallCasesFound> found = search::CallCasesIn(ground.contents, subject);
  if (!found.ok()) return found.status();
  for (const std::string& line : found.value().left_out) {
    std::fprintf(stderr, "left out: %s\n", line.c_str());
  }
  ground.call_cases = std::move(found.value().call_cases);
  return ground;
}

Result<StoreContents> ReadCsv(const std::string& path) {
  const Result<std::string> text = ReadFile(path, size_t{1} << 28);
  if (!text.ok()) return text.status();
  const std::vector<std::string_view> lines = Split(text.value(), '\n');
  const std::vector<std::string> wanted = {"num_nodes",  "num_gpus", "collective",
                                           "size_bytes", "algo",     "proto",
                                           "nchannels",  "repeat",   "busbw_ip"};
  std::vector<size_t> columns;
  const std::vector<std::string_view> titles = Split(Trim(lines[0]), ',');
  for (const std::string& title : wanted) {
    const auto place = std::find(titles.begin(), titles.end(), title);
    if (place == titles.end()) return Invalid(path + ": there is no column '" + title + "'");
    columns.push_back(static_cast<size_t>(place - titles.begin()));
  }
  StoreContents contents;
  contents.runs.emplace_back();
  contents.runs[0].machine.library = "rccl";
  for (size_t line = 1; line < lines.size(); ++line) {
    if (Trim(lines[line]).empty()) continue;
    const std::vector<std::string_view> cells = Split(Trim(lines[line]), ',');
    if (cells.size() != titles.size()) {
      return Invalid(
          Format("{}:{}: {} columns instead of {}", path, line + 1, cells.size(), titles.size()));
    }
    double numbers[9] = {};
    for (const size_t i : {0, 1, 3, 6, 7, 8}) {
      const Result<double> number = ParseNumber(cells[columns[i]]);
      if (!number.ok()) {
        return number.status().WithContext(Format("{}:{}", path, line + 1));
      }
      numbers[i] = number.value();
    }
    dataset::StoredSample record;
    dataset::Point& point = record.sample.point;
    point.collective = FoldName(cells[columns[2]]);
    point.nodes = static_cast<int>(numbers[0]);
    point.ranks = static_cast<int>(numbers[1]);
    point.bytes = static_cast<uint64_t>(numbers[3]);
    if (FoldName(cells[columns[4]]) != "default") {
      point.algorithm = ToLower(cells[columns[4]]);
      point.protocol = ToLower(cells[columns[5]]);
      point.channels = std::max(0, static_cast<int>(numbers[6]));
    }
    record.sample.round = static_cast<int>(numbers[7]);
    record.sample.seconds = dataset::BusBandwidth(point, 1) / (numbers[8] * 1e9);
    contents.records.push_back(std::move(record));
  }
  return contents;
}

}  // namespace

Result<std::vector<Ground>> ReadGrid(const std::string& path) {
  Result<StoreContents> contents = ReadCsv(path);
  if (!contents.ok()) return contents.status();
  std::vector<Ground> grounds;
  for (const Subject& subject : search::SubjectsIn(contents.value())) {
    Result<Ground> ground = Prepare(contents.value(), subject);
    if (!ground.ok()) return ground.status();
    grounds.push_back(std::move(ground.value()));
  }
  return grounds;
}

Result<Ground> SimulateGrid(const std::string& cluster_name, Collective collective,
                            Operation operation, uint64_t seed) {
  const Result<comm::sim::Cluster> loaded = comm::sim::LoadCluster(cluster_name);
  if (!loaded.ok()) return loaded.status();
  const comm::sim::Cluster& cluster = loaded.value();
  const Result<comm::sim::RankLayout> layout =
      comm::sim::FillNodes(cluster, cluster.nodes * cluster.gpus_per_node);
  if (!layout.ok()) return layout.status();
  std::map<dataset::Point, double> truth;
  const std::string name = cluster_name + " " + std::string(CollectiveName(collective));
  Subject subject;
  subject.library = Library::kNccl;
  subject.ranks = layout.value().ranks;
  subject.nodes = layout.value().nodes;
  subject.simulated = true;
  StoreContents contents;
  contents.runs.emplace_back();
  contents.runs[0].machine.library = "nccl";
  contents.runs[0].machine.simulated = true;
  std::vector<Config> configs = comm::sim::Configurations(cluster, layout.value(), collective);
  configs.insert(configs.begin(), Config{});
  const CounterRandom random(seed, std::hash<std::string>{}(name));
  uint64_t draw = 0;
  for (uint64_t bytes = 4096; bytes <= (uint64_t{512} << 20); bytes *= 2) {
    for (const Config& config : configs) {
      const auto cost = comm::sim::Estimate(cluster, layout.value(), collective, bytes, config);
      if (!cost.ok()) continue;
      Trial trial;
      trial.operation = operation;
      trial.bytes = bytes;
      trial.config = config;
      dataset::StoredSample record;
      record.sample.point = PointOf(trial, subject);
      truth[record.sample.point] = cost.value().seconds;
      const double noise = 0.03 + 0.07 * random.Uniform(draw++);
      for (int round = 1; round <= 3; ++round) {
        record.sample.round = round;
        record.sample.seconds = cost.value().seconds * std::exp(noise * random.Normal(draw++));
        if (random.Uniform(draw++) < 0.02) {
          record.sample.seconds +=
              random.Uniform(draw) * (draw % 2 == 0 ? 4e-3 : record.sample.seconds);
          ++draw;
        }
        contents.records.push_back(record);
      }
    }
  }
  Result<Ground> ground = Prepare(std::move(contents), subject);
  if (!ground.ok()) return ground.status();
  ground.value().name = name;
  ground.value().truth = std::move(truth);
  return ground;
}

}  // namespace diapason::measure
