// What learning and asking cost, in numbers for bench/model.py, which does the same with
// scikit-learn and prints both:
//
//   bench_model GRID.csv TABLE.csv
//
// reads measurements of RCCL, makes a table of kRows configurations out of them, writes it to
// TABLE.csv with the columns of the original predictor, learns from it and asks. Prints one JSON
// object; times are seconds, one for every repeat. There are few: model.py calls it several times.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "dataset/import.h"
#include "domain/collectives.h"
#include "model/choose.h"
#include "model/evaluate.h"
#include "model/model_file.h"

namespace diapason::model {
namespace {

// As many as the sweep had that the original predictor was made for.
constexpr size_t kRows = 4609;
// Trees that are timed against scikit-learn's, of the same number and depth.
constexpr TreeOptions kTimed{.trees = 200, .depth = 6, .least = 1};
constexpr int kRepeats = 2;
constexpr int kLoads = 7;
constexpr size_t kQuestions = 700;
constexpr size_t kMostBytes = size_t{64} << 20;

using nlohmann::ordered_json;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "bench_model: %s\n", why.c_str());
  std::exit(1);
}

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Grid ReadGrid(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMostBytes);
  if (!text.ok()) Die(text.status().message());
  dataset::ImportOptions options;
  // In whose words the search has 64 channels, as the one it is compared with; RCCL's has 127.
  options.library = "nccl";
  const Result<dataset::Import> import = dataset::ImportText(text.value(), path, options);
  if (!import.ok()) Die(import.status().message());
  dataset::StoreContents contents;
  for (const dataset::WholeRun& run : import.value().runs) {
    for (const dataset::Sample& sample : run.samples) {
      contents.records.push_back({contents.runs.size(), sample});
    }
    contents.runs.push_back(run.run);
  }
  Result<Grid> grid = MakeGrid(contents, {});
  if (!grid.ok()) Die(grid.status().message());
  return std::move(grid).value();
}

// The cell as it would have been measured at a size a little larger: on the line to the next size,
// and off it by its noise.
MeasuredConfig Moved(const MeasuredPlace& scene, const MeasuredSize& context,
                     const MeasuredConfig& cell, uint64_t bytes, double deviation) {
  if (bytes == context.bytes) return cell;
  MeasuredConfig moved = cell;
  const std::optional<Estimate> line = Interpolate(scene, bytes, cell.config);
  moved.log_seconds = line.has_value()
                          ? line->log_seconds
                          : cell.log_seconds + std::log(static_cast<double>(bytes) /
                                                        static_cast<double>(context.bytes));
  moved.log_seconds += cell.noise * deviation;
  return moved;
}

// Repeats the grid until it has `wanted` cells beside the defaults: at sizes moved by fifths of a
// doubling, or as other collectives that take as long.
enum class Tiling { kSizes, kCollectives };
constexpr Collective kTiles[] = {Collective::kAllReduce, Collective::kAllGather,
                                 Collective::kReduceScatter, Collective::kBroadcast,
                                 Collective::kReduce};

Grid Tile(const Grid& grid, size_t wanted, Tiling tiling) {
  Grid tiled = grid;
  tiled.scenes.clear();
  const CounterRandom random(1, 1);
  size_t count = 0;
  for (size_t tile = 0; tile < std::size(kTiles) && count < wanted; ++tile) {
    for (const MeasuredPlace& scene : grid.scenes) {
      CallPlace place = scene.place;
      if (tiling == Tiling::kCollectives) place.collective = kTiles[tile];
      auto into = std::find_if(tiled.scenes.begin(), tiled.scenes.end(),
                               [&](const MeasuredPlace& one) { return one.place == place; });
      for (const MeasuredSize& context : scene.contexts) {
        if (count == wanted) break;
        if (into == tiled.scenes.end()) into = tiled.scenes.insert(into, MeasuredPlace{place, {}});
        const double factor =
            tiling == Tiling::kSizes ? std::exp2(static_cast<double>(tile) / 5) : 1;
        MeasuredSize moved;
        moved.bytes =
            static_cast<uint64_t>(std::llround(static_cast<double>(context.bytes) * factor));
        for (const MeasuredConfig& cell : context.cells) {
          if (!cell.config.IsDefault() && count == wanted) continue;
          if (cell.config.IsDefault()) {
            moved.library_default = moved.cells.size();
          } else {
            ++count;
          }
          moved.cells.push_back(
              Moved(scene, context, cell, moved.bytes, tile == 0 ? 0 : random.Normal(count)));
        }
        into->contexts.push_back(std::move(moved));
      }
    }
  }
  if (count != wanted) Die("the grid is too small to make the table of");
  for (MeasuredPlace& scene : tiled.scenes) {
    std::sort(scene.contexts.begin(), scene.contexts.end(),
              [](const MeasuredSize& a, const MeasuredSize& b) { return a.bytes < b.bytes; });
  }
  return tiled;
}

struct Row {
  CallPlace place;
  uint64_t bytes = 0;
  Config config;
  double bandwidth = 0;  // GB/s on the bus
};

std::vector<Row> RowsOf(const Grid& grid) {
  std::vector<Row> rows;
  for (const MeasuredPlace& scene : grid.scenes) {
    for (const MeasuredSize& context : scene.contexts) {
      for (const MeasuredConfig& cell : context.cells) {
        if (cell.config.IsDefault()) continue;
        const double bandwidth = static_cast<double>(context.bytes) *
                                 BusFactor(scene.place.collective, scene.place.ranks) /
                                 std::exp(cell.log_seconds) / 1e9;
        rows.push_back({scene.place, context.bytes, cell.config, bandwidth});
      }
    }
  }
  return rows;
}

void WriteTable(const std::vector<Row>& rows, const std::string& path) {
  std::string text =
      "num_nodes,num_gpus,size_bytes,log_size,gpus_per_node,bytes_per_gpu,algo,proto,nchannels,"
      "busbw_ip\n";
  for (const Row& row : rows) {
    const double bytes = static_cast<double>(row.bytes);
    text += Format("{},{},{},{:.9g},{:g},{:.9g},{},{},{},{:.9g}\n", row.place.nodes,
                   row.place.ranks, row.bytes, std::log2(bytes),
                   static_cast<double>(row.place.ranks) / row.place.nodes, bytes / row.place.ranks,
                   row.config.algorithm, row.config.protocol, row.config.channels, row.bandwidth);
  }
  if (Status written = WriteFileAtomically(path, text); !written.ok()) Die(written.message());
}

TrainingSet LessonOf(const std::vector<Row>& rows, const Features& features) {
  TrainingSet lesson;
  lesson.columns = features.count();
  lesson.values.resize(rows.size() * features.count());
  for (size_t i = 0; i < rows.size(); ++i) {
    features.Fill(rows[i].place, rows[i].bytes, rows[i].config, &lesson.values[i * lesson.columns]);
    lesson.targets.push_back(static_cast<float>(rows[i].bandwidth));
  }
  return lesson;
}

// Each of them in turn, so that drift hits all alike.
ordered_json TimeInTurns(const std::vector<std::pair<std::string, std::function<void()>>>& all) {
  std::map<std::string, std::vector<double>> times;
  all.front().second();  // opens the trainer's module
  for (int turn = 0; turn < kRepeats; ++turn) {
    for (const auto& [name, work] : all) times[name].push_back(Seconds(work));
  }
  ordered_json json;
  for (const auto& [name, work] : all) json[name] = times[name];
  return json;
}

// Questions about sizes that all differ.
ordered_json Ask(const Predictor& predictor, const CallPlace& place) {
  const CounterRandom random(7, static_cast<uint64_t>(place.ranks));
  std::set<uint64_t> sizes;
  for (uint64_t i = 0; sizes.size() < kQuestions; ++i) {
    sizes.insert(static_cast<uint64_t>(std::exp2(12 + 17 * random.Uniform(i))));
  }
  std::vector<double> times;
  std::set<size_t> examined;
  size_t changed = 0;
  for (const uint64_t bytes : sizes) {
    Predictor::Request request;
    request.place = place;
    request.bytes = bytes;
    request.beyond = true;
    ModelChoice choice;
    times.push_back(Seconds([&] { choice = FindOptimalConfig(predictor, request, {}); }));
    if (!choice.best.has_value()) Die("nothing to choose from for " + PlaceText(place));
    examined.insert(choice.examined);
    changed += choice.leave_default ? 0 : 1;
  }
  return {{"place", PlaceText(place)},        {"nodes", place.nodes}, {"ranks", place.ranks},
          {"candidates", *examined.rbegin()}, {"changed", changed},   {"seconds", times}};
}

Predictor Learn(const Grid& grid, const FitOptions& options) {
  Result<Predictor> made = Predictor::Fit(grid, options);
  if (!made.ok()) Die(made.status().message());
  return std::move(made).value();
}

int Main(int argc, char** argv) {
  if (argc != 3) Die("usage: bench_model GRID.csv TABLE.csv");
  const Grid measured = ReadGrid(argv[1]);
  const Grid grid = Tile(measured, kRows, Tiling::kSizes);
  const Grid collectives = Tile(measured, kRows, Tiling::kCollectives);
  const std::vector<Row> rows = RowsOf(grid);
  WriteTable(rows, argv[2]);

  const TrainingSet original = LessonOf(rows, Features::OfBandwidth(grid.library));
  const TrainingSet physical = LessonOf(rows, Features::OfTime(grid));
  const auto forest = [](const TrainingSet& lesson) {
    return [&lesson] {
      const Result<Forest> made = TrainTrees(lesson, kTimed);
      if (!made.ok()) Die(made.status().message());
    };
  };
  FitOptions single;
  single.members = 1;
  single.trees.trees = kTimed.trees;
  ordered_json json = {{"rows", rows.size()},
                       {"defaults", grid.CellCount() - rows.size()},
                       {"places", grid.scenes.size()},
                       {"sizes", grid.scenes.back().contexts.size()},
                       {"measured_sizes", measured.scenes.back().contexts.size()},
                       {"collectives", std::size(kTiles)},
                       {"trees", kTimed.trees},
                       {"member_trees", FitOptions().trees.trees},
                       {"depth", TreeOptions().depth},
                       {"rate", TreeOptions().rate},
                       {"members", FitOptions().members},
                       {"original_columns", original.columns},
                       {"physical_columns", physical.columns}};
  json["fit"] = TimeInTurns({{"forest_original", forest(original)},
                             {"forest_physical", forest(physical)},
                             {"single", [&] { Learn(grid, single); }},
                             {"uncertainty", [&] { Learn(grid, {}); }},
                             {"single_collectives", [&] { Learn(collectives, single); }},
                             {"uncertainty_collectives", [&] { Learn(collectives, {}); }}});

  Model model;
  model.predictor = Learn(grid, {});
  json["search"]["measured"] = Ask(model.predictor, {Collective::kAllReduce, 2, 16});
  json["search"]["elsewhere"] = Ask(model.predictor, {Collective::kAllReduce, 4, 32});
  json["search_single"]["elsewhere"] = Ask(Learn(grid, single), {Collective::kAllReduce, 4, 32});
  const std::string path = std::string(argv[2]) + ".model";
  if (Status saved = ModelFile::Save(model, path); !saved.ok()) Die(saved.message());
  std::vector<double> loads;
  for (int i = 0; i < kLoads; ++i) {
    loads.push_back(Seconds([&] {
      const Result<Model> loaded = ModelFile::Load(path);
      if (!loaded.ok()) Die(loaded.status().message());
    }));
  }
  json["load"] = {{"bytes", ModelFile::Write(model).size()}, {"seconds", loads}};
  std::remove(path.c_str());
  std::printf("%s\n", json.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace diapason::model

int main(int argc, char** argv) { return diapason::model::Main(argc, argv); }
