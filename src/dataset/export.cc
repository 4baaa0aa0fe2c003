#include "dataset/export.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "base/units.h"
#include "dataset/csv.h"
#include "dataset/export_columns.h"
#include "dataset/summary.h"
#include "dataset/words.h"

namespace diapason::dataset {
namespace {

std::string RunCells(const SampleRun& run) {
  const MachineInfo& machine = run.machine;
  std::string line;
  for (const std::string& cell :
       {run.id, run.source, run.origin, NumberText(run.started), std::string(StateName(run.state)),
        run.plan, machine.library, machine.library_version, machine.gpu, machine.driver,
        machine.topology, machine.hosts, machine.tool, std::string(machine.simulated ? "1" : "0"),
        EnvironmentText(machine.environment)}) {
    line += CsvCell(cell) + ",";
  }
  return line;
}

std::string SampleCells(const Sample& sample) {
  const Point& point = sample.point;
  std::string line =
      Format("{},{},{},{},{},{},{},{},{},{},{},{},{},",
             point.kind == Point::Kind::kIteration ? "iteration" : "collective",
             CsvCell(point.collective), point.bytes, point.nodes, point.ranks, CsvCell(point.type),
             CsvCell(point.reduce), point.root, point.in_place ? 1 : 0, CsvCell(point.algorithm),
             CsvCell(point.protocol), point.channels, point.segment_bytes);
  line += CsvCell(point.environment) + "," + CsvCell(point.workload) + ",";
  line += Format("{},{},{},{},{},{},", sample.round, NumberText(sample.seconds),
                 NumberText(sample.coarse), sample.iterations, sample.wrong,
                 OutcomeName(sample.outcome));
  line += CsvCell(sample.note) + "," + NumberText(sample.at) + ",";
  if (point.kind == Point::Kind::kCollective && sample.seconds > 0) {
    line += Format("{:.6g}", BusBandwidth(point, sample.seconds) * 1e-9);
  }
  return line;
}

// One configuration of a cell, in place and out of place.
struct ExportedConfig {
  const ConfigSummary* out_of_place = nullptr;
  const ConfigSummary* in_place = nullptr;
};

struct CellKey {
  std::string collective;
  int nodes;
  int ranks;
  uint64_t bytes;
  auto operator<=>(const CellKey&) const = default;
};

// By type, reduction and root, then by configuration: the format has no columns for the former.
struct Flavour {
  std::map<std::tuple<std::string, std::string, int>, ExportedConfig> candidates;
  size_t samples = 0;
};
using ExportedConfigs = std::map<std::tuple<std::string, std::string, int>, Flavour>;

double BusBandwidthOf(const ConfigSummary* entry) {
  return entry == nullptr ? 0 : BusBandwidth(entry->point, entry->median);
}

// The default's channels are unknown, and so are those of a pair without a number.
int ChannelRank(const Point& point) {
  if (point.IsDefault()) return 0;
  return point.channels > 0 ? point.channels : 1 << 20;
}

const ExportedConfig* Best(const Flavour& flavour, double tolerance) {
  // In place and out of place are different measurements: one of them is used for the whole cell.
  const bool in_place =
      std::any_of(flavour.candidates.begin(), flavour.candidates.end(),
                  [](const auto& entry) { return entry.second.in_place != nullptr; });
  const auto score = [&](const ExportedConfig& candidate) {
    return BusBandwidthOf(in_place ? candidate.in_place : candidate.out_of_place);
  };
  double best = 0;
  for (const auto& [config, candidate] : flavour.candidates)
    best = std::max(best, score(candidate));
  const ExportedConfig* chosen = nullptr;
  for (const auto& [config, candidate] : flavour.candidates) {
    if (score(candidate) <= 0 || score(candidate) < best * (1 - tolerance)) continue;
    const auto rank = [&](const ExportedConfig& one) {
      const ConfigSummary* any = in_place ? one.in_place : one.out_of_place;
      return std::make_tuple(ChannelRank(any->point), -score(one));
    };
    if (chosen == nullptr || rank(candidate) < rank(*chosen)) chosen = &candidate;
  }
  return chosen;
}

std::string UpperOrDefault(const std::string& word) {
  if (word.empty()) return "DEFAULT";
  std::string upper = word;
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::string Line(const CellKey& key, const ExportedConfig& candidate) {
  const Point& point =
      (candidate.in_place != nullptr ? candidate.in_place : candidate.out_of_place)->point;
  std::string line =
      Format("{},{},{},{},{},{},{}", CollectiveTableWord(key.collective), key.nodes, key.ranks,
             key.bytes, UpperOrDefault(point.algorithm), UpperOrDefault(point.protocol),
             point.channels > 0 ? point.channels : -1);
  for (const ConfigSummary* entry : {candidate.out_of_place, candidate.in_place}) {
    line += entry == nullptr
                ? ",,"
                : Format(",{:.6g},{:.6g}", entry->median * 1e6, BusBandwidthOf(entry) * 1e-9);
  }
  return line;
}

}  // namespace

const char* StateName(SampleRun::State state) {
  switch (state) {
    case SampleRun::State::kRunning:
      return "running";
    case SampleRun::State::kDone:
      return "done";
    case SampleRun::State::kInterrupted:
      return "interrupted";
  }
  return "?";
}

std::string NumberText(double value) {
  if (!std::isfinite(value)) return "";
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return {text, end};
}

std::string ExportCsv(const StoreContents& contents) {
  std::string text(kExportTitles);
  text += "\n";
  std::vector<std::vector<const Sample*>> samples(contents.runs.size());
  for (const StoredSample& record : contents.records) samples[record.run].push_back(&record.sample);
  for (size_t i = 0; i < contents.runs.size(); ++i) {
    const std::string run = RunCells(contents.runs[i]);
    if (samples[i].empty()) text += run + std::string(kSampleColumns - 1, ',') + "\n";
    for (const Sample* sample : samples[i]) text += run + SampleCells(*sample) + "\n";
  }
  return text;
}

Result<std::string> ExportOptimized(const StoreContents& contents, double tolerance,
                                    std::vector<std::string>* notes) {
  const std::vector<ConfigGroup> groups = Summarise(contents);
  std::map<CellKey, ExportedConfigs> cells;
  std::set<std::string> libraries;
  std::set<bool> simulated;
  size_t left_out = 0;
  for (const ConfigGroup& group : groups) {
    const Point& context = group.context;
    if (context.kind != Point::Kind::kCollective) continue;
    for (const ConfigSummary& entry : group.entries) {
      if (!entry.fine()) continue;
      const Point& point = entry.point;
      if (!point.environment.empty() || point.segment_bytes > 0) {
        ++left_out;
        continue;
      }
      libraries.insert(group.library);
      simulated.insert(group.simulated);
      Flavour& flavour = cells[{context.collective, context.nodes, context.ranks, context.bytes}]
                              [{context.type, context.reduce, context.root}];
      flavour.samples += entry.seconds.size();
      ExportedConfig& candidate =
          flavour.candidates[{point.algorithm, point.protocol, point.channels}];
      (point.in_place ? candidate.in_place : candidate.out_of_place) = &entry;
    }
  }
  if (simulated.size() > 1) {
    return Invalid(
        "simulated and measured samples cannot stand in one table: choose with "
        "--simulated or --measured");
  }
  if (libraries.size() > 1) {
    return Invalid("samples of several libraries (" +
                   Join({libraries.begin(), libraries.end()}, ", ") +
                   ") cannot stand in one table: choose with --library");
  }
  const bool all_simulated = simulated.contains(true);
  std::string text =
      "collective,num_nodes,num_gpus,size_bytes,algo,proto,nchannels,time_oop,busbw_oop,time_ip,"
      "busbw_ip";
  text += all_simulated ? ",simulated\n" : "\n";
  size_t mixed = 0;
  for (const auto& [key, cell] : cells) {
    const auto most = std::max_element(cell.begin(), cell.end(), [](const auto& a, const auto& b) {
      return a.second.samples < b.second.samples;
    });
    if (cell.size() > 1) ++mixed;
    const ExportedConfig* best = Best(most->second, tolerance);
    if (best != nullptr) text += Line(key, *best) + (all_simulated ? ",1\n" : "\n");
  }
  if (left_out > 0) {
    notes->push_back(
        Format("{} configurations have an environment or a segment size of their "
               "own; this format cannot hold them",
               left_out));
  }
  if (mixed > 0) {
    notes->push_back(
        Format("{} cells were measured with several data types, reductions or roots; "
               "the one with most samples was taken",
               mixed));
  }
  if (all_simulated) {
    notes->push_back("every figure is simulated; the column 'simulated' says so");
  }
  return text;
}

}  // namespace diapason::dataset
