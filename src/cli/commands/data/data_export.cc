#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/data/data.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "dataset/export.h"
#include "dataset/words.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

ordered_json Optional(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

std::string Json(const dataset::StoreContents& contents) {
  ordered_json runs = ordered_json::array();
  for (const dataset::SampleRun& run : contents.runs) {
    const dataset::MachineInfo& machine = run.machine;
    runs.push_back({{"run", run.id},
                    {"source", run.source},
                    {"origin", run.origin},
                    {"started", run.started},
                    {"state", dataset::StateName(run.state)},
                    {"plan", run.plan},
                    {"library", machine.library},
                    {"library_version", machine.library_version},
                    {"gpu", machine.gpu},
                    {"driver", machine.driver},
                    {"topology", machine.topology},
                    {"hosts", machine.hosts},
                    {"tool", machine.tool},
                    {"simulated", machine.simulated},
                    {"environment", machine.environment}});
  }
  ordered_json samples = ordered_json::array();
  for (const dataset::StoredSample& record : contents.records) {
    const dataset::Sample& sample = record.sample;
    const dataset::Point& point = sample.point;
    const bool iteration = point.kind == dataset::Point::Kind::kIteration;
    samples.push_back(
        {{"run", contents.runs[record.run].id},
         {"simulated", contents.runs[record.run].machine.simulated},
         {"kind", iteration ? "iteration" : "collective"},
         {"collective", point.collective},
         {"bytes", point.bytes},
         {"nodes", point.nodes},
         {"ranks", point.ranks},
         {"type", point.type},
         {"reduce", point.reduce},
         {"root", point.root},
         {"in_place", point.in_place},
         {"algorithm", point.algorithm},
         {"protocol", point.protocol},
         {"channels", point.channels},
         {"segment_bytes", point.segment_bytes},
         {"environment", point.environment},
         {"workload", point.workload},
         {"round", sample.round},
         {"seconds", Optional(sample.seconds)},
         {"coarse", sample.coarse},
         {"iterations", sample.iterations},
         {"wrong", sample.wrong},
         {"outcome", dataset::OutcomeName(sample.outcome)},
         {"note", sample.note},
         {"at", sample.at},
         {"busbw", iteration || !(sample.seconds > 0)
                       ? ordered_json(nullptr)
                       : ordered_json(dataset::BusBandwidth(point, sample.seconds))}});
  }
  return JsonText(ordered_json({{"runs", runs}, {"samples", samples}}), 1) + "\n";
}

}  // namespace

Result<int> RunDataExport(const DataExport& asked) {
  ASSIGN_OR_RETURN(const double tolerance, ParseShare(asked.tolerance, "tolerance"));
  ASSIGN_OR_RETURN(const dataset::StoreContents contents, ReadStore(asked.store, asked.filter));
  std::string text;
  if (asked.format == "optimized") {
    std::vector<std::string> notes;
    ASSIGN_OR_RETURN(const std::string table,
                     dataset::ExportOptimized(contents, tolerance, &notes));
    for (const std::string& note : notes) Warn(note);
    text = table;
  } else {
    text = asked.format == "csv" ? dataset::ExportCsv(contents) : Json(contents);
  }
  if (asked.output.empty()) {
    WriteOut(text);
    return kExitFine;
  }
  RETURN_IF_ERROR(WriteFileAtomically(asked.output, text));
  return kExitFine;
}

}  // namespace diapason::cli
