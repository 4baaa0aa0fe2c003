#include "cli/commands/model/model_data.h"

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "dataset/import.h"
#include "dataset/words.h"

namespace diapason::cli {
namespace {

constexpr size_t kLargestFile = size_t{256} << 20;
constexpr char kStoreStart[] = "SQLite format 3";

bool IsStore(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  char start[sizeof(kStoreStart) - 1] = {};
  const size_t read = std::fread(start, 1, sizeof(start), file);
  std::fclose(file);
  return std::string_view(start, read) == kStoreStart;
}

Result<dataset::StoreContents> ReadPlainFile(const std::string& path, const DataFilter& filter) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestFile));
  dataset::ImportOptions options;
  options.library = filter.library;
  ASSIGN_OR_RETURN(dataset::Import import, dataset::ImportText(text, path, options));
  dataset::StoreContents contents = dataset::ContentsOf(std::move(import));
  std::erase_if(contents.records, [&](const dataset::StoredSample& record) {
    const dataset::Point& point = record.sample.point;
    return (filter.nodes > 0 && point.nodes != filter.nodes) ||
           (filter.ranks > 0 && point.ranks != filter.ranks) ||
           (!filter.run.empty() && contents.runs[record.run].id != filter.run) ||
           (!filter.collective.empty() &&
            FoldName(point.collective) != FoldName(filter.collective));
  });
  return contents;
}

Result<double> ParseConfidence(const std::string& text) {
  const Result<double> confidence = ParseShare(text, "confidence");
  if (confidence.ok() && confidence.value() < 0.5) {
    return Invalid(
        "a confidence below 50% would choose configurations that are more likely slower");
  }
  return confidence;
}

}  // namespace

void AddModelData(CommandLine* command, ModelData* data, bool required) {
  command->Heading("Measurements");
  Option* const files = command
                            ->AddOption("--data", data->files,
                                        "Stores, or files that `data import` accepts: "
                                        "optimized_metrics.csv, grids, logs of nccl-tests")
                            ->TypeName("FILE")
                            ->Expect(1, 4096);
  if (required) files->Required();
  command
      ->AddOption(
          "--library", data->filter.library,
          "Library of data that name none, and filter for data that do: nccl, rccl, gloo, openmpi")
      ->TypeName("NAME")
      ->Words(LibraryWords())
      ->Check(ReadBy(ParseLibrary));
  command
      ->AddOption("--collective", data->filter.collective,
                  "Use only measurements of this collective")
      ->TypeName("NAME")
      ->Words(MeasuredCollectives())
      ->Check(ReadBy(dataset::ParseCollectiveWord));
  command->AddOption("--nodes", data->filter.nodes, "Use only measurements on this number of nodes")
      ->Check(Positive());
  command->AddOption("--ranks", data->filter.ranks, "Use only measurements on this number of ranks")
      ->Check(Positive());
  command->AddOption("--run", data->filter.run, "Use only measurements of this run")
      ->TypeName("ID");
  Option* const simulated =
      command->AddFlag("--simulated", data->filter.simulated, "Use only simulated data");
  command->AddFlag("--measured", data->filter.measured, "Use only measured data")
      ->Excludes(simulated);
  command->Heading("");
}

Result<model::Grid> ReadGrid(const ModelData& data, const model::GridOptions& options) {
  model::GridOptions wanted = options;
  if (!data.filter.library.empty()) {
    ASSIGN_OR_RETURN(const Library library, ParseLibrary(data.filter.library));
    wanted.library = library;
  }
  // A store may hold runs without a library; they are assigned to the given one.
  ModelData asked = data;
  if (wanted.library.has_value()) asked.filter.library = LibraryName(*wanted.library);
  dataset::StoreContents all;
  for (const std::string& file : asked.files) {
    DataFilter filter = asked.filter;
    Result<dataset::StoreContents> read = Invalid("");
    if (IsStore(file)) {
      filter.library.clear();
      read = ReadStore(file, filter);
    } else {
      read = ReadPlainFile(file, filter);
    }
    if (!read.ok()) return read.status();
    const size_t first = all.runs.size();
    for (dataset::SampleRun& run : read.value().runs) {
      const bool twice =
          std::any_of(all.runs.begin(), all.runs.end(),
                      [&](const dataset::SampleRun& one) { return one.id == run.id; });
      if (twice) Warn("run " + run.id + " is in several files and is counted repeatedly");
      all.runs.push_back(std::move(run));
    }
    for (dataset::StoredSample& record : read.value().records) {
      all.records.push_back({first + record.run, std::move(record.sample)});
    }
  }
  ASSIGN_OR_RETURN(model::Grid grid, model::MakeGrid(all, wanted));
  for (const std::string& message : grid.messages) Warn(message);
  if (grid.simulated) Warn("the data are simulated");
  return grid;
}

void AddChoiceFlags(CommandLine* command, ChoiceFlags* flags,
                    const model::ChoiceOptions& defaults) {
  command
      ->AddOption("--margin", flags->margin,
                  "Least gain over the library's own choice that justifies a change")
      ->TypeName("SHARE")
      ->Check(ShareOf("margin"))
      ->Default(Format("{:g}%", 100 * defaults.margin));
  command
      ->AddOption("--confidence", flags->confidence,
                  "Least confidence that a change is faster at all")
      ->TypeName("SHARE")
      ->Check(ReadBy(ParseConfidence))
      ->Default(Format("{:g}%", 100 * defaults.confidence));
}

Status ReadChoiceFlags(const ChoiceFlags& flags, model::ChoiceOptions* options) {
  if (!flags.margin.empty()) {
    ASSIGN_OR_RETURN(const double margin, ParseShare(flags.margin, "margin"));
    options->margin = margin;
    options->margin_unmeasured = std::max(options->margin_unmeasured, margin);
  }
  if (!flags.confidence.empty()) {
    ASSIGN_OR_RETURN(const double confidence, ParseConfidence(flags.confidence));
    options->confidence = confidence;
    options->confidence_unmeasured = std::max(options->confidence_unmeasured, confidence);
  }
  return {};
}

double Short(double value) { return std::strtod(Format("{:.6g}", value).c_str(), nullptr); }

}  // namespace diapason::cli
