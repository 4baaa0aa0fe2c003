#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/bench/bench_options.h"
#include "domain/collectives.h"

namespace diapason::cli {
namespace {

using measure::Subject;
using measure::Trial;

constexpr size_t kMostSizes = 4096;

Result<std::vector<uint64_t>> Sizes(const BenchOptions& options, const Subject& subject) {
  if (!options.sizes.empty()) return ParseSizes(options.sizes);
  const bool gpu = AsksTuner(subject.library);
  const Result<uint64_t> from = ParseBytes(options.from);
  if (!from.ok()) return from.status().WithContext("-b");
  const Result<uint64_t> to = ParseBytes(options.to.empty() ? (gpu ? "128M" : "8M") : options.to);
  if (!to.ok()) return to.status().WithContext("-e");
  const uint64_t last = std::max(to.value(), options.to.empty() ? from.value() : 0);
  if (from.value() > last) return Invalid("-b is larger than -e");
  if (from.value() == 0) return Invalid("-b must be at least one byte");
  std::vector<uint64_t> sizes;
  if (!options.step.empty()) {
    const Result<uint64_t> step = ParseBytes(options.step);
    if (!step.ok()) return step.status().WithContext("-i");
    if (step.value() == 0) return Invalid("-i must be at least one byte");
    for (uint64_t size = from.value(); size <= last && sizes.size() < kMostSizes;
         size += step.value()) {
      sizes.push_back(size);
    }
    return sizes;
  }
  for (double size = static_cast<double>(from.value());
       size <= static_cast<double>(last) * (1 + 1e-12); size *= options.factor) {
    sizes.push_back(static_cast<uint64_t>(size));
  }
  return sizes;
}

Status ReadConfig(const BenchOptions& options, const Subject& subject, Operation operation,
                  Config* config) {
  if (!options.algorithm.empty()) {
    ASSIGN_OR_RETURN(const int algorithm,
                     ParseAlgorithm(subject.library, NamesOf(operation), options.algorithm));
    config->algorithm = algorithm;
  }
  if (!options.protocol.empty()) {
    ASSIGN_OR_RETURN(const int protocol, ParseProtocol(subject.library, options.protocol));
    config->protocol = protocol;
  }
  config->channels = options.channels;
  return {};
}

}  // namespace

Result<std::vector<DataType>> ParseTypes(const std::string& text) {
  std::vector<DataType> types;
  if (text == "all") {
    for (int type = 0; type <= static_cast<int>(DataType::kI64); ++type) {
      types.push_back(static_cast<DataType>(type));
    }
    return types;
  }
  for (const std::string_view word : Split(text, ',')) {
    ASSIGN_OR_RETURN(const DataType type, ParseDataType(std::string(word)));
    types.push_back(type);
  }
  return types;
}

Result<std::vector<ReduceOp>> ParseReductions(const std::string& text) {
  std::vector<ReduceOp> reductions;
  if (text == "all") {
    for (int reduce = 0; reduce <= static_cast<int>(ReduceOp::kAvg); ++reduce) {
      reductions.push_back(static_cast<ReduceOp>(reduce));
    }
    return reductions;
  }
  for (const std::string_view word : Split(text, ',')) {
    ASSIGN_OR_RETURN(const ReduceOp reduce, ParseReduceOp(std::string(word)));
    reductions.push_back(reduce);
  }
  return reductions;
}

Result<std::vector<Trial>> PlanBench(const BenchOptions& options, const Subject& subject) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes, Sizes(options, subject));
  ASSIGN_OR_RETURN(const std::vector<DataType> types, ParseTypes(options.type));
  ASSIGN_OR_RETURN(const std::vector<ReduceOp> reductions, ParseReductions(options.reduce));
  if (options.root >= subject.ranks) {
    return Invalid(Format("-r {}: there are only {} ranks", options.root, subject.ranks));
  }
  std::vector<Trial> plan;
  for (const std::string& name : options.collectives) {
    ASSIGN_OR_RETURN(const Operation operation, measure::ParseMeasured(name));
    Trial trial;
    trial.operation = operation;
    trial.root = options.root;
    RETURN_IF_ERROR(ReadConfig(options, subject, trial.operation, &trial.config));
    const bool reduces = Reduces(trial.operation);
    for (const DataType type : types) {
      for (const ReduceOp reduce : reductions) {
        if (!reduces && reduce != reductions.front()) continue;
        trial.type = type;
        trial.reduce = reduces ? reduce : ReduceOp::kSum;
        uint64_t before = UINT64_MAX;
        for (const uint64_t size : sizes) {
          // Whole elements on every rank: the bytes that are really sent.
          trial.bytes = size;
          trial.bytes = measure::WholeBytes(trial, subject.ranks);
          if (trial.bytes == 0 || trial.bytes == before) continue;
          before = trial.bytes;
          plan.push_back(trial);
        }
      }
    }
  }
  if (plan.empty()) return Invalid("no size has at least one element per rank; increase -e");
  return plan;
}

}  // namespace diapason::cli
