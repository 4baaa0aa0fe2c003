#include "job_tune/leave.h"

#include <filesystem>

#include "base/file.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/version.h"
#include "dataset/store.h"
#include "dataset/words.h"
#include "domain/library_version.h"
#include "job_tune/page.h"
#include "policy/origin.h"
#include "policy/parse.h"
#include "report/page.h"

namespace diapason::job_tune {
namespace {

// The context that a row is for, if one was tuned.
const TunedContext* ContextOfRow(const JobTuneResult& result, const policy::Rule& rule) {
  for (const TunedContext& one : result.contexts) {
    if (one.context.collective == rule.collective && one.most_bytes >= rule.min_bytes &&
        one.most_bytes <= rule.max_bytes && rule.MatchesShape(one.context.shape) &&
        one.chosen == rule.config) {
      return &one;
    }
  }
  return nullptr;
}

// "verified: the iteration is 1.44 x as fast [1.41, 1.47] with all rows, in 3 fresh launches, 36
// changes of turns; in the search 1.20 x [1.15, 1.25] with this row alone".
std::string Evidence(const JobTuneResult& result, const policy::Rule& rule) {
  const PooledGain& gain = result.gain;
  std::string text =
      Format("verified: the {} is {:.2f} x as fast [{:.2f}, {:.2f}]{}, in {}",
             result.whole_launches ? "launch" : "iteration", gain.gain, gain.low, gain.high,
             result.policy.rules.size() > 1 ? " with all rows" : "", LaunchesText(gain));
  if (!gain.by_pairs) text += Format(", {} of turns", Count(gain.changes, "change"));
  const TunedContext* const context = ContextOfRow(result, rule);
  if (context == nullptr) return text;
  for (const TriedConfig& one : context->tried) {
    if (one.config != rule.config || one.gain <= 0) continue;
    text += Format("; in the search {:.2f} x [{:.2f}, {:.2f}] with this row alone", one.gain,
                   one.low, one.high);
    break;
  }
  return text;
}

Status WritePolicy(const LeaveOptions& options, JobTuneResult* result) {
  LeftFiles& files = result->files;
  const std::string path = (std::filesystem::path(options.folder) / "policy.conf").string();
  const Result<std::string> before = ReadFile(path, policy::kMostBytes);
  if (result->verdict != Verdict::kFaster || result->policy.rules.empty()) {
    if (before.ok()) files.untouched = path;
    return {};
  }
  const std::string text = PolicyFileText(*result, options.fingerprint);
  if (before.ok() && before.value() != text) {
    files.previous = (std::filesystem::path(options.folder) / "policy.old.conf").string();
    RETURN_IF_ERROR(WriteFileAtomically(files.previous, before.value()));
  }
  RETURN_IF_ERROR(WriteFileAtomically(path, text));
  files.policy = path;
  // As a reader finds it: rows have the lines of the file then.
  ASSIGN_OR_RETURN(result->policy, policy::ParseStrictly(text, path, {}));
  return {};
}

dataset::Point PointOf(const JobTuneResult& result, const TunedContext& one, const Config& config) {
  const JobContext& context = one.context;
  dataset::Point point;
  point.kind = dataset::Point::Kind::kIteration;
  point.collective = CollectiveName(context.collective);
  point.bytes = one.most_bytes;
  point.nodes = static_cast<int>(context.shape.nodes);
  point.ranks = static_cast<int>(context.shape.ranks);
  point.reduce = dataset::Reduces(point.collective) ? "sum" : "";
  point.workload = "job: " + MaskSecretsIn(result.command);
  if (config.algorithm != kKeep) {
    point.algorithm = AlgorithmName(context.library, context.collective, config.algorithm);
  }
  if (config.protocol != kKeep) point.protocol = ProtocolName(context.library, config.protocol);
  point.channels = config.channels;
  return point;
}

std::vector<dataset::Sample> SamplesOf(const JobTuneResult& result, double now) {
  std::vector<dataset::Sample> samples;
  // A sample is an iteration, not a launch.
  if (result.whole_launches) return samples;
  const auto add = [&](dataset::Point point, int round, double seconds) {
    if (!(seconds > 0)) return;
    dataset::Sample sample;
    sample.point = std::move(point);
    sample.round = round;
    sample.seconds = seconds;
    sample.at = now;
    samples.push_back(std::move(sample));
  };
  for (const TunedContext& context : result.contexts) {
    int defaults = 0;
    for (const TriedConfig& tried : context.tried) {
      int round = 0;
      for (const TriedBlock& block : tried.times) {
        add(PointOf(result, context, {}), defaults++, block.default_seconds);
        add(PointOf(result, context, tried.config), round++, block.seconds);
      }
    }
  }
  return samples;
}

dataset::MachineInfo MachineOf(const LeaveOptions& options, const JobTuneResult& result) {
  dataset::MachineInfo machine;
  machine.gpu = options.fingerprint;
  machine.driver = options.driver;
  machine.tool = std::string("diapason ") + kVersion;
  int64_t ranks = 0;
  for (const job_profile::Role& role : result.look.roles) {
    if (role.shape.ranks <= ranks) continue;
    ranks = role.shape.ranks;
    machine.library = LibraryName(role.library);
    machine.library_version =
        role.library_version == 0 ? "" : LibraryVersionText(role.library_version);
    machine.topology = Format("{} on {}", Count(static_cast<size_t>(ranks), "rank"),
                              Count(static_cast<size_t>(role.shape.nodes), "node"));
  }
  return machine;
}

Status WriteMeasurements(const LeaveOptions& options, JobTuneResult* result) {
  const std::vector<dataset::Sample> samples = SamplesOf(*result, options.now);
  if (samples.empty()) return {};
  const std::string path = (std::filesystem::path(options.folder) / "measurements.db").string();
  ASSIGN_OR_RETURN(const std::unique_ptr<dataset::SampleStore> store,
                   dataset::SampleStore::Open(path, dataset::SampleStore::Access::kWrite));
  dataset::SampleRun run;
  run.id = dataset::NewRunId();
  run.source = "tune";
  run.origin = MaskSecretsIn(options.command_line);
  run.started = std::max(0.0, options.now - result->seconds);
  run.state = result->interrupted ? dataset::SampleRun::State::kInterrupted
                                  : dataset::SampleRun::State::kDone;
  run.machine = MachineOf(options, *result);
  RETURN_IF_ERROR(store->AddRun(run, samples).status());
  result->files.measurements = path;
  return {};
}

}  // namespace

std::string PolicyFileText(const JobTuneResult& result, const std::string& fingerprint) {
  policy::Policy policy = result.policy;
  policy.header.origin = policy::kFromWholeJob;
  policy.header.fingerprint = fingerprint;
  std::vector<std::string> remarks;
  for (policy::Rule& rule : policy.rules) {
    rule.remark.clear();
    remarks.push_back(Evidence(result, rule));
  }
  return policy::PolicyText(policy, remarks);
}

Status Leave(const LeaveOptions& options, JobTuneResult* result) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (!std::filesystem::is_directory(options.folder, error)) {
    return Invalid("cannot create the folder '" + dataset::Printable(options.folder) +
                   "': choose another one with --output");
  }
  result->files = {};
  result->files.folder = options.folder;
  RETURN_IF_ERROR(WritePolicy(options, result));
  RETURN_IF_ERROR(WriteMeasurements(options, result));
  const std::filesystem::path folder(options.folder);
  const std::string page = (folder / "report.html").string();
  RETURN_IF_ERROR(WriteFileAtomically(
      page, report::JobPageHtml(PageOf(*result, options.now), report::PageNonce())));
  result->files.report = page;
  // Last: it names the others.
  result->files.result = (folder / "result.json").string();
  return WriteFileAtomically(result->files.result, ResultJson(*result) + "\n");
}

}  // namespace diapason::job_tune
