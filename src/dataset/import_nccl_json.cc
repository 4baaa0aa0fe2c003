// nccl-tests with -J FILE: one object with the keys args, env, nccl_version, config, devices and
// results; a result has size, type, redop and root, and out_of_place and in_place with time
// (microseconds) and nwrong. With -I 1 it has the times of single iterations as well (times_us).
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "dataset/import.h"
#include "dataset/words.h"
#include "domain/library_version.h"

namespace diapason::dataset {
namespace {

using nlohmann::json;

constexpr double kMostBytes = 1125899906842624;  // 2 to the 50
constexpr double kMostSeconds = 1e6;
constexpr int kMostCuts = 64;

double FigureIn(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nan("");
  if (found->is_number()) return found->get<double>();
  double value = 0;
  double half = 0;
  if (found->is_string() && ParseDecimal(Trim(found->get<std::string>()), &value, &half)) {
    return value;
  }
  return std::nan("");
}

std::string WordIn(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// "2.28.9" from text or from NCCL's number.
std::string VersionIn(const json& whole) {
  const std::string text = WordIn(whole, "nccl_version");
  if (!text.empty()) return Printable(text, 40);
  const double number = FigureIn(whole, "nccl_version");
  return number >= 1 && number < 1e7 ? LibraryVersionText(static_cast<int>(number)) : "";
}

// The program's name, from the arguments or from that of the file.
std::string CollectiveIn(const json& whole, const std::string& name, const ImportOptions& options) {
  if (!options.collective.empty()) return options.collective;
  const auto args = whole.find("args");
  std::string program;
  if (args != whole.end() && args->is_string()) program = args->get<std::string>();
  if (args != whole.end() && args->is_array() && !args->empty() && args->front().is_string()) {
    program = args->front().get<std::string>();
  }
  program = program.substr(0, program.find(' '));
  const std::string named = CollectiveInName(program);
  return named.empty() ? CollectiveInName(name) : named;
}

class NcclJsonReader {
 public:
  NcclJsonReader(const json& whole, const ImportOptions& options)
      : whole_(whole), options_(options) {}

  Status Read(const std::string& name) {
    ReadDevices();
    const std::string word = CollectiveIn(whole_, name, options_);
    if (word.empty()) {
      return Invalid("neither its args nor the file's name say the collective: say --collective");
    }
    ASSIGN_OR_RETURN(collective_, ParseCollectiveWord(word));
    if (ranks_ < 1) return Invalid("it does not list its devices: say --ranks and --nodes");
    const auto results = whole_.find("results");
    int number = 0;
    for (const json& row : *results) {
      ++number;
      const Status taken = Row(row);
      if (!taken.ok() && left_++ == 0) {
        first_left_ = Format("result {}: {}", number, taken.message());
      }
    }
    if (run_.samples.empty()) {
      return Invalid(left_ > 0 ? first_left_ : std::string("it holds no measurements"));
    }
    return {};
  }

  Import Finish(std::string_view text, const std::string& name, bool cut) {
    Import import;
    import.format = "nccl-tests JSON";
    import.rows = run_.samples.size();
    if (left_ > 0) {
      import.messages.push_back(Count(left_, "result") + " left out, the first is " + first_left_);
    }
    if (cut) {
      import.messages.push_back("the file is cut: " + Count(run_.samples.size(), "sample") +
                                " before the cut taken");
    }
    run_.run.id = ImportId(text, "nccl-json," + OptionsText(options_), 0);
    run_.run.source = "import";
    run_.run.origin = name;
    run_.run.state = cut ? SampleRun::State::kInterrupted : SampleRun::State::kDone;
    MachineInfo& machine = run_.run.machine;
    machine.library = options_.library.empty() ? "nccl" : options_.library;
    machine.library_version =
        options_.library_version.empty() ? VersionIn(whole_) : options_.library_version;
    machine.gpu = options_.gpu;
    machine.tool = "nccl-tests";
    if (const std::string version = WordIn(whole_, "version"); !version.empty()) {
      machine.tool += " " + Printable(version, 40);
    }
    import.runs.push_back(std::move(run_));
    return import;
  }

 private:
  void ReadDevices() {
    std::set<double> ranks;
    std::set<std::string> hosts;
    const auto devices = whole_.find("devices");
    if (devices != whole_.end() && devices->is_array()) {
      for (const json& device : *devices) {
        if (!device.is_object()) continue;
        ranks.insert(FigureIn(device, "rank"));
        hosts.insert(Printable(WordIn(device, "hostname"), 80));
      }
    }
    ranks_ = options_.ranks > 0 ? options_.ranks : static_cast<int>(ranks.size());
    nodes_ =
        options_.nodes > 0 ? options_.nodes : static_cast<int>(std::max<size_t>(hosts.size(), 1));
    nodes_ = std::min(nodes_, std::max(ranks_, 1));
    run_.run.machine.hosts = Join({hosts.begin(), hosts.end()}, ",");
  }

  Status Row(const json& row) {
    if (!row.is_object()) return Invalid("it is no object");
    ImportOptions options = options_;
    if (const std::string type = WordIn(row, "type"); !type.empty()) options.type = type;
    ASSIGN_OR_RETURN(Point point, PointFromOptions(options, collective_));
    const double size = FigureIn(row, "size");
    if (!(size >= 1) || size > kMostBytes) return Invalid("its size is out of range");
    point.bytes = static_cast<uint64_t>(size);
    point.ranks = ranks_;
    point.nodes = nodes_;
    const std::string reduce = ToLower(WordIn(row, "redop"));
    if (!point.reduce.empty() && !reduce.empty() && reduce != "none") point.reduce = reduce;
    const double root = FigureIn(row, "root");
    if (root >= 0 && root < ranks_) point.root = static_cast<int>(root);
    bool any = false;
    for (const bool in_place : {false, true}) {
      const auto half = row.find(in_place ? "in_place" : "out_of_place");
      if (half == row.end() || !half->is_object()) continue;
      point.in_place = in_place;
      any |= Half(row, *half, point);
    }
    return any ? Status() : Invalid("it has no time");
  }

  bool Half(const json& row, const json& half, const Point& point) {
    std::vector<double> times;
    // Times of single iterations stand beside the mean, or beside both halves of the row.
    for (const json* place : {&half, &row}) {
      const auto list = place->find("times_us");
      if (!times.empty() || list == place->end() || !list->is_array()) continue;
      if (place == &row && point.in_place) continue;
      for (const json& one : *list) {
        if (one.is_number()) times.push_back(one.get<double>() * 1e-6);
      }
    }
    if (times.empty()) {
      const double mean = FigureIn(half, "time");
      times.push_back((std::isfinite(mean) ? mean : FigureIn(half, "cpu_time")) * 1e-6);
    }
    bool any = false;
    const double wrong = FigureIn(half, "nwrong");
    for (const double seconds : times) {
      if (!std::isfinite(seconds) || seconds <= 0 || seconds > kMostSeconds) continue;
      Sample sample;
      sample.point = point;
      sample.seconds = seconds;
      sample.round = rounds_[point]++;
      if (wrong > 0) {
        sample.outcome = SampleOutcome::kWrong;
        sample.note = "nccl-tests counted wrong elements";
      }
      run_.samples.push_back(std::move(sample));
      any = true;
    }
    return any;
  }

  const json& whole_;
  const ImportOptions& options_;
  std::string collective_;
  int ranks_ = 0;
  int nodes_ = 1;
  WholeRun run_;
  std::map<Point, int> rounds_;
  size_t left_ = 0;
  std::string first_left_;
};

bool HasResults(const json& whole) {
  const auto results = whole.is_object() ? whole.find("results") : whole.end();
  return whole.is_object() && results != whole.end() && results->is_array();
}

// A file that is cut within its results: what is whole of them.
json ParseCut(std::string_view text) {
  if (text.find("\"results\"") == std::string_view::npos) return {};
  for (int i = 0; i < kMostCuts; ++i) {
    const size_t end = text.rfind('}');
    if (end == std::string_view::npos) break;
    const std::string closed = std::string(text.substr(0, end + 1)) + "]}";
    json whole = json::parse(closed, nullptr, false);
    if (HasResults(whole)) return whole;
    text = text.substr(0, end);
  }
  return {};
}

}  // namespace

bool IsNcclTestJson(std::string_view text) {
  return Trim(text.substr(0, 4096)).starts_with('{') &&
         text.find("\"results\"") != std::string_view::npos &&
         text.find("\"out_of_place\"") != std::string_view::npos;
}

Result<Import> ImportNcclTestJson(std::string_view text, const std::string& name,
                                  const ImportOptions& options) {
  json whole = json::parse(text.begin(), text.end(), nullptr, false);
  const bool cut = !HasResults(whole);
  if (cut) whole = ParseCut(text);
  if (!HasResults(whole)) return Invalid("it is no JSON with a list of results");
  NcclJsonReader reader(whole, options);
  RETURN_IF_ERROR(reader.Read(name));
  return reader.Finish(text, name, cut);
}

}  // namespace diapason::dataset
