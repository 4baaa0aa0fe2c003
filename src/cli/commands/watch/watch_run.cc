#include <poll.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands/watch/watch.h"
#include "cli/commands/watch/watch_screen.h"
#include "cli/framework/command.h"
#include "cli/framework/findings.h"
#include "watch/baseline.h"
#include "watch/exposition.h"
#include "watch/http_server.h"

namespace diapason::cli {
namespace {

using watch::WatchView;

constexpr size_t kMostBaselineBytes = size_t{1} << 20;
constexpr size_t kMostWarnings = 64;

// Waits when there is no metrics server.
void WaitUntil(double deadline_s, const sigset_t* mask) {
  const double left = std::max(0.0, deadline_s - SteadySeconds());
  const timespec limit{static_cast<time_t>(left),
                       static_cast<long>((left - std::floor(left)) * 1e9)};
  (void)ppoll(nullptr, 0, &limit, mask);
}

class WatchSession {
 public:
  explicit WatchSession(const WatchAsked& asked)
      : asked_(asked), watcher_(RootFs(), OptionsOf(asked)), ras_(RootFs(), asked.interval_s) {}

  Result<int> Run() {
    RETURN_IF_ERROR(Prepare());
    Result<WatchView> view = watcher_.Look();
    RETURN_IF_ERROR(view);
    LookAtRas(view.value());
    Status written = Hand(view.value());
    const bool redraw = !asked_.json && WatchScreen::Redraws();
    {
      WatchScreen screen(redraw);
      const std::string problems = Problems(view.value(), redraw);
      if (redraw) screen.Show(WatchText(view.value()) + RasText(seen_) + problems);
      double next = SteadySeconds() + asked_.interval_s;
      for (uint64_t looks = 0;
           (asked_.count == 0 || looks < asked_.count) && written.ok() && view.value().alive > 0;
           ++looks) {
        Wait(next, &screen);
        if (WatchScreen::Stopped()) break;
        // After a long stop, missed samples are skipped.
        next = std::max(next + asked_.interval_s, SteadySeconds());
        view = watcher_.Look();
        if (!view.ok()) break;
        LookAtRas(view.value());
        samples_.Add(watch::MetricsOf(view.value()));
        written = Hand(view.value());
        Print(view.value(), redraw, &screen);
      }
    }
    RETURN_IF_ERROR(view);
    RETURN_IF_ERROR(written);
    return Finish(view.value());
  }

 private:
  static watch::Watcher::Options OptionsOf(const WatchAsked& asked) {
    watch::Watcher::Options options;
    options.pids.assign(asked.pids.begin(), asked.pids.end());
    options.children = asked.children;
    options.journals = asked.journals;
    return options;
  }

  void LookAtRas(const WatchView& view) {
    std::vector<pid_t> pids;
    for (const watch::ProcessView& process : view.processes) pids.push_back(process.now.pid);
    seen_ = ras_.Look(pids);
    if (!asked_.job) return;
    pids.clear();
    for (const watch::LocalRank& local : seen_.processes) pids.push_back(local.process.pid);
    watcher_.Include(pids);
  }

  Status Prepare() {
    if (!asked_.baseline.empty()) {
      ASSIGN_OR_RETURN(const std::string text, ReadFile(asked_.baseline, kMostBaselineBytes));
      ASSIGN_OR_RETURN(watch::Baseline read, watch::ParseBaseline(text, asked_.baseline));
      baseline_ = std::move(read);
    }
    if (!asked_.prometheus.empty() && watch::MetricsServer::IsPlace(asked_.prometheus)) {
      auto server = watch::MetricsServer::Listen(asked_.prometheus);
      if (!server.ok()) return server.status();
      server_ = std::move(server).value();
      if (!asked_.quiet) Progress("metrics at " + server_->url());
    }
    return {};
  }

  // Serves the metrics collectors.
  Status Hand(const WatchView& view) {
    if (asked_.prometheus.empty()) return {};
    exposition_ = watch::ExpositionOf(view);
    if (server_ != nullptr) return {};
    return WriteFileAtomically(asked_.prometheus, exposition_);
  }

  void Wait(double until, WatchScreen* screen) {
    const double step = std::clamp(asked_.interval_s / 10, 0.02, 0.25);
    while (!WatchScreen::Stopped()) {
      const double now = SteadySeconds();
      if (now >= until) return;
      const double stop = std::min(until, now + step);
      if (server_ != nullptr) {
        server_->ServeUntil(stop, exposition_, screen->waiting_mask());
      } else {
        WaitUntil(stop, screen->waiting_mask());
      }
      screen->Refresh();
      if (stop < until) watcher_.Peek();
      ras_.Peek();
    }
  }

  // The metrics that are worse than the baseline so far.
  std::vector<Finding> Judged() const {
    if (asked_.baseline.empty()) return {};
    return watch::CompareWithBaseline(baseline_, watch::Summarize(samples_));
  }

  // Journals that cannot be read. On a screen that is redrawn they are listed below the rest;
  // otherwise each is reported once as a warning, outside the result.
  std::string Problems(const WatchView& view, bool redraw) {
    std::string text;
    for (const watch::ProcessView& process : view.processes) {
      if (process.journal == nullptr || process.journal_read) continue;
      const std::string problem =
          Format("journal of process {}: {}", static_cast<int>(process.now.pid),
                 process.journal->problem());
      if (redraw) {
        text += problem + "\n";
      } else if (warned_.size() < kMostWarnings && warned_.insert(problem).second) {
        Warn(problem);
      }
    }
    return text;
  }

  void Print(const WatchView& view, bool redraw, WatchScreen* screen) {
    const std::string problems = Problems(view, redraw);
    std::vector<Finding> worse = Judged();
    std::erase_if(worse, [](const Finding& f) { return f.severity < Severity::kWarning; });
    if (asked_.json) {
      PrintOut("{}\n", WatchJson(view, seen_, worse));
      std::fflush(stdout);
      return;
    }
    // No colours on a screen that is redrawn: lines are cut, possibly inside an escape sequence.
    std::string text = WatchText(view) + RasText(seen_) + problems;
    for (const Finding& finding : worse) {
      text += std::string(SeverityName(finding.severity)) + ": " + finding.title + "\n";
    }
    screen->Show(text + "\n");
  }

  Result<int> Finish(const WatchView& view) const {
    std::vector<pid_t> ended;
    for (const watch::ProcessView& process : view.processes) {
      if (process.ended) ended.push_back(process.now.pid);
    }
    std::vector<Finding> findings = Judged();
    const bool compared = !findings.empty();
    if (watch::IsBlame(seen_.verdict.kind)) findings.push_back(watch::RasFinding(seen_.verdict));
    if (asked_.json) {
      PrintOut("{}\n", WatchEndJson(ended, seen_, findings));
    } else {
      for (const pid_t pid : ended) {
        PrintOut("process {} has ended\n", static_cast<int>(pid));
      }
      if (compared) {
        PrintOut("compared with {}: {}\n", asked_.baseline, FindingsSummary(findings));
      }
      if (!findings.empty()) PrintOut("{}", FindingsText(findings, true));
    }
    if (!asked_.save_baseline.empty()) {
      RETURN_IF_ERROR(Save());
    }
    return ExitStatusOf(findings);
  }

  Status Save() const {
    const watch::Baseline baseline = watch::Summarize(samples_);
    const auto enough = std::any_of(baseline.begin(), baseline.end(), [](const auto& metric) {
      return metric.second.samples >= watch::kLeastSamples;
    });
    if (!enough) {
      return Invalid(
          Format("no baseline was written: it needs at least {} samples; watch longer or with a "
                 "shorter --interval",
                 watch::kLeastSamples));
    }
    return WriteFileAtomically(asked_.save_baseline,
                               watch::BaselineJson(baseline, asked_.interval_s));
  }

  const WatchAsked& asked_;
  watch::Watcher watcher_;
  watch::Baseline baseline_;
  watch::MetricSamples samples_;
  std::unique_ptr<watch::MetricsServer> server_;
  std::string exposition_;
  std::set<std::string> warned_;
  watch::RasWatch ras_;
  watch::RasView seen_;
};

}  // namespace

Result<int> RunWatch(const WatchAsked& asked) {
  if (!asked.job) return WatchSession(asked).Run();
  WatchAsked job = asked;
  ASSIGN_OR_RETURN(job.pids, ProcessesOfJob(asked.pids));
  return WatchSession(job).Run();
}

Result<int> RunProfile(const WatchAsked& asked) {
  const RootFs tree;
  for (const int pid : asked.pids) {
    RETURN_IF_ERROR(host::SampleProcess(tree, pid));
  }
  for (const int pid : asked.pids) {
    ASSIGN_OR_RETURN(const watch::Profile profile,
                     watch::ProfileProcess(tree, ProcessEnvironment(), pid, asked.profile_s));
    PrintOut("{}{}", (asked.json ? ProfileJson(pid, profile) : ProfileText(pid, profile)),
             asked.json ? "\n" : "");
  }
  return kExitFine;
}

}  // namespace diapason::cli
