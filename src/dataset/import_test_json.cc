// rccl-tests with -Z json: objects with the keys numCycle, name, size, type, redop, inPlace, time
// (microseconds), algBw, busBw and wrong, and where several nodes took part nodes, ranks,
// ranksPerNode and gpusPerRank; an object a line, or all in one list.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "dataset/import.h"
#include "dataset/words.h"

namespace diapason::dataset {
namespace {

using nlohmann::json;

constexpr double kMostBytes = 1125899906842624;  // 2 to the 50
constexpr double kMostRanks = 1e7;

// A number, written as one or as text ("12.5"); nothing where it is neither.
std::optional<double> NumberIn(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  if (found->is_boolean()) return found->get<bool>() ? 1.0 : 0.0;
  double value = 0;
  double half = 0;
  if (found->is_string() && ParseDecimal(Trim(found->get<std::string>()), &value, &half)) {
    return value;
  }
  return std::nullopt;
}

std::string TextIn(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

class JsonReader {
 public:
  explicit JsonReader(const ImportOptions& options) : options_(options) {}

  void Object(const json& object, int number) {
    const Status status = Take(object);
    if (!status.ok()) Leave(number, status.message());
  }
  void Leave(int number, const std::string& why) {
    if (left_++ == 0) first_left_ = Format("entry {}: {}", number, why);
  }

  Result<Import> Finish(std::string_view text, const std::string& name) {
    if (imported_.samples.empty()) {
      return Invalid(left_ > 0 ? first_left_ : std::string("it holds no measurements"));
    }
    Import import;
    import.format = "rccl-tests JSON";
    import.rows = rows_;
    if (left_ > 0) {
      import.messages.push_back(Count(left_, "row") + " left out, the first is " + first_left_);
    }
    SampleRun& run = imported_.run;
    run.id = ImportId(text, "json," + OptionsText(options_), 0);
    run.source = "import";
    run.origin = name;
    run.state = SampleRun::State::kDone;
    run.machine.library = options_.library.empty() ? "rccl" : options_.library;
    run.machine.library_version = options_.library_version;
    run.machine.gpu = options_.gpu;
    run.machine.tool = "rccl-tests";
    import.runs.push_back(std::move(imported_));
    return import;
  }

 private:
  Status Take(const json& object) {
    if (!object.is_object()) return Invalid("it is no object");
    ASSIGN_OR_RETURN(const std::string collective, ParseCollectiveWord(TextIn(object, "name")));
    ImportOptions options = options_;
    if (const std::string type = TextIn(object, "type"); !type.empty()) options.type = type;
    ASSIGN_OR_RETURN(Point point, PointFromOptions(options, collective));
    const double ranks = NumberIn(object, "ranks").value_or(options_.ranks);
    const double nodes =
        NumberIn(object, "nodes").value_or(options_.nodes > 0 ? options_.nodes : 1);
    if (ranks < 1) return Invalid("it does not say how many ranks there were: give --ranks");
    const double size = NumberIn(object, "size").value_or(0);
    if (!(nodes >= 1) || !(ranks >= nodes) || ranks > kMostRanks || !(size >= 1) ||
        size > kMostBytes) {
      return Invalid("size, nodes or ranks are out of range");
    }
    point.ranks = static_cast<int>(ranks);
    point.nodes = static_cast<int>(nodes);
    point.bytes = static_cast<uint64_t>(size);
    const std::string reduce = ToLower(TextIn(object, "redop"));
    if (!point.reduce.empty() && !reduce.empty() && reduce != "none") point.reduce = reduce;
    const double in_place = NumberIn(object, "inPlace").value_or(0);
    if (in_place != 0 && in_place != 1) return Invalid("inPlace is neither 0 nor 1");
    point.in_place = in_place == 1;
    RETURN_IF_ERROR(AgreesWith(options_, point));
    Sample sample;
    sample.seconds = NumberIn(object, "time").value_or(0) * 1e-6;
    if (!std::isfinite(sample.seconds) || sample.seconds <= 0 || sample.seconds > 1e6) {
      return Invalid("its time is none");
    }
    if (const std::optional<double> wrong = NumberIn(object, "wrong"); wrong && *wrong > 0) {
      sample.outcome = SampleOutcome::kWrong;
      sample.note = "rccl-tests counted wrong elements";
    }
    sample.point = std::move(point);
    sample.round = rounds_[sample.point]++;
    imported_.samples.push_back(std::move(sample));
    ++rows_;
    return {};
  }

  const ImportOptions& options_;
  WholeRun imported_;
  std::map<Point, int> rounds_;
  size_t rows_ = 0;
  size_t left_ = 0;
  std::string first_left_;
};

}  // namespace

bool IsTestJson(std::string_view first_line) {
  return first_line.starts_with('{') || first_line == "[" || first_line.starts_with("[{");
}

Result<Import> ImportTestJson(std::string_view text, const std::string& name,
                              const ImportOptions& options) {
  JsonReader reader(options);
  const json whole = json::parse(text.begin(), text.end(), nullptr, false);
  int number = 0;
  if (whole.is_array()) {
    for (const json& object : whole) reader.Object(object, ++number);
    return reader.Finish(text, name);
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = Trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // A list that was cut off has its objects on lines of their own, too.
    if (line.starts_with('[')) line.remove_prefix(1);
    if (line.ends_with(']') || line.ends_with(',')) line.remove_suffix(1);
    line = Trim(line);
    if (line.empty()) continue;
    const json object = json::parse(line.begin(), line.end(), nullptr, false);
    ++number;
    if (object.is_discarded()) {
      reader.Leave(number, "it is no JSON");
    } else {
      reader.Object(object, number);
    }
  }
  return reader.Finish(text, name);
}

}  // namespace diapason::dataset
