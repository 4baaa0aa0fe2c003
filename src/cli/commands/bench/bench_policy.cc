#include <cstdio>
#include <optional>

#include "base/settings.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/bench/bench_options.h"
#include "cli/commands/bench/bench_policy_report.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "domain/collectives.h"
#include "measure/policy_check.h"
#include "policy/source.h"
#include "policy/table.h"

namespace diapason::cli {
namespace {

using measure::PolicyCheck;
using measure::RankMeasurer;
using measure::Subject;
using measure::TimingFigure;
using measure::Trial;

Result<PolicyPlan> MakePlan(const BenchOptions& options, const Subject& subject) {
  ASSIGN_OR_RETURN(std::vector<Trial> trials, PlanBench(options, subject));
  const Settings settings = Settings::Read(ProcessEnvironment());
  RETURN_IF_ERROR(measure::CheckNoPolicyIsSet(settings, subject));
  PolicyPlan plan;
  policy::ParseOptions parse;
  parse.library = subject.library;
  parse.check_rows = false;
  ASSIGN_OR_RETURN(plan.policy,
                   policy::LoadPolicy({policy::Source::Kind::kFile, options.policy, ""}, parse));
  const std::string& wanted = plan.policy.header.fingerprint;
  if (!wanted.empty() && !subject.simulated && !subject.machine.gpu.empty() &&
      wanted != subject.machine.gpu) {
    Warn(Format("the policy was made for '{}', but this machine is '{}'", wanted,
                subject.machine.gpu));
  }
  policy::DecisionTable::Options table_options;
  table_options.shape = {subject.nodes, subject.ranks};
  table_options.use_reg_buff_rows = settings.Flag(Setting::kRegBuff);
  const policy::DecisionTable table(plan.policy, table_options);
  plan.rows_here = table.row_count();
  plan.rows_skipped = table.skipped_reg_buff_rows();
  for (Trial& trial : trials) {
    DecidedCall decided{trial, 0};
    const std::optional<Collective> collective = CollectiveOf(trial.operation);
    if (collective.has_value()) {
      Question question;
      question.collective = *collective;
      question.bytes = trial.bytes;
      if (const policy::DecisionTable::Entry* entry = table.Find(question); entry != nullptr) {
        decided.trial.config = entry->config();
        decided.line = entry->line;
      }
    }
    const Trial& first = trials.front();
    plan.several_kinds = plan.several_kinds || trial.type != first.type ||
                         (Reduces(trial.operation) && trial.reduce != first.reduce);
    plan.calls.push_back(std::move(decided));
  }
  return plan;
}

}  // namespace

Result<int> CheckPolicyByRunning(const BenchOptions& options, RankMeasurer* measurer) {
  const Subject& subject = measurer->subject();
  ASSIGN_OR_RETURN(const PolicyPlan made, MakePlan(options, subject));
  const PolicyPlan& plan = made;
  const PolicyLines lines(plan, subject);
  const bool whole = report::CurrentTableStyle().format != report::TableFormat::kText;
  if (!options.json) WriteOut(lines.Head(options.policy));
  std::vector<PolicyCheck> checks;
  std::vector<dataset::Sample> samples;
  Status broken;
  for (const DecidedCall& call : plan.calls) {
    Result<PolicyCheck> check =
        measure::CheckPolicy(measurer, call.trial, options.effort, &samples);
    if (check.ok() && measurer->broken()) {
      const TimingFigure* const failure = check.value().Failure();
      broken = PeerLost(failure == nullptr ? "the ranks have ended" : failure->note);
    } else if (!check.ok()) {
      broken = check.status();
    }
    if (check.ok()) {
      if (!options.json) {
        WriteOut(lines.Row(check.value()));
        std::fflush(stdout);
      }
      checks.push_back(std::move(check).value());
    }
    if (!broken.ok()) {
      broken = broken.WithContext(measure::CollectiveText(call.trial.operation) + " of " +
                                  FormatBytes(call.trial.bytes));
      break;
    }
  }
  if (options.json) {
    WriteOut(PolicyJson(options.policy, plan, subject, checks));
  } else {
    if (whole) WriteOut(lines.Whole(checks).Text());
    WriteOut(PolicyTail(plan, subject, checks));
  }
  if (!options.store.empty()) {
    RETURN_IF_ERROR(KeepSamples(options.store, subject, samples));
  }
  if (!broken.ok()) return broken;
  return measure::Summarize(checks).wrong ? kExitFailed : kExitFine;
}

void AddPolicyOption(CommandLine* bench, BenchOptions* options) {
  Option* policy =
      bench->AddOption("--policy", options->policy,
                       "Policy file to compare with the library's own choice, alternating");
  policy->TypeName("FILE");
  for (const char* other : {"--algorithm", "--protocol", "--channels", "--targets", "--csv"}) {
    policy->Excludes(bench->FindOption(other));
  }
}

}  // namespace diapason::cli
