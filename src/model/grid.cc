#include "model/grid.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/encoding.h"
#include "base/stats.h"
#include "base/text.h"
#include "dataset/summary.h"
#include "domain/collectives.h"
#include "model/cell_noise.h"
#include "model/run_blocks.h"

namespace diapason::model {
namespace {

auto Key(const Config& c) { return std::tie(c.algorithm, c.protocol, c.segment_bytes, c.channels); }

// Properties that must be the same within a scene and are not part of its place.
struct Variant {
  std::string type, reduce, workload;
  std::string library;  // "" if the data do not say
  int root = -1;
  bool in_place = false;
  friend auto operator<=>(const Variant&, const Variant&) = default;
};

Variant VariantOf(const dataset::ConfigGroup& group) {
  const dataset::Point& point = group.context;
  return {point.type, point.reduce, point.workload, group.library, point.root, point.in_place};
}

// What a message says about the data.
struct Assumed {
  size_t unknown = 0;     // configurations without a name
  size_t other_days = 0;  // samples without the library's own choice of their run and day
  size_t apart = 0;       // sizes where that was measured in other runs than all configurations
};

// Configurations in the library's numbers; unknown names are counted.
std::vector<RawCell> RawCells(Library library, const dataset::ConfigGroup& group,
                              Collective collective, Assumed* assumed) {
  std::vector<RawCell> cells;
  const AlignedGroup aligned = AlignRuns(group);
  assumed->other_days += aligned.left_out;
  assumed->apart += aligned.apart ? 1 : 0;
  for (size_t i = 0; i < group.entries.size(); ++i) {
    const dataset::ConfigSummary& entry = group.entries[i];
    const dataset::Point& point = entry.point;
    if (!entry.fine() || !point.environment.empty() || !(entry.median > 0)) continue;
    RawCell raw;
    Config& config = raw.cell.config;
    if (!point.algorithm.empty()) {
      const Result<int> parsed = ParseAlgorithm(library, collective, point.algorithm);
      if (!parsed.ok()) {
        ++assumed->unknown;
        continue;
      }
      config.algorithm = parsed.value();
    }
    if (!point.protocol.empty()) {
      const Result<int> parsed = ParseProtocol(library, point.protocol);
      if (!parsed.ok()) {
        ++assumed->unknown;
        continue;
      }
      config.protocol = parsed.value();
    }
    config.channels = point.channels;
    config.segment_bytes = point.segment_bytes;
    for (const double seconds : aligned.entries[i].seconds) raw.logs.push_back(std::log(seconds));
    // Sorted, so that sums do not depend on the order to the last bit: they are part of
    // fingerprints.
    std::sort(raw.logs.begin(), raw.logs.end());
    raw.cell.log_seconds = std::log(Median(aligned.entries[i].seconds));
    raw.cell.samples = raw.logs.size();
    raw.cell.coarse = entry.coarse;
    raw.cell.paired = aligned.entries[i].paired;
    const size_t rank = TestRank(raw.cell.samples);
    raw.cell.test_fast = raw.logs[rank - 1];
    raw.cell.test_slow = raw.logs[raw.logs.size() - rank];
    if (raw.cell.samples > 1) raw.spread = StandardDeviation(raw.logs);
    cells.push_back(std::move(raw));
  }
  return cells;
}

Status FindLibrary(const std::vector<dataset::ConfigGroup>& groups, const GridOptions& options,
                   Grid* grid) {
  std::set<std::string> names;
  bool measured = false;
  for (const dataset::ConfigGroup& group : groups) {
    names.insert(group.library);
    (group.simulated ? grid->simulated : measured) = true;
  }
  if (measured && grid->simulated) {
    return Invalid(
        "the data are partly measured and partly simulated; give --measured or --simulated");
  }
  names.erase("");
  if (names.size() > 1) {
    return Invalid("the data are of several libraries (" +
                   Join({names.begin(), names.end()}, ", ") + "); choose one with --library");
  }
  if (options.library.has_value()) {
    grid->library = *options.library;
    return {};
  }
  if (names.empty()) {
    grid->messages.emplace_back(
        "the data do not say which library they are of: taken for NCCL; --library tells");
    return {};
  }
  ASSIGN_OR_RETURN(const Library library, ParseLibrary(*names.begin()));
  grid->library = library;
  return {};
}

std::string MachineText(const dataset::StoreContents& contents,
                        std::vector<std::string>* messages) {
  std::set<std::string> names;
  for (const dataset::SampleRun& run : contents.runs) {
    if (!run.machine.gpu.empty()) names.insert(run.machine.gpu);
  }
  if (names.size() > 1) {
    messages->push_back("the data come from different machines (" +
                        Join({names.begin(), names.end()}, "; ") +
                        ") and are taken together; --run selects");
  }
  return names.empty() ? "" : *names.begin();
}

using Contests = std::map<uint64_t, const dataset::ConfigGroup*>;  // by size
using Variants = std::map<Variant, Contests>;

const Contests& Largest(const Variants& variants) {
  size_t most = 0;
  const Contests* chosen = nullptr;
  for (const auto& [variant, groups] : variants) {
    size_t samples = 0;
    for (const auto& [bytes, group] : groups) samples += group->samples;
    // In place comes later, and is what rccl-sweep's tables and most jobs have.
    if (samples >= most) {
      most = samples;
      chosen = &groups;
    }
  }
  return *chosen;
}

MeasuredPlace MakeScene(Library library, const CallPlace& place, const Contests& groups,
                        Assumed* assumed) {
  MeasuredPlace scene;
  scene.place = place;
  std::vector<std::vector<RawCell>> raw;
  for (const auto& [bytes, group] : groups) {
    raw.push_back(RawCells(library, *group, place.collective, assumed));
    scene.contexts.push_back({bytes, {}, {}});
  }
  scene.tail = SetNoise(&raw);
  for (size_t i = 0; i < raw.size(); ++i) {
    MeasuredSize& context = scene.contexts[i];
    std::sort(raw[i].begin(), raw[i].end(), [](const RawCell& a, const RawCell& b) {
      return ConfigLess(a.cell.config, b.cell.config);
    });
    for (const RawCell& one : raw[i]) {
      if (one.cell.config.IsDefault()) context.library_default = context.cells.size();
      context.cells.push_back(one.cell);
    }
  }
  std::erase_if(scene.contexts, [](const MeasuredSize& context) { return context.cells.empty(); });
  return scene;
}

}  // namespace

std::string PlaceText(const CallPlace& place) {
  return Format("{}, {} on {}", std::string(CollectiveName(place.collective)),
                Count(static_cast<size_t>(place.ranks), "rank"),
                Count(static_cast<size_t>(place.nodes), "node"));
}

double LogBytes(uint64_t bytes) {
  return std::log(static_cast<double>(std::max<uint64_t>(1, bytes)));
}

double BusGigabytes(const CallPlace& place, uint64_t bytes, double log_seconds) {
  return static_cast<double>(bytes) * BusFactor(place.collective, place.ranks) /
         std::exp(log_seconds) / 1e9;
}

bool ConfigLess(const Config& a, const Config& b) { return Key(a) < Key(b); }

ConfigFamily FamilyOf(const Config& config) {
  return {config.algorithm, config.protocol, config.segment_bytes, config.channels > 0};
}

Config Member(const ConfigFamily& family, int channels) {
  return {family.algorithm, family.protocol, family.channels ? channels : 0, family.segment_bytes};
}

double MeasuredPlace::Contrast() const {
  double squares = 0;
  double count = 0;
  for (const MeasuredSize& context : contexts) {
    // Around the precision-weighted mean.
    double sum = 0;
    double weights = 0;
    for (const MeasuredConfig& cell : context.cells) {
      const double weight = 1 / (cell.noise * cell.noise);
      sum += weight * cell.log_seconds;
      weights += weight;
    }
    for (const MeasuredConfig& cell : context.cells) {
      const double off = (cell.log_seconds - sum / weights) / cell.noise;
      squares += off * off;
    }
    count += static_cast<double>(context.cells.size()) - 1;
  }
  return count > 0 ? squares / count : 0;
}

bool MeasuredPlace::Differs() const {
  double freedom = 0;
  double samples = 0;
  double cells = 0;
  for (const MeasuredSize& context : contexts) {
    freedom += static_cast<double>(context.cells.size()) - 1;
    cells += static_cast<double>(context.cells.size());
    for (const MeasuredConfig& cell : context.cells) samples += static_cast<double>(cell.samples);
  }
  if (freedom < 1) return false;
  // If the noise is estimated from few repeats, the ratio varies more.
  const double known = samples / cells;
  const double unsure = known < 1.5 ? 3 : known < 2.5 ? 2 : 1;
  return Contrast() >= 1 + unsure * std::max(0.7, 4 * std::sqrt(2 / freedom));
}

const MeasuredConfig* MeasuredSize::Find(const Config& config) const {
  const auto place = std::lower_bound(cells.begin(), cells.end(), config,
                                      [](const MeasuredConfig& cell, const Config& wanted) {
                                        return ConfigLess(cell.config, wanted);
                                      });
  return place != cells.end() && place->config == config ? &*place : nullptr;
}

const MeasuredPlace* Grid::Find(const CallPlace& place) const {
  for (const MeasuredPlace& scene : scenes) {
    if (scene.place == place) return &scene;
  }
  return nullptr;
}

size_t Grid::CellCount() const {
  size_t count = 0;
  for (const MeasuredPlace& scene : scenes) {
    for (const MeasuredSize& context : scene.contexts) count += context.cells.size();
  }
  return count;
}

uint64_t Grid::Fingerprint() const {
  std::string text;
  for (const MeasuredPlace& scene : scenes) {
    text += PlaceText(scene.place);
    for (const MeasuredSize& context : scene.contexts) {
      text += Format(";{}", context.bytes);
      for (const MeasuredConfig& cell : context.cells) {
        // Digits that are the same on every machine.
        text += Format(",{}/{}/{}/{} {:.6f} {:.6f} {}", cell.config.algorithm, cell.config.protocol,
                       cell.config.channels, cell.config.segment_bytes, cell.log_seconds,
                       cell.noise, cell.samples);
      }
    }
  }
  return Fnv1a64(text);
}

Result<Grid> MakeGrid(const dataset::StoreContents& contents, const GridOptions& options) {
  std::vector<dataset::ConfigGroup> groups = dataset::Summarise(contents);
  std::erase_if(groups, [&](const dataset::ConfigGroup& group) {
    const bool other = options.library.has_value() && !group.library.empty() &&
                       group.library != LibraryName(*options.library);
    return other || group.context.kind != options.kind ||
           (!options.workload.empty() && group.context.workload != options.workload);
  });
  if (groups.empty()) {
    return NotFound(options.kind == dataset::Point::Kind::kIteration
                        ? "there are no times of iterations in the data"
                        : "there are no measurements of collectives in the data");
  }
  Grid grid;
  RETURN_IF_ERROR(FindLibrary(groups, options, &grid));
  grid.machine = MachineText(contents, &grid.messages);

  std::map<CallPlace, Variants> places;
  std::set<std::string> unasked;
  for (const dataset::ConfigGroup& group : groups) {
    const Result<Collective> collective = ParseCollective(grid.library, group.context.collective);
    if (!collective.ok()) {
      unasked.insert(group.context.collective);
      continue;
    }
    const CallPlace place{collective.value(), group.context.nodes, group.context.ranks};
    places[place][VariantOf(group)][group.context.bytes] = &group;
  }
  if (!unasked.empty()) {
    grid.messages.push_back("left out, because no tuner can choose how they run: " +
                            Join({unasked.begin(), unasked.end()}, ", "));
  }
  Assumed assumed;
  size_t other = 0;
  for (const auto& [place, variants] : places) {
    const Contests& chosen = Largest(variants);
    MeasuredPlace scene = MakeScene(grid.library, place, chosen, &assumed);
    if (scene.contexts.empty()) continue;
    for (const MeasuredSize& context : scene.contexts) {
      for (const MeasuredConfig& cell : context.cells) grid.samples += cell.samples;
    }
    for (const auto& [variant, all] : variants) {
      if (&all == &chosen) continue;
      for (const auto& [bytes, group] : all) other += group->samples;
    }
    grid.scenes.push_back(std::move(scene));
  }
  if (other > 0) {
    grid.messages.push_back(
        Count(other, "sample") +
        " of other data types, places or workloads left out: one of each place is taken");
  }
  if (assumed.other_days > 0) {
    grid.messages.push_back(
        Count(assumed.other_days, "sample") +
        " left out: the library's own choice was not measured in the same run and on the same day");
  }
  if (assumed.apart > 0) {
    grid.messages.push_back(
        Format("at {} the library's own choice was measured in other runs than all configurations: "
               "gains hold only if nothing else changed in between",
               Count(assumed.apart, "size")));
  }
  if (assumed.unknown > 0) {
    grid.messages.push_back(Count(assumed.unknown, "configuration") + " left out that " +
                            std::string(LibraryTitle(grid.library)) + " has no names for");
  }
  if (grid.scenes.empty()) return NotFound("no measurement in the data can be used");
  return grid;
}

}  // namespace diapason::model
