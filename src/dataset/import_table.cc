// Tables with a row per measurement: rccl-sweep's grids and optimized_metrics.csv.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "dataset/csv.h"
#include "dataset/import.h"
#include "dataset/words.h"

namespace diapason::dataset {
namespace {

constexpr size_t kNone = ~size_t{0};
constexpr size_t kMostSources = 4096;

enum Column : uint8_t {
  kSource,
  kCollective,
  kNodes,
  kRanks,
  kBytes,
  kAlgorithm,
  kProtocol,
  kChannels,
  kRepeat,
  kType,
  kSimulated,
  kTimeOop,
  kAlgbwOop,
  kBusbwOop,
  kTimeIp,
  kAlgbwIp,
  kBusbwIp,
  kColumns,
};
// The first name is used in the error for a missing column.
constexpr const char* kNames[kColumns] = {
    "source",
    "collective",
    "num_nodes nodes nnodes",
    "num_gpus gpus num_ranks ranks nranks",
    "size_bytes bytes size nbytes",
    "algo algorithm",
    "proto protocol",
    "nchannels num_channels channels",
    "repeat round",
    "type datatype dtype",
    "simulated",
    "time_oop time_oop_us",
    "algbw_oop",
    "busbw_oop",
    "time_ip time_ip_us",
    "algbw_ip",
    "busbw_ip",
};

std::string FirstName(int column) { return std::string(Split(kNames[column], ' ').front()); }

class TableReader {
 public:
  TableReader(const std::string& name, const ImportOptions& options)
      : name_(name), options_(options) {}
  Result<Import> Read(std::string_view text);

 private:
  using Cells = std::vector<std::string>;
  Status Titles(const Cells& titles);
  Status Load(std::string_view text);
  Status Row(const Cells& row, int line);
  Result<Point> PointOf(const Cells& row);
  // False: this half is missing or unusable; *why says so.
  bool Timing(const Cells& row, bool in_place, Sample* sample, std::string* why);
  std::string_view Cell(const Cells& row, int column) const {
    return at_[column] == kNone ? std::string_view() : Trim(row[at_[column]]);
  }
  Result<WholeRun*> RunFor(std::string_view source);

  const std::string& name_;
  const ImportOptions& options_;
  size_t at_[kColumns];
  double half_[kColumns] = {};  // half of the last digit that a column prints
  size_t width_ = 0;
  std::vector<std::pair<int, Cells>> rows_;
  std::map<std::string, size_t, std::less<>> sources_;
  std::vector<std::map<Point, int>> rounds_;
  Import import_;
  size_t unusable_ = 0;
  std::string first_unusable_;
  // Rows with an algorithm, protocol or number of channels that is not known.
  bool foreign_now_ = false;
  size_t foreign_ = 0;
  std::string first_foreign_;
  size_t contradictions_ = 0;
  int first_contradiction_ = 0;
  int line_ = 0;
};

Status TableReader::Titles(const Cells& titles) {
  std::fill(std::begin(at_), std::end(at_), kNone);
  width_ = titles.size();
  std::vector<std::string> unknown;
  for (size_t i = 0; i < titles.size(); ++i) {
    const std::string title = ToLower(Trim(titles[i]));
    bool known = false;
    for (int column = 0; column < kColumns && !known; ++column) {
      for (const std::string_view name : Split(kNames[column], ' ')) known |= title == name;
      if (!known) continue;
      if (at_[column] != kNone) {
        return Invalid(Format("the column '{}' is there twice", title));
      }
      at_[column] = i;
    }
    if (!known) unknown.push_back("'" + Printable(title, 40) + "'");
  }
  if (!unknown.empty()) {
    import_.messages.push_back(
        "not read, because unknown: " + std::string(unknown.size() == 1 ? "column " : "columns ") +
        Join(unknown, ", "));
  }
  std::vector<std::string> missing;
  const auto need = [&](int column, bool given) {
    if (at_[column] == kNone && !given) missing.push_back(FirstName(column));
  };
  need(kCollective, !options_.collective.empty());
  need(kNodes, options_.nodes > 0);
  need(kRanks, options_.ranks > 0);
  need(kBytes, false);
  need(kAlgorithm, false);
  need(kProtocol, false);
  need(kChannels, false);
  if (!missing.empty()) {
    return Invalid((missing.size() == 1 ? "missing column " : "missing columns ") +
                   Join(missing, ", "));
  }
  for (int column = kTimeOop; column < kColumns; ++column) {
    if (at_[column] != kNone) return {};
  }
  return Invalid("no column has a time or a bandwidth: time_oop, busbw_oop, time_ip or busbw_ip");
}

Status TableReader::Load(std::string_view text) {
  int line = 0;
  while (!text.empty()) {
    ASSIGN_OR_RETURN(Cells cells, TakeCsvRow(&text, &line));
    Cells& row = cells;
    if (row.size() == 1 && (Trim(row[0]).empty() || row[0].starts_with('#'))) continue;
    if (width_ == 0) {
      RETURN_IF_ERROR(Titles(row));
      continue;
    }
    if (row.size() != width_) {
      return Invalid(Format("line {}: {} values under {} titles", line, row.size(), width_));
    }
    // Programs that write such tables drop trailing zeros: 1.7 beside 1.69 and 1.72 has the same
    // precision. The most precise value determines the precision of the column.
    for (int column = kTimeOop; column < kColumns; ++column) {
      double value = 0;
      double half = 0;
      if (at_[column] == kNone || !ParseDecimal(Cell(row, column), &value, &half)) continue;
      if (half_[column] == 0 || half < half_[column]) half_[column] = half;
    }
    rows_.emplace_back(line, std::move(row));
  }
  if (rows_.empty()) return Invalid("the table has no rows");
  return {};
}

Result<Point> TableReader::PointOf(const Cells& row) {
  const std::string_view word =
      at_[kCollective] == kNone ? std::string_view(options_.collective) : Cell(row, kCollective);
  ASSIGN_OR_RETURN(const std::string collective, ParseCollectiveWord(word));
  ImportOptions options = options_;
  options.algorithm.clear();
  options.protocol.clear();
  options.channels = 0;
  if (at_[kType] != kNone) options.type = Cell(row, kType);
  ASSIGN_OR_RETURN(Point made, PointFromOptions(options, collective));
  Point& point = made;
  const auto number = [&](Column column, int given, int* value) {
    uint64_t parsed = static_cast<uint64_t>(given);
    if (at_[column] != kNone && !ParseUnsigned(Cell(row, column), &parsed)) return false;
    *value = static_cast<int>(std::min<uint64_t>(parsed, 1 << 30));
    return parsed >= 1 && parsed <= 10'000'000;
  };
  if (!number(kNodes, options_.nodes, &point.nodes) ||
      !number(kRanks, options_.ranks, &point.ranks) || point.ranks < point.nodes) {
    return Invalid(Format("'{}' nodes and '{}' GPUs are no numbers, or out of range",
                          Printable(Cell(row, kNodes), 20), Printable(Cell(row, kRanks), 20)));
  }
  if (!ParseUnsigned(Cell(row, kBytes), &point.bytes) || point.bytes == 0 ||
      point.bytes > uint64_t{1} << 50) {
    return Invalid("'" + Printable(Cell(row, kBytes), 40) + "' is no size in bytes");
  }
  int64_t channels = 0;
  // An empty cell: the library's own number.
  if (!Cell(row, kChannels).empty() && !ParseSigned(Cell(row, kChannels), &channels)) {
    return Invalid("'" + Printable(Cell(row, kChannels), 20) + "' is no number of channels");
  }
  if (Status known = SetConfig(options_.library, Cell(row, kAlgorithm), Cell(row, kProtocol),
                               channels, &point);
      !known.ok()) {
    foreign_now_ = true;
    return known;
  }
  RETURN_IF_ERROR(AgreesWith(options_, point));
  return made;
}

bool TableReader::Timing(const Cells& row, bool in_place, Sample* sample, std::string* why) {
  const int time = in_place ? kTimeIp : kTimeOop;
  const Point& point = sample->point;
  const double factor = BusFactorOf(point.collective, point.ranks);
  double found[3] = {};  // seconds, from the time, algbw and busbw
  double coarse[3] = {};
  bool any = false;
  for (int i = 0; i < 3; ++i) {
    const std::string_view cell = Cell(row, time + i);
    if (cell.empty()) continue;
    any = true;
    double value = 0;
    double half = 0;
    if (!ParseDecimal(cell, &value, &half) || value <= 0 || (i == 2 && factor == 0)) {
      *why = FirstName(time + i) + " is " + Printable(cell, 20);
      continue;
    }
    coarse[i] = half_[time + i] / value;
    const double bytes = static_cast<double>(point.bytes);
    found[i] = i == 0 ? value * 1e-6 : bytes * (i == 2 ? factor : 1) / (value * 1e9);
  }
  if (!any) return false;
  const int used = found[0] > 0 ? 0 : found[2] > 0 ? 2 : 1;
  if (found[used] <= 0 || !std::isfinite(found[used]) || found[used] > 1e6) return false;
  sample->seconds = found[used];
  sample->coarse = coarse[used];
  const double slack = 0.02 + coarse[0] + coarse[2];
  if (found[0] > 0 && found[2] > 0 && std::abs(found[2] / found[0] - 1) > slack) {
    if (contradictions_++ == 0) first_contradiction_ = line_;
  }
  return true;
}

Result<WholeRun*> TableReader::RunFor(std::string_view source) {
  const auto known = sources_.find(source);
  if (known != sources_.end()) return &import_.runs[known->second];
  if (import_.runs.size() == kMostSources) return Invalid("too many different sources");
  sources_.emplace(source, import_.runs.size());
  WholeRun whole;
  whole.run.source = "import";
  whole.run.origin = name_;
  if (!source.empty()) whole.run.origin += ", " + Printable(source, 100);
  whole.run.state = SampleRun::State::kDone;
  whole.run.machine.library = options_.library;
  whole.run.machine.library_version = options_.library_version;
  whole.run.machine.gpu = options_.gpu;
  import_.runs.push_back(std::move(whole));
  rounds_.emplace_back();
  return &import_.runs.back();
}

Status TableReader::Row(const Cells& row, int line) {
  line_ = line;
  foreign_now_ = false;
  Result<Point> found = PointOf(row);
  if (!found.ok() && foreign_now_) {
    // A configuration that this library's tuners cannot name: the others of the table can be used.
    if (foreign_++ == 0) first_foreign_ = Format("line {}: {}", line, found.status().message());
    return {};
  }
  RETURN_IF_ERROR(found);
  const Point& point = found.value();
  // Simulated and real samples of one source are two runs: a run has one machine.
  const std::string_view simulated = Cell(row, kSimulated);
  if (!simulated.empty() && simulated != "0" && simulated != "1") {
    return Invalid("'" + Printable(simulated, 20) + "' under 'simulated' is neither 0 nor 1");
  }
  std::string source(Cell(row, kSource));
  if (simulated == "1") source += source.empty() ? "simulated" : " (simulated)";
  ASSIGN_OR_RETURN(WholeRun * whole, RunFor(source));
  whole->run.machine.simulated = simulated == "1";
  uint64_t repeat = 0;
  if (at_[kRepeat] != kNone &&
      (!ParseUnsigned(Cell(row, kRepeat), &repeat) || repeat > 1'000'000'000)) {
    return Invalid("'" + Printable(Cell(row, kRepeat), 20) + "' is no number of a repeat");
  }
  bool used = false;
  std::string why = "it has no time and no bandwidth";
  for (const bool in_place : {false, true}) {
    Sample sample;
    sample.point = point;
    sample.point.in_place = in_place;
    if (!Timing(row, in_place, &sample, &why)) continue;
    used = true;
    int& next = rounds_[static_cast<size_t>(whole - import_.runs.data())][sample.point];
    sample.round = at_[kRepeat] != kNone ? static_cast<int>(repeat) : next;
    ++next;
    whole->samples.push_back(std::move(sample));
  }
  if (!used && unusable_++ == 0) first_unusable_ = Format("line {}: {}", line, why);
  return {};
}

Result<Import> TableReader::Read(std::string_view text) {
  RETURN_IF_ERROR(Load(text));
  import_.format = at_[kRepeat] == kNone && at_[kSource] == kNone ? "table of metrics" : "grid";
  for (const auto& [line, row] : rows_) {
    if (Status read = Row(row, line); !read.ok()) {
      return read.WithContext(Format("line {}", line));
    }
  }
  if (foreign_ == rows_.size()) return Invalid(first_foreign_);
  import_.rows = rows_.size() - foreign_;
  if (foreign_ > 0) {
    import_.messages.push_back(Count(foreign_, "row") +
                               " with an unknown configuration left out, the first is " +
                               first_foreign_);
  }
  for (size_t i = 0; i < import_.runs.size(); ++i) {
    import_.runs[i].run.id = ImportId(text, "table," + OptionsText(options_), i);
  }
  if (options_.library.empty()) {
    import_.messages.push_back("the table does not say which library it is about: give --library");
  }
  if (!options_.algorithm.empty() || !options_.protocol.empty() || options_.channels != 0) {
    import_.messages.push_back(
        "--algorithm, --protocol and --channels were not used: the table has its own");
  }
  if (unusable_ > 0) {
    import_.messages.push_back(Count(unusable_, "row") + " left out, the first is " +
                               first_unusable_);
  }
  if (contradictions_ > 0) {
    import_.messages.push_back(
        Format("{} whose time and bus bandwidth contradict each other, the first at line {}; the "
               "time was taken",
               Count(contradictions_, "row"), first_contradiction_));
  }
  return std::move(import_);
}

}  // namespace

Result<Import> ImportTable(std::string_view text, const std::string& name,
                           const ImportOptions& options) {
  return TableReader(name, options).Read(text);
}

}  // namespace diapason::dataset
