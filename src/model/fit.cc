// Builds a Predictor: combines measurements, the neighbours' estimates and the trees in one table
// per place.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/random.h"
#include "model/completion.h"
#include "model/gap.h"
#include "model/held_out.h"
#include "model/predictor.h"

namespace diapason::model {
namespace {

constexpr double kFinest = 0.02;
// The error is larger for a family that was never run at a place.
constexpr double kUnseenFamily = 2;
constexpr double kSurer = 8;
// If nothing could be hidden from them.
constexpr double kUnknownTreeError = 0.5;

struct FitRow {
  size_t scene = 0;
  size_t context = 0;
  const MeasuredConfig* cell = nullptr;
  uint32_t fold = 0;
  float target = 0;
  float weight = 1;
  double off = NAN;  // the error of the trees that did not see it
};

int FoldOf(size_t scene, const Config& config, uint32_t seed, int folds) {
  const CounterRandom random(seed, 77);
  const auto word = static_cast<uint64_t>(config.algorithm + 1) << 48 ^
                    static_cast<uint64_t>(config.protocol + 1) << 40 ^
                    static_cast<uint64_t>(config.channels) << 24 ^
                    static_cast<uint64_t>(config.segment_bytes) << 8 ^ scene;
  return static_cast<int>(random.Bits(word) % static_cast<uint64_t>(folds));
}

}  // namespace

class Fitter {
 public:
  Fitter(const Grid& grid, const FitOptions& options) : grid_(grid), options_(options) {}

  Result<Predictor> Fit() {
    made_.objective_ = options_.objective;
    made_.library_ = grid_.library;
    made_.features_ = options_.objective == Objective::kTime ? Features::OfTime(grid_)
                                                             : Features::OfBandwidth(grid_.library);
    CollectRows();
    if (rows_.empty()) {
      return NotFound("the data have no configuration beside the library's own choice");
    }
    FillValues();
    Frame();
    if (options_.objective == Objective::kBusBandwidth) {
      Result<Forest> forest = Train(options_.original, [](const FitRow&) { return true; });
      if (!forest.ok()) return forest.status();
      made_.forests_.push_back(std::move(forest).value());
      return std::move(made_);
    }
    RETURN_IF_ERROR(TrainMembers());
    Complete();
    made_.MakeTransfer();
    return std::move(made_);
  }

 private:
  void CollectRows() {
    double sum = 0;
    double weight = 0;
    for (size_t s = 0; s < grid_.scenes.size(); ++s) {
      const MeasuredPlace& scene = grid_.scenes[s];
      for (size_t c = 0; c < scene.contexts.size(); ++c) {
        const MeasuredSize& context = scene.contexts[c];
        const double reference = Reference(context);
        for (const MeasuredConfig& cell : context.cells) {
          if (cell.config.IsDefault()) continue;
          FitRow row{s, c, &cell, 0, 0, 1};
          row.fold = static_cast<uint32_t>(
              FoldOf(s, cell.config, options_.seed, std::max(1, options_.members)));
          if (options_.objective == Objective::kTime) {
            row.target = static_cast<float>(cell.log_seconds - reference);
            row.weight = static_cast<float>(kFinest * kFinest /
                                            (kFinest * kFinest + cell.noise * cell.noise));
          } else {
            row.target =
                static_cast<float>(BusGigabytes(scene.place, context.bytes, cell.log_seconds));
            // The original has a row for every repeat.
            row.weight = static_cast<float>(std::max<size_t>(1, cell.samples));
          }
          sum += static_cast<double>(row.target) * static_cast<double>(row.weight);
          weight += static_cast<double>(row.weight);
          rows_.push_back(row);
        }
      }
    }
    if (weight > 0) made_.offset_ = sum / weight;
  }

  void FillValues() {
    const size_t columns = made_.features_.count();
    values_.resize(rows_.size() * columns);
    for (size_t i = 0; i < rows_.size(); ++i) {
      const MeasuredPlace& scene = grid_.scenes[rows_[i].scene];
      made_.features_.Fill(scene.place, scene.contexts[rows_[i].context].bytes,
                           rows_[i].cell->config, &values_[i * columns]);
    }
  }

  template <typename Wanted>
  Result<Forest> Train(const TreeOptions& trees, Wanted wanted) {
    TrainingSet training_set;
    const size_t columns = training_set.columns = made_.features_.count();
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!wanted(rows_[i])) continue;
      training_set.values.insert(training_set.values.end(),
                                 values_.begin() + static_cast<ptrdiff_t>(i * columns),
                                 values_.begin() + static_cast<ptrdiff_t>((i + 1) * columns));
      training_set.targets.push_back(rows_[i].target - static_cast<float>(made_.offset_));
      training_set.weights.push_back(rows_[i].weight);
    }
    return TrainTrees(training_set, trees);
  }

  double ErrorOf(const Forest& forest, size_t row) const {
    return made_.offset_ + forest.Predict(&values_[row * made_.features_.count()]) -
           static_cast<double>(rows_[row].target);
  }

  Status TrainMembers() {
    std::vector<double> errors;
    for (int member = 0; member < std::max(1, options_.members); ++member) {
      const auto out = [&](const FitRow& row) {
        return options_.members > 1 && row.fold == static_cast<uint32_t>(member);
      };
      // If a part would contain all configurations, they stay.
      const bool any_left =
          std::any_of(rows_.begin(), rows_.end(), [&](const FitRow& row) { return !out(row); });
      TreeOptions trees = options_.trees;
      trees.seed = options_.seed * 1000 + static_cast<uint32_t>(member);
      Result<Forest> forest =
          Train(trees, [&](const FitRow& row) { return !any_left || !out(row); });
      if (!forest.ok()) return forest.status();
      for (size_t i = 0; any_left && i < rows_.size(); ++i) {
        if (!out(rows_[i])) continue;
        rows_[i].off = ErrorOf(forest.value(), i);
        errors.push_back(rows_[i].off);
      }
      made_.forests_.push_back(std::move(forest).value());
    }
    made_.tree_error_ = errors.empty() ? kUnknownTreeError : NinetyPercentDeviation(errors);
    return {};
  }

  // Collects places, sizes, families and their measurements.
  void Frame() {
    for (const MeasuredPlace& scene : grid_.scenes) {
      SceneTable table;
      table.place = scene.place;
      std::map<ConfigFamily, SceneTable::FamilyTable> families;
      int most = 0;
      for (const MeasuredSize& context : scene.contexts) {
        table.sizes.push_back(context.bytes);
        table.library_default.emplace_back();
        if (context.library_default.has_value()) {
          const MeasuredConfig& cell = context.cells[*context.library_default];
          table.library_default.back() = Estimate{cell.log_seconds, cell.noise};
        }
        for (const MeasuredConfig& cell : context.cells) {
          if (cell.config.IsDefault()) continue;
          SceneTable::FamilyTable& family = families[FamilyOf(cell.config)];
          const int channels = std::max(1, cell.config.channels);
          family.lowest = family.lowest == 0 ? channels : std::min(family.lowest, channels);
          family.highest = std::max(family.highest, channels);
          if (cell.config.channels > 0) most = std::max(most, channels);
        }
      }
      for (const ConfigFamily& family : options_.families) families[family];
      table.top = std::max(most, std::clamp(ChannelLimit(grid_.library), 1, 128));
      for (auto& [family, one] : families) {
        one.family = family;
        table.families.push_back(std::move(one));
      }
      table.bend = GapUnit(scene);
      table.time_bend = TimeGapUnit(scene);
      table.ends = EndUnitsOf(scene);
      table.contrast = scene.Differs();
      made_.scenes_.push_back(std::move(table));
    }
  }

  void Complete() {
    std::vector<std::vector<ConfigFamily>> families(grid_.scenes.size());
    for (size_t s = 0; s < made_.scenes_.size(); ++s) {
      for (const auto& table : made_.scenes_[s].families) families[s].push_back(table.family);
    }
    const std::vector<SceneModel> models = FitScenes(grid_, families);
    for (size_t s = 0; s < made_.scenes_.size(); ++s) {
      const SceneErrors errors = ErrorsAt(s, models[s]);
      SceneTable& scene = made_.scenes_[s];
      for (auto& table : scene.families) {
        CompleteFamily(grid_.scenes[s], models[s].at(table.family), errors, scene, &table);
      }
    }
  }

  // What hiding cells showed at one place.
  struct SceneErrors {
    HeldOut members;  // for configurations that were not measured at the place
    HeldOut cells;    // for those that were, at other sizes
  };
  SceneErrors ErrorsAt(size_t scene, const SceneModel& models) const {
    std::map<std::tuple<ConfigFamily, int, double>, double> trees;
    for (const FitRow& row : rows_) {
      if (row.scene != scene || std::isnan(row.off)) continue;
      trees[{FamilyOf(row.cell->config), std::max(1, row.cell->config.channels),
             LogBytes(grid_.scenes[scene].contexts[row.context].bytes)}] = row.off;
    }
    std::vector<HiddenCell> members;
    std::vector<HiddenCell> cells;
    size_t member_groups = 0;
    for (const auto& [family, model] : models) {
      const auto collect = [&, &family = family, &model = model](const FamilyModel::Check& check,
                                                                 std::vector<HiddenCell>* found) {
        for (const FamilyModel::Deviation& one : check.each) {
          const FamilyModel::Observation& cell = model.observations()[one.observation];
          const auto off = trees.find({family, cell.channels, cell.log_bytes});
          if (off != trees.end()) found->push_back({one.off, one.error, off->second});
        }
      };
      const FamilyModel::Check check = model.LeaveMembersOut();
      member_groups += check.groups;
      collect(check, &members);
      collect(model.LeaveCellsOut(), &cells);
    }
    const size_t sizes = grid_.scenes[scene].contexts.size();
    return {HeldOut(members, member_groups, made_.tree_error_),
            HeldOut(cells, sizes, made_.tree_error_)};
  }

  void CompleteFamily(const MeasuredPlace& scene, const FamilyModel& model,
                      const SceneErrors& errors, const SceneTable& table,
                      SceneTable::FamilyTable* family) {
    const size_t width = table.Width(family->family);
    const ChannelRange range{family->lowest, family->highest, table.top};
    std::vector<bool> member(width, false);  // measured at some size
    for (const FamilyModel::Observation& cell : model.observations()) {
      member[family->family.channels ? static_cast<size_t>(cell.channels) - 1 : 0] = true;
    }
    const double unseen = model.empty() ? kUnseenFamily : 1;
    family->values.resize(table.sizes.size() * width);
    for (size_t k = 0; k < table.sizes.size(); ++k) {
      const MeasuredSize& context = scene.contexts[k];
      std::vector<Estimate> neighbours =
          AskNeighbours(model, LogBytes(table.sizes[k]), range, width);
      const std::vector<Estimate> alone = neighbours;
      // If the neighbours' model uses only some measurements, the others correct it here.
      if (model.thinned()) Correct(context, family->family, &neighbours);
      // If the neighbours' estimate is far more precise, the trees have no weight.
      const bool ask = std::any_of(neighbours.begin(), neighbours.end(), [&](const Estimate& one) {
        return one.doubt * kSurer > unseen * made_.tree_error_;
      });
      std::vector<Estimate> trees;
      if (ask) trees = made_.Ask(table.place, table.sizes[k], family->family, table.top);
      const double reference = Reference(context);
      for (size_t i = 0; i < width; ++i) {
        SceneTable::Value& value = family->values[k * width + i];
        const Config config = Member(family->family, static_cast<int>(i) + 1);
        const HeldOut& held_out = member[i] ? errors.cells : errors.members;
        if (const MeasuredConfig* cell = context.Find(config); cell != nullptr) {
          // A noisy measurement is shrunk towards its neighbours' estimate.
          value = Weigh({cell->log_seconds, cell->noise},
                        {alone[i].log_seconds, held_out.factor() * alone[i].doubt});
          continue;
        }
        const Estimate estimate =
            ask ? held_out.Combine(neighbours[i], trees[i].log_seconds + reference, unseen)
                : Estimate{neighbours[i].log_seconds, held_out.factor() * neighbours[i].doubt};
        value = {static_cast<float>(estimate.log_seconds), static_cast<float>(estimate.doubt),
                 false};
      }
    }
  }

  const Grid& grid_;
  const FitOptions& options_;
  std::vector<FitRow> rows_;
  std::vector<float> values_;
  Predictor made_;
};

Result<Predictor> Predictor::Fit(const Grid& grid, const FitOptions& options) {
  return Fitter(grid, options).Fit();
}

}  // namespace diapason::model
