// Logs of nccl-tests and rccl-tests: from parsed lines to samples.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "dataset/import.h"
#include "dataset/nccl_tests.h"
#include "dataset/words.h"

namespace diapason::dataset {
namespace {

// The participating processes.
struct Cast {
  int ranks = 0;
  int nodes = 0;
  int independent = 1;  // programs that each ran as rank 0 of their own job
  MachineInfo machine;
};

Cast CastOf(const LogTest& test) {
  Cast cast;
  std::map<int, int> ranks;
  std::map<std::string, std::set<int>> hosts;
  std::set<std::string> gpus;
  for (const LogDevice& device : test.devices) {
    cast.independent = std::max(cast.independent, ++ranks[device.rank]);
    hosts[device.host].insert(device.rank);
    if (!device.gpu.empty()) gpus.insert(device.gpu);
  }
  cast.ranks = static_cast<int>(ranks.size());
  cast.nodes = static_cast<int>(hosts.size());
  std::set<size_t> per_host;
  std::vector<std::string> names;
  for (const auto& [host, there] : hosts) {
    per_host.insert(there.size());
    names.push_back(host);
  }
  MachineInfo& machine = cast.machine;
  machine.hosts = Join(names, ",");
  const size_t most = per_host.empty() ? 0 : *per_host.rbegin();
  for (const std::string& gpu : gpus) {
    machine.gpu += (machine.gpu.empty() ? "" : " + ") + Format("{}x ", most) + gpu;
  }
  if (cast.nodes > 0) {
    machine.topology = Count(static_cast<size_t>(cast.nodes), "node") + " of " +
                       (per_host.size() == 1 ? "" : "up to ") + Count(most, "rank");
  }
  machine.library = test.library;
  if (machine.library.empty() && !gpus.empty()) {
    const std::string gpu = ToLower(*gpus.begin());
    if (gpu.find("nvidia") != std::string::npos || gpu.find("tesla") != std::string::npos) {
      machine.library = "nccl";
    } else if (gpu.find("amd") != std::string::npos || gpu.find("gfx") != std::string::npos ||
               gpu.find("instinct") != std::string::npos) {
      machine.library = "rccl";
    }
  }
  machine.library_version = test.version;
  machine.tool =
      test.tool.empty() ? machine.library == "rccl" ? "rccl-tests" : "nccl-tests" : test.tool;
  return cast;
}

// Completes a log's metadata from the options; they must not contradict each other.
Status Complete(const char* what, const std::string& option, const std::string& given,
                std::string* value) {
  if (given.empty()) return {};
  if (!value->empty() && *value != given) {
    return Invalid(Format("the log says that the {} is '{}', {} says '{}'", what, value->c_str(),
                          option, given));
  }
  *value = given;
  return {};
}

Status Complete(const char* what, const char* option, int given, int* value) {
  if (given == 0) return {};
  if (*value != 0 && *value != given) {
    return Invalid(Format("the log shows {} {}, {} says {}", *value, what, option, given));
  }
  *value = given;
  return {};
}

// Rows whose printed bandwidths contradict their own time, or the number of ranks.
struct LogSums {
  size_t checked = 0;
  size_t wrong_algbw = 0;
  size_t wrong_busbw = 0;
  int first_line = 0;

  void Check(const LogRow& row, const LogTiming& timing, double factor) {
    if (!timing.there || timing.algbw < 1e9) return;  // too few digits to tell
    ++checked;
    const double algbw = static_cast<double>(row.bytes) / timing.seconds;
    const double slack = 0.02 + timing.coarse + timing.algbw_coarse;
    const bool bad_algbw = std::abs(algbw - timing.algbw) > slack * timing.algbw;
    const double busbw = timing.algbw * factor;
    const bool bad_busbw = std::abs(busbw - timing.busbw) > (0.02 + timing.algbw_coarse) * busbw +
                                                                timing.busbw_coarse * timing.busbw;
    wrong_algbw += bad_algbw ? 1 : 0;
    wrong_busbw += bad_busbw ? 1 : 0;
    if (first_line == 0 && (bad_algbw || bad_busbw)) first_line = row.line;
  }
};

class LogImporter {
 public:
  LogImporter(std::string_view text, const std::string& name, const ImportOptions& options)
      : text_(text), name_(name), options_(options) {}
  Result<Import> Run();

 private:
  Result<std::string> CollectiveOf(const LogTest& test);
  Status Add(const LogTest& test, size_t part);
  Status AddSamples(const LogTest& test, const Point& plain, WholeRun* imported);
  void Report(const LogTest& test, const Cast& cast, const LogSums& sums, size_t empty_rows);
  void Say(const LogTest& test, const std::string& text) {
    const std::string message = several_ ? Format("test at line {}: {}", test.line, text) : text;
    import_.messages.push_back(message);
  }

  std::string_view text_;
  const std::string& name_;
  ImportOptions options_;
  bool several_ = false;
  Import import_;
};

Result<std::string> LogImporter::CollectiveOf(const LogTest& test) {
  std::string given;
  if (!options_.collective.empty()) {
    ASSIGN_OR_RETURN(std::string parsed, ParseCollectiveWord(options_.collective));
    given = parsed;
  }
  if (!test.program.empty()) {
    ASSIGN_OR_RETURN(std::string said, ParseCollectiveWord(test.program));
    if (const Status same = Complete("collective", "--collective", given, &said); !same.ok()) {
      return same;
    }
    return said;
  }
  if (!given.empty()) return given;
  const std::string named = CollectiveInName(name_);
  if (named.empty()) {
    return Invalid(
        "the log does not name its collective, and neither does the file's name: say --collective");
  }
  Say(test, "the log does not name its collective; " + named + " comes from the file's name");
  return named;
}

Status LogImporter::AddSamples(const LogTest& test, const Point& plain, WholeRun* imported) {
  const double factor = BusFactorOf(plain.collective, plain.ranks);
  std::map<std::pair<uint64_t, bool>, int> rounds;
  LogSums sums;
  size_t empty_rows = 0;
  for (const LogRow& row : test.rows) {
    if (row.bytes == 0) {
      ++empty_rows;
      continue;
    }
    ++import_.rows;
    Point point = plain;
    point.bytes = row.bytes;
    const Result<std::string> type = ParseTypeWord(row.type);
    if (!type.ok()) return type.status().WithContext(Format("line {}", row.line));
    point.type = type.value();
    if (Reduces(point.collective) && !row.reduce.empty() && row.reduce != "none") {
      point.reduce = ToLower(row.reduce);
    }
    if (row.root >= 0) point.root = row.root;
    for (const bool in_place : {false, true}) {
      const LogTiming& timing = in_place ? row.in_place : row.out_of_place;
      if (!timing.there) continue;
      sums.Check(row, timing, factor);
      Sample sample;
      sample.point = point;
      sample.point.in_place = in_place;
      sample.round = rounds[{row.bytes, in_place}]++;
      sample.seconds = timing.seconds;
      sample.coarse = timing.coarse;
      sample.iterations = test.iterations;
      sample.wrong = timing.wrong;
      if (timing.wrong > 0) {
        sample.outcome = SampleOutcome::kWrong;
        sample.note = Format("{} elements were wrong", timing.wrong);
      }
      imported->samples.push_back(std::move(sample));
    }
  }
  Report(test, CastOf(test), sums, empty_rows);
  return {};
}

void LogImporter::Report(const LogTest& test, const Cast& cast, const LogSums& sums,
                         size_t empty_rows) {
  if (cast.independent > 1) {
    Say(test, Format("{} programs that each ran alone have written into this log: every one of "
                     "them was rank 0 of {}; nothing was communicated between them",
                     cast.independent, cast.ranks));
  } else if (test.starts > 1) {
    Say(test,
        Format("{} headers without a test come before it: starts that failed", test.starts - 1));
  }
  if (sums.wrong_algbw > 0) {
    Say(test, Format("{} of {} times do not fit the bandwidths beside them (first at line {}): "
                     "columns may have been mixed up",
                     sums.wrong_algbw, sums.checked, sums.first_line));
  }
  if (sums.wrong_busbw > 0) {
    Say(test, Format("{} of {} bus bandwidths do not fit {} ranks of this collective (first at "
                     "line {}): it may have been another one, or another number of ranks",
                     sums.wrong_busbw, sums.checked, cast.ranks, sums.first_line));
  }
  if (empty_rows > 0) Say(test, Count(empty_rows, "row") + " of size 0 left out");
  if (test.bad_rows > 0) {
    Say(test, Format("{} left out, the first is line {}: {}",
                     Count(static_cast<size_t>(test.bad_rows), "row"), test.first_bad_line,
                     test.first_bad_why));
  }
  if (test.cut_rows > 0) {
    Say(test, Format("{} cut short; only whole values were taken",
                     Count(static_cast<size_t>(test.cut_rows), "row")));
  }
  if (test.ends == 0) {
    Say(test, std::string("the test did not end") +
                  (test.rows.empty() ? ", and printed no row" : "") +
                  (test.failure.empty() ? "" : ": " + test.failure));
  }
}

Status LogImporter::Add(const LogTest& test, size_t part) {
  Cast cast = CastOf(test);
  MachineInfo& machine = cast.machine;
  ASSIGN_OR_RETURN(std::string collective, CollectiveOf(test));
  Status fits = Complete("library", "--library", options_.library, &machine.library);
  if (fits.ok()) fits = Complete("ranks", "--ranks", options_.ranks, &cast.ranks);
  if (fits.ok()) fits = Complete("nodes", "--nodes", options_.nodes, &cast.nodes);
  if (fits.ok()) {
    fits = Complete("library's version", "--library-version", options_.library_version,
                    &machine.library_version);
  }
  if (!fits.ok()) return fits;
  if (machine.gpu.empty()) machine.gpu = options_.gpu;
  if (cast.ranks == 0 && !test.rows.empty()) {
    return Invalid("the log does not list its devices: say --ranks and --nodes");
  }
  ImportOptions options = options_;
  options.library = machine.library;
  ASSIGN_OR_RETURN(Point point, PointFromOptions(options, collective));
  point.ranks = std::max(cast.ranks, 1);
  point.nodes = std::max(cast.nodes, 1);

  WholeRun imported;
  RETURN_IF_ERROR(AddSamples(test, point, &imported));
  options.collective = collective;
  imported.run.id = ImportId(text_, "log," + OptionsText(options), part);
  imported.run.source = "import";
  imported.run.origin = name_;
  if (several_) imported.run.origin += Format(", test at line {}", test.line);
  const bool ended = test.ends >= std::max(cast.independent, 1);
  imported.run.state =
      ended ? dataset::SampleRun::State::kDone : dataset::SampleRun::State::kInterrupted;
  imported.run.plan = Format("collective={} ranks={}", collective, cast.ranks);
  if (cast.independent > 1) imported.run.plan += Format(" independent={}", cast.independent);
  if (!test.parameters.empty()) imported.run.plan += " " + test.parameters;
  if (!test.failure.empty()) imported.run.plan += "; " + test.failure;
  imported.run.machine = std::move(machine);
  import_.runs.push_back(std::move(imported));
  return {};
}

Result<Import> LogImporter::Run() {
  const std::vector<LogTest> tests = ParseTestLog(text_);
  several_ = tests.size() > 1;
  for (size_t i = 0; i < tests.size(); ++i) {
    const Status added = Add(tests[i], i);
    if (!added.ok()) return added.WithContext(Format("test at line {}", tests[i].line));
    if (import_.format.empty()) {
      import_.format =
          import_.runs.back().run.machine.library == "rccl" ? "rccl-tests log" : "nccl-tests log";
    }
  }
  if (tests.empty()) return Invalid("it looks like a log of nccl-tests, but holds no test");
  // Failed tests are kept; unreadable ones are an error.
  const auto bad = std::find_if(tests.begin(), tests.end(),
                                [](const LogTest& test) { return test.bad_rows > 0; });
  if (import_.rows == 0 && bad != tests.end()) {
    return Invalid(Format("none of its rows can be read; the first is line {}: {}",
                          bad->first_bad_line, bad->first_bad_why));
  }
  return std::move(import_);
}

}  // namespace

Result<Import> ImportTestLog(std::string_view text, const std::string& name,
                             const ImportOptions& options) {
  return LogImporter(text, name, options).Run();
}

}  // namespace diapason::dataset
