#include "measure/measurer.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/secrets.h"
#include "base/text.h"
#include "domain/collectives.h"
#include "measure/iteration.h"

namespace diapason::measure {
namespace {

// Those that this process may use; 0: not known.
int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

}  // namespace

std::string CrowdedText(const Subject& subject) {
  if (subject.simulated || subject.backend == "replay") return "";
  char name[256] = {};
  (void)gethostname(name, sizeof(name) - 1);
  auto here =
      static_cast<int>(std::count(subject.hosts.begin(), subject.hosts.end(), std::string(name)));
  if (subject.nodes == 1) here = std::max(here, subject.ranks);
  const int cores = UsableCores();
  if (cores == 0 || here <= cores) return "";
  return Format("{} ranks share the {} of this host, so times depend on the scheduler too", here,
                cores == 1 ? "only core" : std::to_string(cores) + " cores");
}

std::string CollectiveText(Operation operation) { return FactsOf(operation).measured; }

Result<Operation> ParseMeasured(std::string_view name) {
  if (const OperationFacts* facts = FindMeasured(FoldName(name))) return facts->operation;
  std::vector<std::string> names;
  for (const OperationFacts& facts : kOperations) {
    if (*facts.measured != '\0') names.emplace_back(facts.measured);
  }
  return Invalid("unknown collective '" + std::string(name) + "'" + Suggestion(name, names));
}

dataset::Point PointOf(const Trial& trial, const Subject& subject) {
  dataset::Point point;
  point.collective = CollectiveText(trial.operation);
  point.bytes = trial.bytes;
  point.ranks = trial.only_ranks > 0 ? trial.only_ranks : subject.ranks;
  point.nodes = std::min(subject.nodes, point.ranks);
  point.type = DataTypeName(trial.type);
  point.reduce = Reduces(trial.operation) ? ReduceOpName(trial.reduce) : "";
  point.root = HasRoot(trial.operation) ? trial.root : -1;
  point.in_place = trial.in_place;
  const Config& config = trial.config;
  if (config.algorithm != kKeep) {
    point.algorithm = AlgorithmName(subject.library, NamesOf(trial.operation), config.algorithm);
  }
  if (config.protocol != kKeep) point.protocol = ProtocolName(subject.library, config.protocol);
  point.channels = config.channels;
  point.segment_bytes = config.segment_bytes;
  point.environment = MaskSecretsIn(trial.environment);
  if (!trial.workload.empty()) {
    const Result<IterationSpec> spec = DecodeSpec(trial.workload);
    point.kind = dataset::Point::Kind::kIteration;
    point.workload = spec.ok() ? WorkloadText(spec.value()) : "unreadable";
  }
  return point;
}

Result<Trial> TrialOf(const dataset::Point& point, Library library) {
  Trial trial;
  ASSIGN_OR_RETURN(const Operation operation, ParseMeasured(point.collective));
  trial.operation = operation;
  trial.bytes = point.bytes;
  ASSIGN_OR_RETURN(const DataType type, ParseDataType(point.type));
  trial.type = type;
  if (!point.reduce.empty()) {
    ASSIGN_OR_RETURN(const ReduceOp reduce, ParseReduceOp(point.reduce));
    trial.reduce = reduce;
  }
  trial.root = std::max(0, point.root);
  trial.in_place = point.in_place;
  if (!point.algorithm.empty()) {
    ASSIGN_OR_RETURN(const int algorithm,
                     ParseAlgorithm(library, NamesOf(trial.operation), point.algorithm));
    trial.config.algorithm = algorithm;
  }
  if (!point.protocol.empty()) {
    ASSIGN_OR_RETURN(const int protocol, ParseProtocol(library, point.protocol));
    trial.config.protocol = protocol;
  }
  trial.config.channels = point.channels;
  trial.config.segment_bytes = point.segment_bytes;
  trial.environment = point.environment;
  return trial;
}

size_t CountOf(const Trial& trial, int ranks) {
  const uint64_t elements = trial.bytes / SizeOf(trial.type);
  return CountsAllRanks(trial.operation) ? elements / static_cast<uint64_t>(ranks) : elements;
}

uint64_t WholeBytes(const Trial& trial, int ranks) {
  const uint64_t bytes = CountOf(trial, ranks) * SizeOf(trial.type);
  return CountsAllRanks(trial.operation) ? bytes * static_cast<uint64_t>(ranks) : bytes;
}

const char* TestsTypeName(DataType type) {
  constexpr const char* kNames[] = {"float", "double", "half",  "bfloat16",
                                    "int8",  "uint8",  "int32", "int64"};
  return kNames[static_cast<size_t>(type)];
}

dataset::Sample SampleOf(const Trial& trial, const Subject& subject,
                         const Measurement& measurement) {
  dataset::Sample sample;
  sample.point = PointOf(trial, subject);
  if (measurement.outcome == dataset::SampleOutcome::kFine) sample.seconds = measurement.seconds;
  sample.iterations = measurement.iterations;
  sample.wrong = measurement.wrong;
  sample.outcome = measurement.outcome;
  sample.note = measurement.note;
  sample.at = static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                      std::chrono::system_clock::now().time_since_epoch())
                                      .count()) *
              1e-3;
  return sample;
}

}  // namespace diapason::measure
