#include "cli/commands/bench/bench_result.h"

#include <nlohmann/json.hpp>

#include "base/interval_text.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/framework/json_text.h"
#include "domain/collectives.h"
#include "report/row_table.h"

namespace diapason::cli {
namespace {

using measure::TimingFigure;
using nlohmann::ordered_json;

std::string RedopName(const measure::Trial& trial) {
  return Reduces(trial.operation) ? ReduceOpName(trial.reduce) : "none";
}

int Root(const measure::Trial& trial) { return HasRoot(trial.operation) ? trial.root : -1; }

// The column widths of nccl-tests: digits are dropped before columns move.
std::string Micros(double seconds) {
  const double us = seconds * 1e6;
  if (us < 10000) return Format("{:.2f}", us);
  if (us < 100000) return Format("{:.1f}", us);
  return Format("{:.0f}", us);
}

std::string Gigabytes(double bytes_per_second) { return Format("{:.2f}", bytes_per_second * 1e-9); }

// Time, algbw, busbw and #wrong, or the outcome of a failure.
void AddFigure(const measure::Trial& trial, const TimingFigure& figure, int ranks,
               std::vector<std::string>* cells) {
  const std::string wrong = figure.wrong < 0 ? "N/A" : std::to_string(figure.wrong);
  if (!figure.fine()) {
    cells->insert(cells->end(), {dataset::OutcomeName(figure.outcome), "-", "-", wrong});
    return;
  }
  cells->insert(cells->end(),
                {Micros(figure.mean), Gigabytes(measure::AlgBandwidth(trial, figure.mean)),
                 Gigabytes(measure::BusBandwidth(trial, ranks, figure.mean)), wrong});
}

// "[1.20, 1.30]": the 95 % interval; "(1.20 to 1.30)": all of too few rounds for one.
std::string SpreadText(const TimingFigure& figure) {
  return IntervalText(Micros(figure.interval.low), Micros(figure.interval.high),
                      figure.rounds.size());
}

// The columns of nccl-tests, then the median, its interval and the ideal time.
report::RowTable BenchColumns() {
  return report::RowTable({{"size", 13, true, 99},
                           {"count", 13, true, 7, 1},
                           {"type", 9, true, 5, 1},
                           {"redop", 6, true, 2, 1},
                           {"root", 5, true, 1, 1},
                           {"time", 9, true, 15, 2},
                           {"algbw", 7, true, 12, 1},
                           {"busbw", 7, true, 14, 1},
                           {"#wrong", 7, true, 13, 1},
                           {"in-place time", 9, true, 9, 2},
                           {"in-place algbw", 7, true, 4, 1},
                           {"in-place busbw", 7, true, 8, 1},
                           {"in-place #wrong", 7, true, 3, 1},
                           {"median", 9, true, 11, 2},
                           {"95 % interval", 20, true, 10, 1},
                           {"ideal", 9, true, 6, 1}},
                          report::CurrentTableStyle().columns);
}

// The line above the titles, which names the groups of columns.
std::string GroupLine(const report::RowTable& columns) {
  struct Group {
    const char* title;
    size_t first;
    size_t end;
    size_t indent;
  };
  constexpr Group kGroups[] = {
      {"out-of-place", 5, 9, 10}, {"in-place", 9, 13, 12}, {"out-of-place", 13, 15, 3}};
  std::string line = "#" + std::string(columns.WidthOf(0, 5) - 1, ' ');
  for (const Group& group : kGroups) {
    const size_t width = columns.WidthOf(group.first, group.end);
    const std::string title = group.title;
    if (width == 0) continue;
    const size_t room = width > title.size() ? width - title.size() : 0;
    std::string part = std::string(std::min(group.indent, room), ' ') + title;
    part.resize(std::max(width, part.size()), ' ');
    line += "  " + part;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

double Microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

ordered_json FigureJson(const measure::Trial& trial, const TimingFigure& figure, int ranks) {
  ordered_json json;
  json["outcome"] = dataset::OutcomeName(figure.outcome);
  if (!figure.note.empty()) json["note"] = figure.note;
  json["wrong"] = figure.wrong < 0 ? ordered_json(nullptr) : ordered_json(figure.wrong);
  if (!figure.fine()) return json;
  json["mean_us"] = Microseconds(figure.mean);
  json["median_us"] = Microseconds(figure.median);
  json["low_us"] = Microseconds(figure.interval.low);
  json["high_us"] = Microseconds(figure.interval.high);
  if (!figure.HasInterval()) json["range"] = true;  // low and high are those of all rounds
  json["fastest_rank_us"] = Microseconds(figure.fastest);
  json["algbw_gb_per_s"] = measure::AlgBandwidth(trial, figure.mean) * 1e-9;
  json["busbw_gb_per_s"] = measure::BusBandwidth(trial, ranks, figure.mean) * 1e-9;
  ordered_json rounds = ordered_json::array();
  for (const double seconds : figure.rounds) rounds.push_back(Microseconds(seconds));
  json["rounds_us"] = std::move(rounds);
  return json;
}

std::string Dump(const ordered_json& json) { return JsonText(json) + "\n"; }

// The cells of one backend in a table of several.
void AddFigureCells(const BenchResult& result, size_t row, std::vector<std::string>* cells) {
  if (row >= result.rows.size()) {
    cells->insert(cells->end(), {"-", "-", "-"});
    return;
  }
  const BenchRow& one = result.rows[row];
  const TimingFigure& figure = one.out_of_place;
  if (!figure.fine()) {
    cells->insert(cells->end(), {dataset::OutcomeName(figure.outcome), "-", "-"});
    return;
  }
  cells->push_back(Micros(figure.median));
  cells->push_back(SpreadText(figure));
  cells->push_back(Gigabytes(measure::BusBandwidth(one.trial, result.subject.ranks, figure.mean)));
}

// The backend with the lowest median in a row, and those whose interval overlaps with its own: they
// do not differ.
std::string Fastest(const std::vector<BenchResult>& results, size_t row) {
  const auto figure = [row](const BenchResult& result) -> const TimingFigure* {
    if (row >= result.rows.size() || !result.rows[row].out_of_place.fine()) return nullptr;
    return &result.rows[row].out_of_place;
  };
  const BenchResult* best = nullptr;
  for (const BenchResult& result : results) {
    if (figure(result) == nullptr) continue;
    if (best == nullptr || figure(result)->median < figure(*best)->median) best = &result;
  }
  if (best == nullptr) return "-";
  std::string names = best->subject.backend;
  for (const BenchResult& result : results) {
    if (&result == best || figure(result) == nullptr) continue;
    if (figure(result)->interval.low <= figure(*best)->interval.high) {
      names += " or " + result.subject.backend;
    }
  }
  return names;
}

}  // namespace

double BenchResult::AverageBusBandwidth() const {
  double sum = 0;
  int figures = 0;
  for (const BenchRow& row : rows) {
    for (const TimingFigure* figure : {&row.out_of_place, &row.in_place}) {
      if (!figure->fine() || figure->rounds.empty()) continue;
      sum += measure::BusBandwidth(row.trial, subject.ranks, figure->mean);
      ++figures;
    }
  }
  return figures == 0 ? 0 : sum / figures;
}

int64_t BenchResult::Wrong() const {
  int64_t wrong = 0;
  for (const BenchRow& row : rows) {
    wrong += std::max<int64_t>(0, row.out_of_place.wrong);
    wrong += std::max<int64_t>(0, row.in_place.wrong);
  }
  return wrong;
}

std::string BenchHead(const BenchResult& result, const std::string& collective) {
  const measure::Subject& subject = result.subject;
  std::string text = Format("# {}, {}, {} on {}{}\n", collective, subject.description,
                            Count(static_cast<size_t>(subject.ranks), "rank"),
                            Count(static_cast<size_t>(subject.nodes), "node"),
                            subject.simulated ? "; every figure is simulated" : "");
  if (const std::string crowded = measure::CrowdedText(subject); !crowded.empty()) {
    text += "# " + crowded + "\n";
  }
  if (result.link > 0) {
    text += Format("# link: {} GB/s each way, {}; ideal: the bytes one link has to carry over it\n",
                   Gigabytes(result.link), result.link_source);
  } else {
    text += "# link: not known; use --link GB/s to set the bandwidth for the ideal time\n";
  }
  text +=
      "# time is the mean of the slowest rank; the median has its 95 % interval, or (the range) of "
      "fewer than six rounds; algbw and busbw are of the mean\n#\n";
  const report::RowTable columns = BenchColumns();
  if (const std::string left_out = columns.LeftOut(); !left_out.empty()) {
    text += "# " + left_out + "; --format csv has all\n#\n";
  }
  text += GroupLine(columns);
  text += columns.Line({"#        size", "count", "type", "redop", "root", "time", "algbw", "busbw",
                        "#wrong", "time", "algbw", "busbw", "#wrong", "median", "95 % interval",
                        "ideal"});
  text += columns.Line({"#         (B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
                        "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)"});
  return text;
}

std::string BenchLine(const BenchRow& row, int ranks) {
  const measure::Trial& trial = row.trial;
  std::vector<std::string> cells = {
      Format("{}", trial.bytes), Format("{}", measure::CountOf(trial, ranks)),
      measure::TestsTypeName(trial.type), RedopName(trial), Format("{}", Root(trial))};
  AddFigure(trial, row.out_of_place, ranks, &cells);
  if (row.has_in_place) {
    AddFigure(trial, row.in_place, ranks, &cells);
  } else {
    cells.insert(cells.end(), {"N/A", "-", "-", "N/A"});
  }
  const bool fine = row.out_of_place.fine();
  cells.push_back(fine ? Micros(row.out_of_place.median) : "-");
  cells.push_back(fine ? SpreadText(row.out_of_place) : "-");
  cells.push_back(row.ideal > 0 ? Micros(row.ideal) : "-");
  return BenchColumns().Line(cells);
}

std::string BenchTail(const BenchResult& result) {
  const int64_t wrong = result.Wrong();
  std::string text =
      Format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  text += Format("# Avg bus bandwidth    : {:g}\n", result.AverageBusBandwidth() * 1e-9);
  for (const BenchRow& row : result.rows) {
    for (const TimingFigure* figure : {&row.out_of_place, &row.in_place}) {
      if (figure->fine() || figure->note.empty()) continue;
      text += Format("# {}: {}: {}\n", FormatBytes(row.trial.bytes),
                     dataset::OutcomeName(figure->outcome), figure->note);
    }
  }
  return text;
}

std::string BenchJson(const BenchResult& result) {
  const measure::Subject& subject = result.subject;
  ordered_json json;
  json["backend"] = subject.backend;
  json["library"] = subject.machine.library;
  json["library_version"] = subject.machine.library_version;
  json["description"] = subject.description;
  json["simulated"] = subject.simulated;
  json["ranks"] = subject.ranks;
  json["nodes"] = subject.nodes;
  if (!measure::CrowdedText(subject).empty()) json["crowded"] = measure::CrowdedText(subject);
  if (result.link > 0) {
    json["link_gb_per_s"] = result.link * 1e-9;
    json["link_source"] = result.link_source;
  }
  ordered_json rows = ordered_json::array();
  for (const BenchRow& row : result.rows) {
    ordered_json one;
    one["collective"] = measure::CollectiveText(row.trial.operation);
    one["bytes"] = row.trial.bytes;
    one["count"] = measure::CountOf(row.trial, subject.ranks);
    one["type"] = measure::TestsTypeName(row.trial.type);
    one["redop"] = RedopName(row.trial);
    one["root"] = Root(row.trial);
    one["out_of_place"] = FigureJson(row.trial, row.out_of_place, subject.ranks);
    if (row.has_in_place) {
      one["in_place"] = FigureJson(row.trial, row.in_place, subject.ranks);
    }
    if (row.ideal > 0) one["ideal_us"] = Microseconds(row.ideal);
    rows.push_back(std::move(one));
  }
  json["rows"] = std::move(rows);
  json["average_busbw_gb_per_s"] = result.AverageBusBandwidth() * 1e-9;
  return Dump(json);
}

namespace {

void AddCsvRow(const measure::Subject& subject, const BenchRow& row, bool in_place,
               report::Table* table) {
  const TimingFigure& figure = in_place ? row.in_place : row.out_of_place;
  const auto micros = [&](double seconds) {
    return figure.fine() ? Format("{:.3f}", seconds * 1e6) : "";
  };
  const auto gigabytes = [&](double bandwidth) {
    return figure.fine() ? Format("{:.4f}", bandwidth * 1e-9) : "";
  };
  table->Add({subject.backend,
              subject.simulated ? "1" : "0",
              measure::CollectiveText(row.trial.operation),
              Format("{}", row.trial.bytes),
              Format("{}", measure::CountOf(row.trial, subject.ranks)),
              measure::TestsTypeName(row.trial.type),
              RedopName(row.trial),
              Format("{}", Root(row.trial)),
              Format("{}", subject.ranks),
              Format("{}", subject.nodes),
              in_place ? "1" : "0",
              dataset::OutcomeName(figure.outcome),
              micros(figure.mean),
              micros(figure.median),
              micros(figure.interval.low),
              micros(figure.interval.high),
              gigabytes(measure::AlgBandwidth(row.trial, figure.mean)),
              gigabytes(measure::BusBandwidth(row.trial, subject.ranks, figure.mean)),
              figure.wrong < 0 ? "" : Format("{}", figure.wrong),
              Format("{}", figure.rounds.size()),
              row.ideal > 0 ? Format("{:.3f}", row.ideal * 1e6) : ""});
}

}  // namespace

report::Table BenchTable(const std::vector<BenchResult>& results) {
  report::Table table({"backend",  "simulated",      "collective",     "bytes",     "count",
                       "type",     "redop",          "root",           "ranks",     "nodes",
                       "in_place", "outcome",        "mean_us",        "median_us", "low_us",
                       "high_us",  "algbw_gb_per_s", "busbw_gb_per_s", "wrong",     "rounds",
                       "ideal_us"});
  for (const BenchResult& result : results) {
    for (const BenchRow& row : result.rows) {
      AddCsvRow(result.subject, row, false, &table);
      if (row.has_in_place) AddCsvRow(result.subject, row, true, &table);
    }
  }
  return table;
}

std::string SideBySide(const std::vector<BenchResult>& results) {
  using Align = report::Table::Align;
  std::vector<std::string> titles = {"collective", "size", "type", "redop"};
  std::vector<Align> aligns = {Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft};
  std::vector<int> importance = {9, 9, 0, 0};
  std::string text;
  const BenchResult* longest = results.data();
  for (const BenchResult& result : results) {
    const measure::Subject& subject = result.subject;
    text += Format("# {}: {}{}\n", subject.backend, subject.description,
                   subject.simulated ? " (simulated)" : "");
    titles.insert(titles.end(), {subject.backend + " us", "95 % interval", "busbw GB/s"});
    aligns.insert(aligns.end(), 3, Align::kRight);
    importance.insert(importance.end(), {8, 1, 2});
    if (result.rows.size() > longest->rows.size()) longest = &result;
  }
  if (const std::string crowded = measure::CrowdedText(longest->subject); !crowded.empty()) {
    text += "# " + crowded + "\n";
  }
  titles.emplace_back("fastest");
  aligns.push_back(Align::kLeft);
  importance.push_back(7);
  report::Table table(titles);
  table.SetAlign(aligns);
  table.SetImportance(importance);
  for (size_t i = 0; i < longest->rows.size(); ++i) {
    const measure::Trial& trial = longest->rows[i].trial;
    std::vector<std::string> cells = {measure::CollectiveText(trial.operation),
                                      FormatBytes(trial.bytes), measure::TestsTypeName(trial.type),
                                      RedopName(trial)};
    for (const BenchResult& result : results) AddFigureCells(result, i, &cells);
    cells.push_back(Fastest(results, i));
    table.Add(std::move(cells));
  }
  return text + "#\n" + table.Text();
}

}  // namespace diapason::cli
