#include "measure/wire.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/encoding.h"
#include "base/text.h"

namespace diapason::measure {
namespace {

// Words of a line, taken one after the other; the first that does not fit spoils the rest.
class WireWords {
 public:
  explicit WireWords(std::string_view text) : words_(Split(text, ' ')) {}

  int64_t Number(int64_t least, int64_t most) {
    int64_t value = least;
    if (!ParseSigned(Next(), &value) || value < least || value > most) good_ = false;
    return good_ ? value : least;
  }
  double Real() {
    const std::string word(Next());
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (word.empty() || *end != '\0' || !std::isfinite(value)) good_ = false;
    return good_ ? value : 0;
  }
  // Texts are in base 64, with a mark before it, so that an empty one is a word too.
  std::string Text() {
    const std::string_view word = Next();
    if (word.empty() || word[0] != ':') {
      good_ = false;
      return "";
    }
    Result<std::string> text = DecodeBase64Url(word.substr(1));
    if (!text.ok()) good_ = false;
    return good_ ? std::move(text).value() : "";
  }
  bool good() const { return good_; }
  Status End(const char* what) const {
    if (good_ && at_ == words_.size()) return {};
    return Invalid(std::string("a ") + what + " that cannot be read came from another process");
  }

 private:
  std::string_view Next() {
    if (at_ == words_.size()) {
      good_ = false;
      return "";
    }
    return words_[at_++];
  }
  std::vector<std::string_view> words_;
  size_t at_ = 0;
  bool good_ = true;
};

std::string Quoted(std::string_view text) { return ":" + EncodeBase64Url(text); }
std::string Real(double value) { return Format("{:.17g}", value); }

constexpr int kMostIterations = 1000000000;
constexpr int kMostSteps = 1000000;
constexpr std::string_view kMark = "@diapason ";

// The first letter of an order.
constexpr char kTrial = 'T';
constexpr char kPair = 'P';
constexpr char kIteration = 'I';

std::string EncodePair(const RankPair& pair) {
  return Format("{} {} {} {}", pair.first, pair.second, pair.bytes, pair.iterations);
}

Result<RankPair> DecodePair(std::string_view text) {
  WireWords words(text);
  RankPair pair;
  pair.first = static_cast<int>(words.Number(0, INT32_MAX));
  pair.second = static_cast<int>(words.Number(0, INT32_MAX));
  pair.bytes = static_cast<uint64_t>(words.Number(0, INT64_MAX));
  pair.iterations = static_cast<int>(words.Number(1, kMostIterations));
  RETURN_IF_ERROR(words.End("pair"));
  return pair;
}

template <typename T>
Result<Order> AsOrder(const Result<T>& decoded) {
  if (!decoded.ok()) return decoded.status();
  return Order(decoded.value());
}

}  // namespace

std::string EncodeTrial(const Trial& trial) {
  return Format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(trial.operation),
                trial.bytes, static_cast<int>(trial.type), static_cast<int>(trial.reduce),
                trial.root, trial.in_place ? 1 : 0, trial.config.algorithm, trial.config.protocol,
                trial.config.channels, trial.config.segment_bytes, trial.only_ranks, trial.warmups,
                trial.iterations, trial.check ? 1 : 0) +
         " " + Quoted(trial.workload);
}

Result<Trial> DecodeTrial(std::string_view text) {
  WireWords words(text);
  Trial trial;
  trial.operation = static_cast<Operation>(words.Number(0, kOperationCount - 1));
  trial.bytes = static_cast<uint64_t>(words.Number(0, INT64_MAX));
  trial.type = static_cast<DataType>(words.Number(0, static_cast<int>(DataType::kI64)));
  trial.reduce = static_cast<ReduceOp>(words.Number(0, static_cast<int>(ReduceOp::kAvg)));
  trial.root = static_cast<int>(words.Number(INT32_MIN, INT32_MAX));
  trial.in_place = words.Number(0, 1) != 0;
  trial.config.algorithm = static_cast<int>(words.Number(INT32_MIN, INT32_MAX));
  trial.config.protocol = static_cast<int>(words.Number(INT32_MIN, INT32_MAX));
  trial.config.channels = static_cast<int>(words.Number(INT32_MIN, INT32_MAX));
  trial.config.segment_bytes = words.Number(INT64_MIN, INT64_MAX);
  trial.only_ranks = static_cast<int>(words.Number(0, INT32_MAX));
  trial.warmups = static_cast<int>(words.Number(0, kMostIterations));
  trial.iterations = static_cast<int>(words.Number(1, kMostIterations));
  trial.check = words.Number(0, 1) != 0;
  trial.workload = words.Text();
  RETURN_IF_ERROR(words.End("trial"));
  return trial;
}

std::string EncodeOrder(const Order& order) {
  if (const auto* trial = std::get_if<Trial>(&order)) return kTrial + EncodeTrial(*trial);
  if (const auto* pair = std::get_if<RankPair>(&order)) return kPair + EncodePair(*pair);
  return kIteration + EncodeSpec(std::get<IterationSpec>(order));
}

Result<Order> DecodeOrder(std::string_view text) {
  const char kind = text.empty() ? '\0' : text[0];
  if (kind == kTrial) return AsOrder(DecodeTrial(text.substr(1)));
  if (kind == kPair) return AsOrder(DecodePair(text.substr(1)));
  if (kind == kIteration) return AsOrder(DecodeSpec(text.substr(1)));
  return Invalid("an order that cannot be read came from another process");
}

std::string EncodeTimes(const IterationTimes& times) {
  std::string text;
  for (const std::vector<double>* list : {&times.steps, &times.compute, &times.communication}) {
    text += (text.empty() ? "" : " ") + std::to_string(list->size());
    for (const double seconds : *list) text += " " + Real(seconds);
  }
  return text;
}

Result<IterationTimes> DecodeTimes(std::string_view text) {
  WireWords words(text);
  IterationTimes times;
  for (std::vector<double>* list : {&times.steps, &times.compute, &times.communication}) {
    // A count that lies ends at the first word that is missing.
    const int64_t count = words.Number(0, kMostSteps);
    for (int64_t i = 0; i < count && words.good(); ++i) list->push_back(words.Real());
  }
  RETURN_IF_ERROR(words.End("list of times"));
  return times;
}

std::string EncodeMeasurement(const Measurement& measurement) {
  return Format("{} ", static_cast<int>(measurement.outcome)) + Real(measurement.seconds) + " " +
         Real(measurement.fastest) + Format(" {} {} ", measurement.iterations, measurement.wrong) +
         Quoted(measurement.note);
}

Result<Measurement> DecodeMeasurement(std::string_view text) {
  WireWords words(text);
  Measurement measurement;
  measurement.outcome = static_cast<dataset::SampleOutcome>(
      words.Number(0, static_cast<int>(dataset::SampleOutcome::kRefused)));
  measurement.seconds = words.Real();
  measurement.fastest = words.Real();
  measurement.iterations = static_cast<int>(words.Number(0, kMostIterations));
  measurement.wrong = words.Number(-1, INT64_MAX);
  measurement.note = words.Text();
  RETURN_IF_ERROR(words.End("reading"));
  return measurement;
}

std::string EncodeSubject(const Subject& subject) {
  const dataset::MachineInfo& machine = subject.machine;
  std::string text = Quoted(subject.backend) +
                     Format(" {} {} {} {} ", static_cast<int>(subject.library), subject.ranks,
                            subject.nodes, subject.simulated ? 1 : 0) +
                     Real(subject.link_peak);
  for (const std::string& part :
       {subject.description, machine.library, machine.library_version, machine.gpu, machine.driver,
        machine.topology, machine.hosts, machine.tool}) {
    text += " " + Quoted(part);
  }
  text += Format(" {}", subject.hosts.size());
  for (const std::string& host : subject.hosts) text += " " + Quoted(host);
  text += Format(" {}", machine.environment.size());
  for (const auto& [name, value] : machine.environment) {
    text += " " + Quoted(name) + " " + Quoted(value);
  }
  return text;
}

Result<Subject> DecodeSubject(std::string_view text) {
  WireWords words(text);
  Subject subject;
  dataset::MachineInfo& machine = subject.machine;
  subject.backend = words.Text();
  subject.library = static_cast<Library>(words.Number(0, kLibraryCount - 1));
  subject.ranks = static_cast<int>(words.Number(1, INT32_MAX));
  subject.nodes = static_cast<int>(words.Number(1, INT32_MAX));
  subject.simulated = words.Number(0, 1) != 0;
  subject.link_peak = words.Real();
  for (std::string* part :
       {&subject.description, &machine.library, &machine.library_version, &machine.gpu,
        &machine.driver, &machine.topology, &machine.hosts, &machine.tool}) {
    *part = words.Text();
  }
  machine.simulated = subject.simulated;
  const int64_t hosts = words.Number(0, INT32_MAX);
  for (int64_t i = 0; i < hosts && words.good(); ++i) subject.hosts.push_back(words.Text());
  const int64_t variables = words.Number(0, 100000);
  for (int64_t i = 0; i < variables; ++i) {
    const std::string name = words.Text();
    machine.environment[name] = words.Text();
  }
  RETURN_IF_ERROR(words.End("description"));
  return subject;
}

std::string EncodeError(const Status& status) {
  return Format("{} ", static_cast<int>(status.code())) + Quoted(status.message());
}

Status DecodeError(std::string_view text) {
  WireWords words(text);
  const auto code = static_cast<ErrorCode>(words.Number(0, static_cast<int>(ErrorCode::kNoRoom)));
  const std::string message = words.Text();
  RETURN_IF_ERROR(words.End("error"));
  return Status::Error(code, message);
}

std::string SealLine(std::string_view text) {
  return std::string(kMark) + std::string(text) + Format(" {:016x}", Fnv1a64(text));
}

Result<std::optional<std::string>> OpenLine(const std::string& line) {
  const size_t at = line.find(kMark);
  if (at == std::string::npos) return std::optional<std::string>();
  const std::string rest = line.substr(at + kMark.size());
  const size_t blank = rest.rfind(' ');
  if (blank != std::string::npos) {
    const std::string text = rest.substr(0, blank);
    if (SealLine(text) == line.substr(at)) return std::optional<std::string>(text);
  }
  return Invalid("an answer of the ranks was damaged on its way");
}

}  // namespace diapason::measure
