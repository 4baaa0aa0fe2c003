#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/framework/command.h"
#include "cli/commands/data/data.h"
#include "cli/framework/json_text.h"
#include "dataset/export.h"
#include "dataset/summary.h"
#include "dataset/words.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using dataset::Contender;
using dataset::Contest;
using dataset::Printable;
using nlohmann::ordered_json;
using report::Table;

// Configurations that are shown of a size unless all are asked for.
constexpr size_t kShown = 8;

std::string WhenText(double seconds) {
  if (seconds <= 0 || seconds > 1e11) return "-";
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm utc{};
  gmtime_r(&whole, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &utc);
  return text;
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : Printable(text); }

std::string LibraryText(const dataset::Machine& machine) {
  return OrDash(std::string(Trim(machine.library + " " + machine.library_version)));
}

std::string MachineText(const dataset::Machine& machine) {
  std::string text = machine.gpu;
  if (!machine.topology.empty()) text += (text.empty() ? "" : ", ") + machine.topology;
  if (machine.simulated) text = "simulated" + (text.empty() ? "" : ": " + text);
  return OrDash(text);
}

void PrintRuns(const dataset::Contents& contents, const std::string& store) {
  std::vector<size_t> samples(contents.runs.size());
  for (const dataset::Record& record : contents.records) ++samples[record.run];
  std::printf("%s: %s of %s\n\n", store.c_str(), Count(contents.records.size(), "sample").c_str(),
              Count(contents.runs.size(), "run").c_str());
  Table table({"run", "when (UTC)", "source", "library", "machine", "samples", "from"});
  table.SetAlign({Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft,
                  Table::Align::kLeft, Table::Align::kLeft, Table::Align::kRight});
  for (size_t i = 0; i < contents.runs.size(); ++i) {
    const dataset::Run& run = contents.runs[i];
    std::string from = Printable(run.origin, 120);
    if (run.state != dataset::Run::State::kDone) {
      from += std::string(" (") + dataset::StateName(run.state) + ")";
    }
    table.Add({Printable(run.id, 40), WhenText(run.started), OrDash(run.source),
               LibraryText(run.machine), MachineText(run.machine), Format("%zu", samples[i]),
               from});
  }
  std::printf("%s", table.Text().c_str());
}

std::string BusText(const Contender& contender) {
  if (contender.point.kind == dataset::Point::Kind::kIteration || !contender.fine()) return "-";
  return Format("%.4g", dataset::BusBandwidth(contender.point, contender.median) * 1e-9);
}

std::string AgainstText(const Contest& contest, const Contender& contender) {
  if (!contest.standard || !contest.contenders[*contest.standard].fine() || !contender.fine()) {
    return "-";
  }
  return Format("%.2f x", contest.contenders[*contest.standard].median / contender.median);
}

std::string MarkText(const Contest& contest, size_t index) {
  const Contender& contender = contest.contenders[index];
  if (!contender.fine()) {
    return std::string(OutcomeName(contender.failure)) +
           (contender.note.empty() ? "" : ": " + Printable(contender.note, 80));
  }
  std::string mark;
  if (index == 0) {
    mark = contest.contenders.size() > 1 && contest.contenders[1].fine() ? "best" : "";
    if (!mark.empty() && contest.TiesWithBest(1)) mark = "best, tied";
  } else if (contest.TiesWithBest(index)) {
    mark = "tie";
  }
  if (contender.failures > 0) {
    mark += (mark.empty() ? "" : "; ") +
            Format("%zu times %s", contender.failures, OutcomeName(contender.failure));
  }
  return mark;
}

std::string IntervalText(const Contender& contender) {
  // One sample has no interval.
  if (contender.seconds.size() < 2) return "-";
  return "[" + dataset::TimeText(contender.interval.low) + ", " +
         dataset::TimeText(contender.interval.high) + "]";
}

void PrintSamples(const dataset::Contents& contents, const Contest& contest) {
  Table table({"configuration", "run", "round", "time", "coarse", "calls", ""});
  table.SetAlign({Table::Align::kLeft, Table::Align::kLeft, Table::Align::kRight,
                  Table::Align::kRight, Table::Align::kRight, Table::Align::kRight});
  for (const dataset::Record& record : contents.records) {
    const dataset::Sample& sample = record.sample;
    const dataset::Machine& machine = contents.runs[record.run].machine;
    if (!sample.point.SameContext(contest.context) || machine.simulated != contest.simulated ||
        machine.library != contest.library) {
      continue;
    }
    const bool fine = sample.outcome == dataset::Outcome::kFine;
    table.Add({sample.point.ConfigText(), Printable(contents.runs[record.run].id, 40),
               Format("%d", sample.round),
               std::isnan(sample.seconds) ? "-" : dataset::TimeText(sample.seconds),
               sample.coarse > 0 ? Format("%.2g %%", sample.coarse * 100) : "exact",
               Format("%lld", static_cast<long long>(sample.iterations)),
               fine ? "" : OutcomeName(sample.outcome) + (": " + Printable(sample.note, 80))});
  }
  std::printf("\n%s", table.Text().c_str());
}

void PrintContest(const dataset::Contents& contents, const Contest& contest,
                  const DataShow& asked) {
  std::printf("\n%s%s, %s%s\n", contest.simulated ? "SIMULATED: " : "",
              Printable(dataset::ContextText(contest.context), 400).c_str(),
              dataset::SizeText(contest.context.bytes).c_str(),
              contest.library.empty() ? "" : (", " + Printable(contest.library)).c_str());
  Table table(
      {"configuration", "samples", "median", "95 % interval", "busbw GB/s", "speed-up", ""});
  table.SetAlign({Table::Align::kLeft, Table::Align::kRight, Table::Align::kRight,
                  Table::Align::kRight, Table::Align::kRight, Table::Align::kRight});
  size_t hidden = 0;
  for (size_t i = 0; i < contest.contenders.size(); ++i) {
    const Contender& contender = contest.contenders[i];
    if (!asked.all && i >= kShown && contender.fine() && contest.standard != i) {
      ++hidden;
      continue;
    }
    table.Add({Printable(contender.point.ConfigText()),
               Format("%zu", contender.seconds.size() + contender.failures),
               contender.fine() ? dataset::TimeText(contender.median) : "-",
               IntervalText(contender), BusText(contender), AgainstText(contest, contender),
               MarkText(contest, i)});
  }
  std::printf("%s", table.Text().c_str());
  if (hidden > 0) std::printf("and %zu slower ones; --all shows them\n", hidden);
  if (asked.samples) PrintSamples(contents, contest);
}

ordered_json ContestJson(const Contest& contest) {
  const dataset::Point& context = contest.context;
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < contest.contenders.size(); ++i) {
    const Contender& contender = contest.contenders[i];
    ordered_json json = {{"configuration", contender.point.ConfigText()},
                         {"algorithm", contender.point.algorithm},
                         {"protocol", contender.point.protocol},
                         {"channels", contender.point.channels},
                         {"environment", contender.point.environment},
                         {"samples", contender.seconds.size()},
                         {"failures", contender.failures}};
    if (contender.fine()) {
      json["median"] = contender.median;
      json["low"] = contender.interval.low;
      json["high"] = contender.interval.high;
      if (context.kind == dataset::Point::Kind::kCollective) {
        json["busbw"] = dataset::BusBandwidth(contender.point, contender.median);
      }
      json["best"] = i == 0;
      json["tie"] = i > 0 && contest.TiesWithBest(i);
      if (contest.standard && contest.contenders[*contest.standard].fine()) {
        json["speedup"] = contest.contenders[*contest.standard].median / contender.median;
      }
    } else {
      json["outcome"] = OutcomeName(contender.failure);
      json["note"] = contender.note;
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
          {"library", contest.library},
          {"simulated", contest.simulated},
          {"configurations", list}};
}

int PrintJson(const dataset::Contents& contents, const std::vector<Contest>& contests) {
  ordered_json runs = ordered_json::array();
  for (const dataset::Run& run : contents.runs) {
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
  for (const Contest& contest : contests) list.push_back(ContestJson(contest));
  const ordered_json json = {{"runs", runs}, {"contexts", list}};
  std::printf("%s\n", JsonText(json).c_str());
  return kExitFine;
}

}  // namespace

int RunDataShow(const DataShow& asked) {
  const Result<dataset::Contents> read = ReadStore(asked.store, asked.filter);
  if (!read.ok()) return Fail(read.status());
  const dataset::Contents& contents = read.value();
  const std::vector<Contest> contests = dataset::Summarise(contents);
  if (asked.json) return PrintJson(contents, contests);
  PrintRuns(contents, asked.store);
  for (const Contest& contest : contests) PrintContest(contents, contest, asked);
  return kExitFine;
}

}  // namespace diapason::cli
