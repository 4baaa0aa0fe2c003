#include "job_tune/tuning_run.h"

#include <cmath>

#include "agree/store.h"
#include "base/settings.h"
#include "base/text.h"

namespace diapason::job_tune {

TuningRun::TuningRun(const Request& request, const Environment& environment, const Events& events)
    : request_(request),
      events_(events),
      launches_(request, environment, [this](const std::string& text) { Say(text); }),
      begun_(SteadySeconds()),
      deadline_(begun_ + request.budget) {
  const Settings settings = Settings::Read(environment);
  store_ = !request.store.empty()            ? request.store
           : settings.IsSet(Setting::kStore) ? settings.Text(Setting::kStore)
                                             : "shm";
  std::vector<std::string> words;
  for (const std::string& word : request.command) words.push_back(ShellWord(word));
  result.command = Join(words, " ");
}

double TuningRun::Left() const { return deadline_ - SteadySeconds(); }

std::string TuningRun::BudgetText(double more) const {
  const double minutes = std::ceil((SteadySeconds() - begun_ + more) / 60);
  return Format("a --budget of {}m or more", static_cast<int64_t>(minutes));
}

void TuningRun::Say(const std::string& text) const {
  if (events_.say) events_.say(text);
}

void TuningRun::Progress(const std::string& what) const {
  if (events_.progress) events_.progress((SteadySeconds() - begun_) / request_.budget, what);
}

Result<Launch> TuningRun::Start(const LaunchPlan& plan) {
  ASSIGN_OR_RETURN(Launch launch, launches_.Run(plan));
  if (launch.interrupted) result.interrupted = true;
  if (!launch.begun) return launch;
  LaunchSummary summary;
  summary.number = launch.number;
  summary.purpose = launch.purpose;
  summary.seconds = launch.seconds;
  summary.status = launch.ended.status;
  summary.ended_by_us = launch.ended.limited;
  summary.log = launch.log;
  result.launches.push_back(summary);
  agree::RemoveJob(store_, launch.prepared.Variable("DIAPASON_JOB"));
  return launch;
}

}  // namespace diapason::job_tune
