#include "cli/commands/bench/bench_result.h"

#include <nlohmann/json.hpp>

#include "base/interval_text.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/framework/json_text.h"
#include "domain/collectives.h"
#include "report/table.h"

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

std::string FigureText(const measure::Trial& trial, const TimingFigure& figure, int ranks) {
  if (!figure.fine()) {
    return Format("{:>9} {:>7} {:>7} {:>7}", dataset::OutcomeName(figure.outcome), "-", "-",
                  figure.wrong < 0 ? "N/A" : std::to_string(figure.wrong));
  }
  return Format("{:>9} {:>7} {:>7} {:>7}", Micros(figure.mean),
                Gigabytes(measure::AlgBandwidth(trial, figure.mean)),
                Gigabytes(measure::BusBandwidth(trial, ranks, figure.mean)),
                figure.wrong < 0 ? "N/A" : std::to_string(figure.wrong));
}

// "[1.20, 1.30]": the 95 % interval; "(1.20 to 1.30)": all of too few rounds for one.
std::string SpreadText(const TimingFigure& figure) {
  return IntervalText(Micros(figure.interval.low), Micros(figure.interval.high),
                      figure.rounds.size());
}

std::string MedianText(const TimingFigure& figure) {
  if (!figure.fine()) return Format("{:>9} {:>20}", "-", "-");
  return Format("{:>9} {:>20}", Micros(figure.median), SpreadText(figure));
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
  text += Format("# {:>11} {:>13} {:>9} {:>6} {:>5}  {:<33}  {:<33}  {:<30}\n", "", "", "", "", "",
                 "          out-of-place", "            in-place", "   out-of-place");
  text += Format(
      "# {:>11} {:>13} {:>9} {:>6} {:>5}  {:>9} {:>7} {:>7} {:>7}  {:>9} {:>7} {:>7} {:>7}  {:>9} "
      "{:>20} {:>9}\n",
      "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw",
      "busbw", "#wrong", "median", "95 % interval", "ideal");
  text += Format(
      "# {:>11} {:>13} {:>9} {:>6} {:>5}  {:>9} {:>7} {:>7} {:>7}  {:>9} {:>7} {:>7} {:>7}  {:>9} "
      "{:>20} {:>9}\n",
      "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)",
      "", "(us)", "(us)", "(us)");
  return text;
}

std::string BenchLine(const BenchRow& row, int ranks) {
  const measure::Trial& trial = row.trial;
  std::string text =
      Format("{:13} {:13} {:>9} {:>6} {:5}  ", trial.bytes, measure::CountOf(trial, ranks),
             measure::TestsTypeName(trial.type), RedopName(trial), Root(trial));
  text += FigureText(trial, row.out_of_place, ranks) + "  ";
  text += row.has_in_place ? FigureText(trial, row.in_place, ranks)
                           : Format("{:>9} {:>7} {:>7} {:>7}", "N/A", "-", "-", "N/A");
  text += "  " + MedianText(row.out_of_place);
  text += Format(" {:>9}\n", row.ideal > 0 ? Micros(row.ideal) : "-");
  return text;
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

std::string BenchCsv(const BenchResult& result) {
  std::string text =
      "backend,simulated,collective,bytes,count,type,redop,root,ranks,nodes,in_place,outcome,mean_"
      "us,"
      "median_us,low_us,high_us,algbw_gb_per_s,busbw_gb_per_s,wrong,rounds,ideal_us\n";
  const measure::Subject& subject = result.subject;
  for (const BenchRow& row : result.rows) {
    for (const bool in_place : {false, true}) {
      if (in_place && !row.has_in_place) continue;
      const TimingFigure& figure = in_place ? row.in_place : row.out_of_place;
      text +=
          Format("{},{},{},{},{},{},{},{},{},{},{},{},", subject.backend, subject.simulated ? 1 : 0,
                 measure::CollectiveText(row.trial.operation), row.trial.bytes,
                 measure::CountOf(row.trial, subject.ranks), measure::TestsTypeName(row.trial.type),
                 RedopName(row.trial), Root(row.trial), subject.ranks, subject.nodes,
                 in_place ? 1 : 0, dataset::OutcomeName(figure.outcome));
      if (figure.fine()) {
        text += Format("{:.3f},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},", figure.mean * 1e6,
                       figure.median * 1e6, figure.interval.low * 1e6, figure.interval.high * 1e6,
                       measure::AlgBandwidth(row.trial, figure.mean) * 1e-9,
                       measure::BusBandwidth(row.trial, subject.ranks, figure.mean) * 1e-9);
      } else {
        text += ",,,,,,";
      }
      text += figure.wrong < 0 ? "," : Format("{},", figure.wrong);
      text += Format("{},", figure.rounds.size());
      text += row.ideal > 0 ? Format("{:.3f}\n", row.ideal * 1e6) : "\n";
    }
  }
  return text;
}

std::string SideBySide(const std::vector<BenchResult>& results) {
  using Align = report::Table::Align;
  std::vector<std::string> titles = {"collective", "size", "type", "redop"};
  std::vector<Align> aligns = {Align::kLeft, Align::kRight, Align::kLeft, Align::kLeft};
  std::string text;
  const BenchResult* longest = results.data();
  for (const BenchResult& result : results) {
    const measure::Subject& subject = result.subject;
    text += Format("# {}: {}{}\n", subject.backend, subject.description,
                   subject.simulated ? " (simulated)" : "");
    titles.insert(titles.end(), {subject.backend + " us", "95 % interval", "busbw GB/s"});
    aligns.insert(aligns.end(), 3, Align::kRight);
    if (result.rows.size() > longest->rows.size()) longest = &result;
  }
  titles.emplace_back("fastest");
  aligns.push_back(Align::kLeft);
  report::Table table(titles);
  table.SetAlign(aligns);
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
