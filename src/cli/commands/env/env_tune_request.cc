#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/env/env_tune.h"
#include "cli/commands/env/knobs_options.h"
#include "cli/commands/ranks.h"
#include "domain/library_version.h"
#include "env_tune/knob_list.h"
#include "host/libraries.h"

namespace diapason::cli {
namespace {

using env_tune::CostLimit;
using env_tune::Measure;
using env_tune::TuneRequest;

constexpr size_t kLargestKnobFile = 1 << 20;

// "+10%" is relative to the default; any other text is parsed by `parse`.
template <typename Parse>
Result<CostLimit> ParseLimit(const std::string& text, const char* option, Parse parse) {
  CostLimit limit;
  if (text.empty()) return limit;
  if (text[0] == '+' || text.back() == '%') {
    ASSIGN_OR_RETURN(const double share,
                     ParseShare(text[0] == '+' ? text.substr(1) : text, option));
    limit.kind = CostLimit::Kind::kRelative;
    limit.value = share;
    return limit;
  }
  const auto value = parse(text);
  if (!value.ok()) return value.status().WithContext(option);
  limit.kind = CostLimit::Kind::kAbsolute;
  limit.value = static_cast<double>(value.value());
  return limit;
}

// Splits text into words as a shell does, at blanks outside quotes.
Result<std::vector<std::string>> Words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t') {
      if (inside) words.push_back(word);
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != 0) return Invalid("a quote is not closed in '" + text + "'");
  if (inside) words.push_back(word);
  return words;
}

// The command to run, and its metric.
Status FillCommand(const EnvTuneOptions& options, TuneRequest* request) {
  if (options.bench.empty() && options.iteration.empty()) {
    request->command = options.command;
    if (!options.metric.empty()) {
      request->measure = Measure::kPattern;
      request->pattern = options.metric;
    }
    const Result<env_tune::MetricPick> pick = env_tune::ParseMetricPick(options.pick);
    if (!pick.ok()) return pick.status().WithContext("--metric-pick");
    request->pick = pick.value();
    return {};
  }
  const bool bench = !options.bench.empty();
  request->measure = bench ? Measure::kBench : Measure::kIteration;
  ASSIGN_OR_RETURN(const std::string self, OwnProgram());
  ASSIGN_OR_RETURN(const std::vector<std::string> words,
                   Words(bench ? options.bench : options.iteration));
  request->command = {self, "bench"};
  if (!bench) request->command.emplace_back("iteration");
  request->command.insert(request->command.end(), words.begin(), words.end());
  request->command.emplace_back("--figures");
  return {};
}

Status FillDesign(const EnvTuneOptions& options, TuneRequest* request) {
  env_tune::ExperimentOptions& design = request->design;
  ASSIGN_OR_RETURN(const double gain, ParseShare(options.margin, "--margin"));
  ASSIGN_OR_RETURN(const double alpha, ParseShare(options.alpha, "--alpha"));
  if (alpha < 0.0001 || alpha > 0.5) return Invalid("--alpha is 0.01% to 50%");
  ASSIGN_OR_RETURN(const CostLimit cpu, ParseLimit(options.max_cpu, "--max-cpu", ParseSeconds));
  ASSIGN_OR_RETURN(const CostLimit memory,
                   ParseLimit(options.max_memory, "--max-memory", ParseBytes));
  if (options.timeout > 0) request->timeout_s = options.timeout;
  design.min_gain = gain;
  design.alpha = alpha;
  design.max_cpu = cpu;
  design.max_memory = memory;
  design.higher = options.higher;
  design.baseline_runs = options.baseline_runs;
  design.most_blocks = options.blocks;
  design.validation_blocks = options.validation;
  design.abba = options.abba;
  design.seed = options.seed;
  request->budget_s = options.budget;
  return {};
}

Status FillLibrary(const EnvTuneOptions& options, TuneRequest* request) {
  const RootFs tree;
  std::vector<host::LibraryFile> files = host::FindLibraries(tree, ProcessEnvironment());
  if (!options.library.empty()) {
    ASSIGN_OR_RETURN(const Library library, ParseNcclOrRccl(options.library));
    request->library = library;
  } else if (!files.empty()) {
    request->library = files.front().library;
  }
  if (!options.version.empty()) {
    if (!request->library) request->library = Library::kNccl;
    ASSIGN_OR_RETURN(const int version, ParseWholeVersion(options.version));
    request->version = version;
    return {};
  }
  if (!request->library) return {};
  request->version = VersionHere(tree, ProcessEnvironment(), *request->library, std::move(files));
  if (request->version == 0) request->version = knobs::Catalogue::NewestComplete(*request->library);
  return {};
}

Status FillCandidates(const EnvTuneOptions& options, TuneRequest* request) {
  for (const std::string& knob : options.knobs) {
    const Result<std::vector<env_tune::KnobValue>> values = env_tune::ParseKnob(knob);
    if (!values.ok()) return values.status().WithContext("--knob");
    request->candidates.insert(request->candidates.end(), values.value().begin(),
                               values.value().end());
  }
  if (!options.knob_file.empty()) {
    const Result<std::string> text = ReadFile(options.knob_file, kLargestKnobFile);
    if (!text.ok()) return text.status().WithContext("--knobs");
    const Result<std::vector<env_tune::KnobValue>> values =
        env_tune::ParseKnobFile(text.value(), options.knob_file);
    if (!values.ok()) return values.status().WithContext("--knobs");
    request->candidates.insert(request->candidates.end(), values.value().begin(),
                               values.value().end());
  }
  if (!options.binds.empty()) {
    const Result<env_tune::Binds> binds = env_tune::ParseBinds(options.binds);
    if (!binds.ok()) return binds.status().WithContext("--binds");
    request->binds = binds.value();
  }
  if (request->candidates.empty() && !request->library) {
    return Invalid(
        "neither NCCL nor RCCL was found on this host, so there is no list of variables to try: "
        "give variables with --knob NAME=VALUE,VALUE, or the library with --library");
  }
  return {};
}

}  // namespace

Result<TuneRequest> EnvTuneRequest(const EnvTuneOptions& options) {
  TuneRequest request;
  request.state = options.state;
  request.resume = options.resume;
  request.verbose = options.verbose;
  RETURN_IF_ERROR(FillCommand(options, &request));
  RETURN_IF_ERROR(FillDesign(options, &request));
  RETURN_IF_ERROR(FillLibrary(options, &request));
  RETURN_IF_ERROR(FillCandidates(options, &request));
  return request;
}

}  // namespace diapason::cli
