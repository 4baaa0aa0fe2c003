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
    const Result<double> share = ParseShare(text[0] == '+' ? text.substr(1) : text, option);
    if (!share.ok()) return share.status();
    limit.kind = CostLimit::Kind::kRelative;
    limit.value = share.value();
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
  const Result<std::string> self = OwnProgram();
  if (!self.ok()) return self.status();
  const Result<std::vector<std::string>> words = Words(bench ? options.bench : options.iteration);
  if (!words.ok()) return words.status();
  request->command = {self.value(), "bench"};
  if (!bench) request->command.emplace_back("iteration");
  request->command.insert(request->command.end(), words.value().begin(), words.value().end());
  request->command.emplace_back("--figures");
  return {};
}

Status FillDesign(const EnvTuneOptions& options, TuneRequest* request) {
  env_tune::ExperimentOptions& design = request->design;
  const Result<double> gain = ParseShare(options.margin, "--margin");
  if (!gain.ok()) return gain.status();
  const Result<double> alpha = ParseShare(options.alpha, "--alpha");
  if (!alpha.ok()) return alpha.status();
  if (alpha.value() < 0.0001 || alpha.value() > 0.5) return Invalid("--alpha is 0.01% to 50%");
  const Result<CostLimit> cpu = ParseLimit(options.max_cpu, "--max-cpu", ParseSeconds);
  if (!cpu.ok()) return cpu.status();
  const Result<CostLimit> memory = ParseLimit(options.max_memory, "--max-memory", ParseBytes);
  if (!memory.ok()) return memory.status();
  if (options.timeout > 0) request->timeout_s = options.timeout;
  design.min_gain = gain.value();
  design.alpha = alpha.value();
  design.max_cpu = cpu.value();
  design.max_memory = memory.value();
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
  const std::vector<host::LibraryFile> files = host::FindLibraries(tree, ProcessEnvironment());
  if (!options.library.empty()) {
    const Result<Library> library = ParseNcclOrRccl(options.library);
    if (!library.ok()) return library.status();
    request->library = library.value();
  } else if (!files.empty()) {
    request->library = files.front().library;
  }
  if (!options.version.empty()) {
    if (!request->library) request->library = Library::kNccl;
    const Result<int> version = ParseWholeVersion(options.version);
    if (!version.ok()) return version.status();
    request->version = version.value();
    return {};
  }
  if (!request->library) return {};
  const std::string loaded = WouldLoad(files, *request->library, tree, ProcessEnvironment());
  for (const host::LibraryFile& file : files) {
    if (file.library != *request->library || file.version == 0) continue;
    const bool taken = file.path == loaded || file.real_path == loaded;
    if (taken || request->version == 0) request->version = file.version;
  }
  if (request->version == 0) request->version = knobs::Catalogue::NewestKnown(*request->library);
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
  if (Status status = FillCommand(options, &request); !status.ok()) return status;
  if (Status status = FillDesign(options, &request); !status.ok()) return status;
  if (Status status = FillLibrary(options, &request); !status.ok()) return status;
  if (Status status = FillCandidates(options, &request); !status.ok()) return status;
  return request;
}

}  // namespace diapason::cli
