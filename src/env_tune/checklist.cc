#include <algorithm>
#include <cmath>

#include "base/environment.h"
#include "base/root_fs.h"
#include "base/stats.h"
#include "base/text.h"
#include "env_tune/report.h"
#include "knobs/catalogue.h"

namespace diapason::env_tune {
namespace {

using Answer = ChecklistLine::Answer;

ChecklistLine Baseline(const TuneRequest& request, const TuneResult& result) {
  const std::vector<RunFigure>& runs = result.experiment.baseline();
  const bool done = static_cast<int>(runs.size()) >= result.experiment.options().baseline_runs;
  std::vector<double> values;
  for (const RunFigure& run : runs) values.push_back(run.value);
  return {"measured baseline performance", done ? Answer::kDone : Answer::kNotDone,
          done ? "median " + ValueText(request, Median(values)) + Format(" of {} runs", runs.size())
               : "the default's runs did not all succeed"};
}

ChecklistLine Bottleneck(const TuneResult& result) {
  const bool known = result.binding.binds != Binds::kUnknown;
  return {"identified primary bottleneck", known ? Answer::kDone : Answer::kNotDone,
          BindingText(result.binding)};
}

ChecklistLine Tuned(const std::string& name, const TuneRequest& request, const TuneResult& result) {
  ChecklistLine line{"tuned " + name, Answer::kNotApplicable, ""};
  std::vector<std::string> tried;
  bool some = false;
  bool listed = false;
  const Experiment& experiment = result.experiment;
  for (size_t i = 0; i < experiment.candidates().size(); ++i) {
    if (experiment.candidates()[i].name != name) continue;
    listed = true;
    const KnobComparison& comparison = experiment.comparisons()[i];
    some = some || comparison.verdict != KnobVerdict::kNotTried;
    tried.push_back(experiment.candidates()[i].value + " " +
                    std::string(VerdictName(comparison.verdict)));
  }
  if (some) {
    line.answer = Answer::kDone;
    line.evidence = Join(tried, ", ");
  } else if (listed) {
    line.answer = Answer::kNotDone;
    line.evidence = "the budget ended before it";
  } else if (!request.library) {
    line.evidence = "no NCCL or RCCL was found or named";
  } else {
    const knobs::Knob* knob = knobs::Catalogue::BuiltIn().Find(name);
    const bool read = knob != nullptr && knob->Of(*request.library).Reads(request.version);
    line.answer = read ? Answer::kNotDone : Answer::kNotApplicable;
    line.evidence =
        read ? "it was not in the list of what to try" : "this version does not read it";
  }
  return line;
}

ChecklistLine Gdr(const host::Machine& machine) {
  ChecklistLine line{"verified GDR configuration", Answer::kNotApplicable, ""};
  if (machine.gpus.empty()) {
    line.evidence = "this machine has no GPU";
    return line;
  }
  const bool active = std::any_of(machine.rdma.begin(), machine.rdma.end(), [](const auto& port) {
    return port.state.find("ACTIVE") != std::string::npos;
  });
  if (!active) {
    line.evidence = "this machine has no active RDMA port";
    return line;
  }
  const RootFs tree;
  for (const char* path : {"/sys/module/nvidia_peermem", "/sys/kernel/mm/memory_peers/amdkfd"}) {
    if (!tree.Exists(path)) continue;
    line.answer = Answer::kDone;
    line.evidence = std::string(path) + " is there";
    return line;
  }
  line.answer = Answer::kNotDone;
  line.evidence =
      "no peer memory module is loaded; DMA-BUF may do without: run once with NCCL_DEBUG=INFO "
      "and look for 'GPU Direct RDMA Enabled'";
  return line;
}

ChecklistLine Affinity(const TuneRequest& request, const host::Machine& machine) {
  ChecklistLine line{"checked CPU affinity", Answer::kDone, ""};
  const std::string allowed = Format("{} of {} CPUs may be used", machine.allowed_cpus.size(),
                                     std::max(machine.threads, 0));
  for (const std::string& word : request.command) {
    if (word == "numactl" || word == "taskset" || word.find("bind") != std::string::npos) {
      line.evidence = "the command places its processes ('" + word + "'); " + allowed;
      return line;
    }
  }
  if (machine.numa.size() <= 1) {
    line.evidence = allowed + ", all on one node: nothing to place";
    return line;
  }
  line.answer = Answer::kNotDone;
  line.evidence = allowed + Format(
                                " on {} nodes, and the command does not place its processes: "
                                "`diapason env plan --goal balanced` has the lines",
                                machine.numa.size());
  return line;
}

ChecklistLine Workload(const TuneRequest& request) {
  const bool own = request.measure == Measure::kWallTime || request.measure == Measure::kPattern;
  return {"tested with representative workload", own ? Answer::kDone : Answer::kNotDone,
          own ? "the command itself was run; how representative it is, you know"
              : "a benchmark stood in for it: run this once more with your own command"};
}

ChecklistLine Documented(const TuneRequest& request, const TuneResult& result) {
  const EnvVars settings = result.experiment.Final();
  ChecklistLine line{"documented final settings", Answer::kDone, ""};
  std::vector<std::string> list;
  for (const auto& [name, value] : settings) list.push_back(name + "=" + value);
  if (result.end != TuneEnd::kDone) {
    line.answer = Answer::kNotDone;
    line.evidence = ConclusionText(request, result);
  } else {
    line.evidence = list.empty() ? "nothing is to be set" : Join(list, " ") + ", in this report";
  }
  return line;
}

ChecklistLine Stability(const TuneResult& result) {
  const Validation& validation = result.experiment.validation();
  ChecklistLine line{"validated stability", Answer::kNotDone, ""};
  if (result.experiment.kept().empty()) {
    line.answer = Answer::kNotApplicable;
    line.evidence = "nothing was kept, so nothing had to be validated";
  } else if (!validation.complete) {
    line.evidence = "the validation is not complete";
  } else if (!validation.confirmed) {
    line.evidence = "the gain was not confirmed";
  } else if (!validation.stable()) {
    line.evidence = validation.drifts ? "the tuned runs drift" : "the tuned runs spread more";
  } else {
    line.answer = Answer::kDone;
    line.evidence = Format("{} fresh blocks: no drift, spread {:.2f} % against {:.2f} %",
                           validation.gains.size(), 100 * validation.spread_tuned,
                           100 * validation.spread_default);
  }
  return line;
}

ChecklistLine Monitoring() {
  const std::string journal = ProcessEnvironment().Get("DIAPASON_JOURNAL").value_or("");
  if (!journal.empty()) {
    return {"set up monitoring", Answer::kDone, "DIAPASON_JOURNAL is set: " + journal};
  }
  return {"set up monitoring", Answer::kNotDone,
          "`diapason watch PID` shows a running job, DIAPASON_JOURNAL=FILE records it"};
}

}  // namespace

std::vector<ChecklistLine> Checklist(const TuneRequest& request, const TuneResult& result,
                                     const host::Machine& machine) {
  return {Baseline(request, result),
          Bottleneck(result),
          Tuned("NCCL_PROGRESS_APPENDOP_FREQ", request, result),
          Tuned("NCCL_PROXY_APPEND_BATCH_SIZE", request, result),
          Gdr(machine),
          Affinity(request, machine),
          Workload(request),
          Documented(request, result),
          Stability(result),
          Monitoring()};
}

}  // namespace diapason::env_tune
