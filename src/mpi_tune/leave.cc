#include "mpi_tune/leave.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/version.h"
#include "job/mpi_program.h"
#include "job_tune/leave.h"
#include "policy/openmpi_rules.h"
#include "report/job_page.h"

namespace diapason::mpi_tune {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostPolicyBytes = 1 << 20;

std::string ConfigOf(const Context& context, const Config& config) {
  return ConfigText(Library::kOpenMpi, context.collective, config);
}

ordered_json GainJson(const PairGain& gain) {
  if (gain.gain <= 0) return {};
  return {{"gain", gain.gain}, {"low", gain.low}, {"high", gain.high}, {"pairs", gain.pairs}};
}

ordered_json ContextJson(const TunedContext& one) {
  ordered_json alone = ordered_json::array();
  for (const AloneFinding::Tried& tried : one.alone.ranked) {
    alone.push_back({{"config", ConfigOf(one.context, tried.config)}, {"gain", tried.gain}});
  }
  ordered_json inside = ordered_json::array();
  for (const InProgram& tried : one.tried) {
    inside.push_back({{"config", ConfigOf(one.context, tried.config)},
                      {"call_us", tried.seconds * 1e6},
                      {"ratio", tried.ratio},
                      {"launches", tried.launches}});
  }
  return {{"collective", CollectiveName(one.context.collective)},
          {"least_bytes", one.context.least_bytes},
          {"most_bytes", one.context.most_bytes},
          {"ranks", one.context.ranks},
          {"calls", one.context.calls},
          {"share", one.context.share},
          {"failed_alone", one.alone.failed},
          {"alone", std::move(alone)},
          {"in_program", std::move(inside)},
          {"chosen", ConfigOf(one.context, one.chosen)}};
}

report::JobPageContext PageContext(const TunedContext& one, bool kept) {
  report::JobPageContext context;
  context.label = one.context.Text();
  context.facts = Format("{} calls of all ranks, {:.0f} % of the program's time", one.context.calls,
                         100 * one.context.share);
  context.kept = kept && !one.chosen.IsDefault();
  context.outcome = one.chosen.IsDefault() ? "left to the library"
                                           : "chosen: " + ConfigOf(one.context, one.chosen);
  for (const InProgram& tried : one.tried) {
    report::JobTried line;
    line.config = ConfigOf(one.context, tried.config);
    line.gain.gain = 1 / tried.ratio;
    line.blocks = static_cast<size_t>(tried.launches);
    line.chosen = tried.config == one.chosen;
    context.tried.push_back(std::move(line));
  }
  return context;
}

report::JobPage PageOf(const LeaveOptions& options, const MpiTuneResult& result) {
  report::JobPage page;
  page.title = "diapason tune -- " + Printable(result.command);
  page.version = kVersion;
  page.made = options.now;
  page.verdict = VerdictName(result.verdict);
  page.headline = result.Headline();
  page.method =
      "Times are those inside the calls of MPI, on the host's clock; a blocking call is waited "
      "for.";
  const PairGain& deciding = result.compared.Deciding();
  page.gain = {deciding.gain, deciding.low, deciding.high};
  page.gain_launches = deciding.pairs;
  for (size_t i = 0; i < result.compared.tuned.size() && i < result.compared.defaults.size(); ++i) {
    report::JobVerified pair;
    const bool iterations = result.compared.iteration.gain > 0;
    const auto time = iterations ? &LaunchTimes::iteration : &LaunchTimes::program;
    pair.launch = static_cast<int>(i) + 1;
    pair.default_seconds = result.compared.defaults[i].*time;
    pair.tuned_seconds = result.compared.tuned[i].*time;
    if (pair.tuned_seconds > 0) pair.gain.gain = pair.default_seconds / pair.tuned_seconds;
    page.verified.push_back(pair);
  }
  for (const TunedContext& one : result.contexts) {
    page.contexts.push_back(PageContext(one, result.verdict == Verdict::kFaster));
  }
  for (const LaunchLine& one : result.launches) {
    page.launches.push_back({one.number, one.purpose, one.seconds, "", false,
                             std::filesystem::path(one.log).filename().string()});
  }
  page.use = UseText(result);
  page.facts = {{"program", Printable(result.profile.program)},
                {"library", Printable(result.profile.library)},
                {"iterations", result.profile.Headline()},
                {"share", result.profile.ShareText()},
                {"rules", result.profile.RulesText()}};
  page.notes = result.notes;
  for (const std::string& note : result.profile.notes) page.notes.push_back(note);
  return page;
}

}  // namespace

std::string UseText(const MpiTuneResult& result) {
  if (result.rules.empty()) return "";
  const std::string file = ShellWord(result.rules);
  return "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename " +
         file + " ...\n# under srun:\nexport " + job::kUseRulesVariable + "=1 " +
         job::kRulesFileVariable + "=" + file + "\n";
}

std::string ResultJson(const MpiTuneResult& result) {
  ordered_json contexts = ordered_json::array();
  for (const TunedContext& one : result.contexts) contexts.push_back(ContextJson(one));
  ordered_json launches = ordered_json::array();
  for (const LaunchLine& one : result.launches) {
    launches.push_back({{"number", one.number},
                        {"purpose", one.purpose},
                        {"seconds", one.seconds},
                        {"iteration_us", one.times.iteration * 1e6},
                        {"program_seconds", one.times.program},
                        {"log", Printable(one.log)}});
  }
  const ordered_json whole = {{"command", Printable(result.command)},
                              {"library", "openmpi"},
                              {"verdict", VerdictName(result.verdict)},
                              {"headline", result.Headline()},
                              {"interrupted", result.interrupted},
                              {"iteration", GainJson(result.compared.iteration)},
                              {"program", GainJson(result.compared.program)},
                              {"collective_share", result.profile.CollectiveShare()},
                              {"changeable_share", result.profile.ChangeableShare()},
                              {"contexts", std::move(contexts)},
                              {"launches", std::move(launches)},
                              {"metric", result.metric.Text()},
                              {"rules", Printable(result.rules)},
                              {"notes", result.notes}};
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

namespace {

// Writes a file; one that was there with other contents is kept as `old`.
Status Replace(const std::filesystem::path& path, const std::filesystem::path& old,
               const std::string& text) {
  const Result<std::string> before = ReadFile(path.string(), kMostPolicyBytes);
  if (before.ok() && before.value() != text) {
    RETURN_IF_ERROR(WriteFileAtomically(old.string(), before.value()));
  }
  return WriteFileAtomically(path.string(), text);
}

Status LeavePolicy(const std::filesystem::path& folder, const std::string& fingerprint,
                   MpiTuneResult* result) {
  if (result->policy.rules.empty()) {
    if (FileExists((folder / "policy.conf").string())) {
      result->notes.emplace_back(
          "policy.conf and rules.conf of an earlier run stay as they were: nothing was confirmed "
          "now");
    }
    return {};
  }
  result->policy.library = Library::kOpenMpi;
  result->policy.header.origin = "diapason tune, launches of an MPI program";
  result->policy.header.fingerprint = fingerprint;
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(const std::string rules, policy::OpenMpiRulesText(result->policy, &notes));
  RETURN_IF_ERROR(Replace(folder / "policy.conf", folder / "policy.old.conf",
                          policy::PolicyText(result->policy, result->remarks)));
  RETURN_IF_ERROR(Replace(folder / "rules.conf", folder / "rules.old.conf", rules));
  result->rules = (folder / "rules.conf").string();
  for (std::string& note : notes) result->notes.push_back(std::move(note));
  return {};
}

}  // namespace

Status Leave(const LeaveOptions& options, MpiTuneResult* result) {
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::absolute(options.folder, error).lexically_normal();
  result->folder = folder.string();
  RETURN_IF_ERROR(LeavePolicy(folder, options.fingerprint, result));
  RETURN_IF_ERROR(WriteFileAtomically((folder / "result.json").string(), ResultJson(*result)));
  return WriteFileAtomically((folder / "report.html").string(),
                             report::JobPageHtml(PageOf(options, *result), report::PageNonce()));
}

}  // namespace diapason::mpi_tune
