#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/interval_text.h"
#include "base/text.h"
#include "cli/commands/data/data.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "dataset/export.h"
#include "dataset/summary.h"
#include "dataset/words.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using dataset::ConfigGroup;
using dataset::ConfigSummary;
using dataset::Printable;
using nlohmann::ordered_json;
using report::Table;

// Number of configurations shown for a size without --all.
constexpr size_t kShown = 8;

std::string WhenText(double seconds) {
  if (seconds <= 0 || seconds > 1e11) return "-";
  return UtcText(static_cast<time_t>(seconds), "%Y-%m-%d %H:%M");
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : Printable(text); }

std::string LibraryText(const dataset::MachineInfo& machine) {
  return OrDash(std::string(Trim(machine.library + " " + machine.library_version)));
}

std::string MachineText(const dataset::MachineInfo& machine) {
  std::string text = machine.gpu;
  if (!machine.topology.empty()) text += (text.empty() ? "" : ", ") + machine.topology;
  if (machine.simulated) text = "simulated" + (text.empty() ? "" : ": " + text);
  return OrDash(text);
}

void PrintRuns(const dataset::StoreContents& contents, const std::string& store) {
  std::vector<size_t> samples(contents.runs.size());
  for (const dataset::StoredSample& record : contents.records) ++samples[record.run];
  PrintOut("{}: {} of {}\n\n", store, Count(contents.records.size(), "sample"),
           Count(contents.runs.size(), "run"));
  Table table({"run", "when (UTC)", "source", "library", "machine", "samples", "from"});
  table.SetAlign({Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft,
                  Table::Align::kLeft, Table::Align::kLeft, Table::Align::kRight});
  table.SetImportance({9, 7, 3, 5, 4, 8, 2});
  for (size_t i = 0; i < contents.runs.size(); ++i) {
    const dataset::SampleRun& run = contents.runs[i];
    std::string from = Printable(run.origin, 120);
    if (run.state != dataset::SampleRun::State::kDone) {
      from += std::string(" (") + dataset::StateName(run.state) + ")";
    }
    table.Add({Printable(run.id, 40), WhenText(run.started), OrDash(run.source),
               LibraryText(run.machine), MachineText(run.machine), Format("{}", samples[i]), from});
  }
  PrintOut("{}", table.Text());
}

std::string BusText(const ConfigSummary& entry) {
  if (entry.point.kind == dataset::Point::Kind::kIteration || !entry.fine()) return "-";
  return Format("{:.4g}", dataset::BusBandwidth(entry.point, entry.median) * 1e-9);
}

std::string AgainstText(const ConfigGroup& group, const ConfigSummary& entry) {
  if (!group.standard || !group.entries[*group.standard].fine() || !entry.fine()) {
    return "-";
  }
  return Format("{:.2f} x", group.entries[*group.standard].median / entry.median);
}

std::string MarkText(const ConfigGroup& group, size_t index) {
  const ConfigSummary& entry = group.entries[index];
  if (!entry.fine()) {
    return std::string(OutcomeName(entry.failure)) +
           (entry.note.empty() ? "" : ": " + Printable(entry.note, 80));
  }
  std::string mark;
  if (index == 0) {
    mark = group.entries.size() > 1 && group.entries[1].fine() ? "best" : "";
    if (!mark.empty() && group.TiesWithBest(1)) mark = "best, tied";
  } else if (group.TiesWithBest(index)) {
    mark = "tie";
  }
  if (entry.failures > 0) {
    mark += (mark.empty() ? "" : "; ") +
            Format("{} times {}", entry.failures, OutcomeName(entry.failure));
  }
  return mark;
}

std::string SpreadText(const ConfigSummary& entry) {
  return IntervalText(dataset::TimeText(entry.interval.low), dataset::TimeText(entry.interval.high),
                      entry.seconds.size());
}

void PrintSamples(const dataset::StoreContents& contents, const ConfigGroup& group) {
  Table table({"configuration", "run", "round", "time", "coarse", "calls", ""});
  table.SetAlign({Table::Align::kLeft, Table::Align::kLeft, Table::Align::kRight,
                  Table::Align::kRight, Table::Align::kRight, Table::Align::kRight});
  table.SetImportance({9, 5, 6, 9, 2, 3, 7});
  for (const dataset::StoredSample& record : contents.records) {
    const dataset::Sample& sample = record.sample;
    const dataset::MachineInfo& machine = contents.runs[record.run].machine;
    if (!sample.point.SameContext(group.context) || machine.simulated != group.simulated ||
        machine.library != group.library) {
      continue;
    }
    const bool fine = sample.outcome == dataset::SampleOutcome::kFine;
    table.Add({sample.point.ConfigText(), Printable(contents.runs[record.run].id, 40),
               Format("{}", sample.round),
               std::isnan(sample.seconds) ? "-" : dataset::TimeText(sample.seconds),
               sample.coarse > 0 ? Format("{:.2g} %", sample.coarse * 100) : "exact",
               Format("{}", sample.iterations),
               fine ? "" : OutcomeName(sample.outcome) + (": " + Printable(sample.note, 80))});
  }
  PrintOut("\n{}", table.Text());
}

void PrintConfigGroup(const dataset::StoreContents& contents, const ConfigGroup& group,
                      const DataShow& asked) {
  PrintOut("\n{}{}, {}{}\n", group.simulated ? "SIMULATED: " : "",
           Printable(dataset::ContextText(group.context), 400),
           dataset::SizeText(group.context.bytes),
           group.library.empty() ? "" : (", " + Printable(group.library)));
  Table table(
      {"configuration", "samples", "median", "[95 %] or (range)", "busbw GB/s", "speed-up", ""});
  table.SetAlign({Table::Align::kLeft, Table::Align::kRight, Table::Align::kRight,
                  Table::Align::kRight, Table::Align::kRight, Table::Align::kRight});
  table.SetImportance({9, 2, 9, 1, 3, 8, 7});
  size_t hidden = 0;
  for (size_t i = 0; i < group.entries.size(); ++i) {
    const ConfigSummary& entry = group.entries[i];
    if (!asked.all && i >= kShown && entry.fine() && group.standard != i) {
      ++hidden;
      continue;
    }
    table.Add({Printable(entry.point.ConfigText()),
               Format("{}", entry.seconds.size() + entry.failures),
               entry.fine() ? dataset::TimeText(entry.median) : "-", SpreadText(entry),
               BusText(entry), AgainstText(group, entry), MarkText(group, i)});
    if (group.standard && group.entries[*group.standard].fine() && entry.fine()) {
      table.SetTone(5, report::ToneOfGain(group.entries[*group.standard].median / entry.median));
    }
    if (!entry.fine()) table.SetTone(6, Table::Tone::kBad);
  }
  PrintOut("{}", table.Text());
  if (hidden > 0) PrintOut("and {} slower ones; --all shows them\n", hidden);
  if (asked.samples) PrintSamples(contents, group);
}

ordered_json ConfigGroupJson(const ConfigGroup& group) {
  const dataset::Point& context = group.context;
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < group.entries.size(); ++i) {
    const ConfigSummary& entry = group.entries[i];
    ordered_json json = {{"configuration", entry.point.ConfigText()},
                         {"algorithm", entry.point.algorithm},
                         {"protocol", entry.point.protocol},
                         {"channels", entry.point.channels},
                         {"environment", entry.point.environment},
                         {"samples", entry.seconds.size()},
                         {"failures", entry.failures}};
    if (entry.fine()) {
      json["median"] = entry.median;
      json["low"] = entry.interval.low;
      json["high"] = entry.interval.high;
      if (!HasInterval95(entry.seconds.size())) json["range"] = true;  // of all samples
      if (context.kind == dataset::Point::Kind::kCollective) {
        json["busbw"] = dataset::BusBandwidth(entry.point, entry.median);
      }
      json["best"] = i == 0;
      json["tie"] = i > 0 && group.TiesWithBest(i);
      if (group.standard && group.entries[*group.standard].fine()) {
        json["speedup"] = group.entries[*group.standard].median / entry.median;
      }
    } else {
      json["outcome"] = OutcomeName(entry.failure);
      json["note"] = entry.note;
    }
    list.push_back(std::move(json));
  }
  const bool iteration = context.kind == dataset::Point::Kind::kIteration;
  return {{"kind", iteration ? "iteration" : "collective"},
          {"collective", context.collective},
          {"bytes", context.bytes},
          {"nodes", context.nodes},
          {"ranks", context.ranks},
          {"type", context.type},
          {"reduce", context.reduce},
          {"root", context.root},
          {"in_place", context.in_place},
          {"workload", context.workload},
          {"library", group.library},
          {"simulated", group.simulated},
          {"configurations", list}};
}

int PrintJson(const dataset::StoreContents& contents, const std::vector<ConfigGroup>& groups) {
  ordered_json runs = ordered_json::array();
  for (const dataset::SampleRun& run : contents.runs) {
    runs.push_back({{"run", run.id},
                    {"started", run.started},
                    {"source", run.source},
                    {"origin", run.origin},
                    {"state", dataset::StateName(run.state)},
                    {"library", run.machine.library},
                    {"library_version", run.machine.library_version},
                    {"gpu", run.machine.gpu},
                    {"topology", run.machine.topology},
                    {"hosts", run.machine.hosts},
                    {"simulated", run.machine.simulated}});
  }
  ordered_json list = ordered_json::array();
  for (const ConfigGroup& group : groups) list.push_back(ConfigGroupJson(group));
  const ordered_json json = {{"runs", runs}, {"contexts", list}};
  PrintOut("{}\n", JsonText(json));
  return kExitFine;
}

}  // namespace

Result<int> RunDataShow(const DataShow& asked) {
  ASSIGN_OR_RETURN(const dataset::StoreContents read, ReadStore(asked.store, asked.filter));
  const dataset::StoreContents& contents = read;
  const std::vector<ConfigGroup> groups = dataset::Summarise(contents);
  if (asked.json) return PrintJson(contents, groups);
  PrintRuns(contents, asked.store);
  for (const ConfigGroup& group : groups) PrintConfigGroup(contents, group, asked);
  return kExitFine;
}

}  // namespace diapason::cli
