#include "dataset/import.h"

#include <algorithm>
#include <map>

#include "base/encoding.h"
#include "base/text.h"
#include "dataset/csv.h"
#include "dataset/export.h"
#include "dataset/import_journal.h"
#include "dataset/nccl_tests.h"
#include "dataset/words.h"

namespace diapason::dataset {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string_view FirstLine(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    if (!line.empty()) return line.substr(0, 4096);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

bool IsNumber(std::string_view text) {
  double value = 0;
  double half = 0;
  return ParseDecimal(text, &value, &half);
}

// The cells of a line, without quotation marks and blanks around them; none if it is no such line.
std::vector<std::string> CellsOf(std::string_view line) {
  int number = 0;
  Result<std::vector<std::string>> cells = TakeCsvRow(&line, &number);
  if (!cells.ok()) return {};
  for (std::string& cell : cells.value()) cell = std::string(Trim(cell));
  return std::move(cells).value();
}

// allreduce,4194304,1,8,12.34, perhaps with the number of the call and how many calls it covers
bool IsReward(std::string_view line) {
  if (line.starts_with(kSimulatedMark)) return true;
  const std::vector<std::string> cells = CellsOf(line);
  if (cells.size() < 5 || cells.size() > 7) return false;
  if (ToLower(cells[0]) == "colltype") return true;
  return !IsNumber(cells[0]) && std::all_of(cells.begin() + 1, cells.end(),
                                            [](const std::string& cell) { return IsNumber(cell); });
}

bool IsTable(std::string_view line) {
  const std::string folded = "," + ToLower(Join(CellsOf(line), ",")) + ",";
  const auto has = [&](const char* name) { return folded.find(name) != std::string::npos; };
  return has(",collective,") || (has(",algo,") && has(",proto,")) ||
         (has(",size_bytes,") && (has("busbw") || has("time")));
}

}  // namespace

StoreContents ContentsOf(Import import) {
  StoreContents contents;
  for (WholeRun& whole : import.runs) {
    for (Sample& sample : whole.samples) {
      contents.records.push_back({contents.runs.size(), std::move(sample)});
    }
    contents.runs.push_back(std::move(whole.run));
  }
  return contents;
}

std::string OptionsText(const ImportOptions& options) {
  std::string text =
      Format("{},{},{},{},{},{},{},{},{},{},{},{},{}", options.collective, options.type,
             options.ranks, options.nodes, options.bytes, options.algorithm, options.protocol,
             options.channels, options.library, options.library_version, options.gpu,
             options.workload, options.kind ? static_cast<int>(*options.kind) : -1);
  std::vector<std::string> environment = options.environment;
  std::sort(environment.begin(), environment.end());
  for (const std::string& pair : environment) text += "," + pair;
  return text;
}

std::string ImportId(std::string_view text, const std::string& options, size_t part) {
  const uint64_t content = Fnv1a64(text);
  const uint64_t all = Fnv1a64(Format("{:016x},{},{},{}", content, text.size(), part, options));
  return Format("import-{:016x}", all);
}

Result<Point> PointFromOptions(const ImportOptions& options, const std::string& collective) {
  Point point;
  point.collective = collective;
  if (!options.type.empty()) {
    ASSIGN_OR_RETURN(const std::string type, ParseTypeWord(options.type));
    point.type = type;
  }
  if (!Reduces(collective)) point.reduce.clear();
  if (collective == "broadcast" || collective == "reduce") point.root = 0;
  RETURN_IF_ERROR(
      SetConfig(options.library, options.algorithm, options.protocol, options.channels, &point));
  ASSIGN_OR_RETURN(const std::string environment, SortEnvironment(options.environment));
  point.environment = environment;
  return point;
}

Status AgreesWith(const ImportOptions& options, const Point& point) {
  const auto differs = [](const std::string& said, const char* option, const std::string& given) {
    return Invalid(Format("the file says {}, {} says {}", said, option, given));
  };
  if (!options.collective.empty()) {
    ASSIGN_OR_RETURN(const std::string given, ParseCollectiveWord(options.collective));
    if (given != point.collective) {
      return differs(point.collective, "--collective", given);
    }
  }
  if (options.ranks > 0 && options.ranks != point.ranks) {
    return differs(Format("{} ranks", point.ranks), "--ranks", Format("{}", options.ranks));
  }
  if (options.nodes > 0 && options.nodes != point.nodes) {
    return differs(Format("{} nodes", point.nodes), "--nodes", Format("{}", options.nodes));
  }
  return {};
}

Result<Import> ImportText(std::string_view text, const std::string& name,
                          const ImportOptions& options) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::string shown = "'" + Printable(name) + "'";
  if (text.starts_with("SQLite format 3")) {
    return Invalid(shown + " is an SQLite file: `diapason data merge` takes stores together");
  }
  if (text.find('\0') != std::string_view::npos) {
    return Invalid(shown + " holds binary data, not a log or a table");
  }
  const std::string_view first = FirstLine(text);
  if (first.empty()) return Invalid(shown + " is empty");
  const auto read = [&]() -> Result<Import> {
    if (first.starts_with(kExportMark)) return ImportExport(text, name);
    if (first.starts_with(kJournalMark)) {
      return Invalid(
          "it is a journal: those of all ranks belong together, name them with --journal FILE...");
    }
    if (IsNcclTestJson(text)) return ImportNcclTestJson(text, name, options);
    if (IsTestJson(first)) return ImportTestJson(text, name, options);
    if (IsTable(first)) return ImportTable(text, name, options);
    if (IsTestLog(text)) return ImportTestLog(text, name, options);
    if (IsReward(first)) return ImportRewards(text, name, options);
    if (IsNumber(first)) {
      return Invalid(
          "it holds numbers only; if they are times of iterations, one a line in milliseconds, say "
          "so: --iterations FILE --collective C --size B --ranks N");
    }
    return Invalid(
        "its format is not known; known are logs of nccl-tests and rccl-tests (also -J and -Z "
        "json), "
        "tables with the "
        "columns collective, num_nodes, num_gpus, size_bytes, algo, proto, nchannels and times or "
        "bandwidths, reward lines (collType,nBytes,nNodes,nRanks,latency_ms) and what `diapason "
        "data export --format csv` writes");
  };
  Result<Import> import = read();
  if (!import.ok()) return import.status().WithContext(shown);
  return import;
}

namespace {

// The run of a file without metadata: from the options.
SampleRun RunOf(std::string_view text, const std::string& name, const std::string& what,
                const ImportOptions& options) {
  SampleRun run;
  run.id = ImportId(text, what + "," + OptionsText(options), 0);
  run.source = "import";
  run.origin = name;
  run.state = SampleRun::State::kDone;
  run.machine.library = options.library;
  run.machine.library_version = options.library_version;
  run.machine.gpu = options.gpu;
  return run;
}

}  // namespace

Result<Import> ImportIterations(std::string_view text, const std::string& name,
                                const ImportOptions& options) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::string shown = "'" + Printable(name) + "'";
  if (options.collective.empty() || options.bytes == 0 || options.ranks == 0) {
    return Invalid(shown +
                   ": a list of times does not say what ran: give --collective, --size and "
                   "--ranks");
  }
  Import import;
  import.format = "iteration times";
  ASSIGN_OR_RETURN(const std::string collective, ParseCollectiveWord(options.collective));
  ASSIGN_OR_RETURN(Point point, PointFromOptions(options, collective));
  point.kind = Point::Kind::kIteration;
  point.bytes = options.bytes;
  point.ranks = options.ranks;
  point.nodes = std::max(options.nodes, 1);
  point.workload = options.workload;
  WholeRun imported;
  int number = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = Trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.empty() || line[0] == '#') continue;
    Sample sample;
    sample.point = point;
    double half = 0;
    if (!ParseDecimal(line, &sample.seconds, &half) || sample.seconds <= 0 ||
        sample.seconds > 1e9) {
      return Invalid(Format("{} line {}: '{}' is no time in milliseconds", shown, number,
                            Printable(line, 40)));
    }
    sample.coarse = half / sample.seconds;
    sample.seconds *= 1e-3;
    sample.round = static_cast<int>(imported.samples.size());
    imported.samples.push_back(std::move(sample));
  }
  if (imported.samples.empty()) return Invalid(shown + " holds no times");
  import.rows = imported.samples.size();
  imported.run = RunOf(text, name, "iterations", options);
  import.runs.push_back(std::move(imported));
  return import;
}

Result<Import> ImportRewards(std::string_view text, const std::string& name,
                             const ImportOptions& options) {
  Import import;
  import.format = "reward lines";
  WholeRun measured;
  WholeRun simulated;
  bool is_simulated = false;
  std::map<Point, int> rounds;
  const Point::Kind kind = options.kind.value_or(Point::Kind::kIteration);
  if (!options.kind) {
    import.messages.push_back(
        "taken as times of whole iterations; --kind collective if they are of the call alone");
  }
  int number = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> cells, TakeCsvRow(&rest, &number));
    const std::vector<std::string>& row = cells;
    if (row.size() == 1 && Trim(row[0]).empty()) continue;
    if (row[0].starts_with('#')) {
      if (Trim(row[0]) == kSimulatedMark) is_simulated = true;
      if (Trim(row[0]) == kSimulatedEnd) is_simulated = false;
      continue;
    }
    if (ToLower(Trim(row[0])) == "colltype") continue;
    const auto wrong = [&](const std::string& why) {
      return Invalid(Format("line {}: {}", number, why));
    };
    if (row.size() < 5 || row.size() > 7) return wrong("a reward line has 5 to 7 values");
    const Result<std::string> collective = ParseCollectiveWord(Trim(row[0]));
    if (!collective.ok()) return wrong(collective.status().message());
    ASSIGN_OR_RETURN(Point point, PointFromOptions(options, collective.value()));
    uint64_t nodes = 0;
    uint64_t ranks = 0;
    Sample sample;
    double half = 0;
    if (!ParseUnsigned(Trim(row[1]), &point.bytes) || point.bytes > uint64_t{1} << 50 ||
        !ParseUnsigned(Trim(row[2]), &nodes) || !ParseUnsigned(Trim(row[3]), &ranks) || nodes < 1 ||
        ranks < nodes || ranks > 10'000'000) {
      return wrong("bytes, nodes or ranks are out of range");
    }
    if (!ParseDecimal(Trim(row[4]), &sample.seconds, &half) || sample.seconds <= 0 ||
        sample.seconds > 1e9) {
      return wrong("'" + Printable(row[4], 40) + "' is no time in milliseconds");
    }
    point.nodes = static_cast<int>(nodes);
    point.ranks = static_cast<int>(ranks);
    point.kind = kind;
    point.workload = options.workload;
    sample.coarse = half / sample.seconds;
    sample.seconds *= 1e-3;
    if (Status same = AgreesWith(options, point); !same.ok()) return wrong(same.message());
    sample.point = std::move(point);
    sample.round = rounds[sample.point]++;
    (is_simulated ? simulated : measured).samples.push_back(std::move(sample));
  }
  import.rows = measured.samples.size() + simulated.samples.size();
  if (!measured.samples.empty() || simulated.samples.empty()) {
    measured.run = RunOf(text, name, "rewards", options);
    import.runs.push_back(std::move(measured));
  }
  if (!simulated.samples.empty()) {
    import.messages.push_back(Count(simulated.samples.size(), "line") + " of " +
                              std::to_string(import.rows) + " are simulated, and stay marked so");
    simulated.run = RunOf(text, name, "rewards, simulated", options);
    simulated.run.machine.simulated = true;
    import.runs.push_back(std::move(simulated));
  }
  return import;
}

}  // namespace diapason::dataset
