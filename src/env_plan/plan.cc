#include "env_plan/plan.h"

#include "base/text.h"
#include "domain/library_version.h"

namespace diapason::env_plan {
namespace {

constexpr std::string_view kGoals[] = {"latency", "throughput", "cpu", "balanced", "debug"};

std::string LibraryText(const PlanRequest& request) {
  return std::string(LibraryTitle(request.library)) + " " + LibraryVersionText(request.version);
}

// In which versions a variable is read: "removed after 2.30.4", "since 2.26.2".
std::string WhereRead(const knobs::KnobReading& reading, int version) {
  for (const knobs::VersionSpan& span : reading.spans) {
    if (span.first > version) return "it is read since " + LibraryVersionText(span.first);
  }
  if (!reading.spans.empty() && reading.spans.back().last != 0) {
    return "it was last read by " + LibraryVersionText(reading.spans.back().last);
  }
  return "no version of it does";
}

}  // namespace

std::string_view GoalName(PlanGoal goal) { return kGoals[static_cast<size_t>(goal)]; }

Result<PlanGoal> ParseGoal(std::string_view text) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::size(kGoals); ++i) {
    if (FoldName(text) == FoldName(kGoals[i])) return static_cast<PlanGoal>(i);
    names.emplace_back(kGoals[i]);
  }
  return Invalid(Format("unknown goal '{:.60}'", std::string(text)) + Suggestion(text, names));
}

bool PlanBuilder::Reads(const std::string& name) const {
  const knobs::Knob* knob = catalogue_.Find(name);
  return knob != nullptr && knob->Of(plan_->request.library).Reads(plan_->request.version);
}

std::string PlanBuilder::DefaultOf(const std::string& name) const {
  const knobs::Knob* knob = catalogue_.Find(name);
  return knob == nullptr ? "" : knob->Of(plan_->request.library).DefaultAt(plan_->request.version);
}

void PlanBuilder::Set(const std::string& name, const std::string& value, const std::string& reason,
                      const std::string& trade) {
  const knobs::Knob* knob = catalogue_.Find(name);
  const PlanRequest& request = plan_->request;
  if (knob == nullptr || !knob->Of(request.library).Reads(request.version)) {
    const std::string where =
        knob == nullptr ? "it is not known" : WhereRead(knob->Of(request.library), request.version);
    LeaveOut(name, value, LibraryText(request) + " does not read it: " + where);
    return;
  }
  if (knob->Of(request.library).DefaultAt(request.version) == value) {
    LeaveOut(name, value, reason + "; it is the default", true);
    return;
  }
  for (PlannedSetting& setting : plan_->settings) {
    if (setting.name == name) {
      setting = {name, value, reason, trade};
      return;
    }
  }
  plan_->settings.push_back({name, value, reason, trade});
}

void PlanBuilder::LeaveOut(const std::string& name, const std::string& value,
                           const std::string& why, bool is_default) {
  plan_->left_out.push_back({name, value, why, is_default});
}

void PlanBuilder::Note(const std::string& topic, const std::string& text) {
  plan_->notes.push_back({topic, text});
}

EnvPlan MakePlan(const PlanRequest& request, const host::Machine& machine, const CoreOf& cores,
                 const knobs::Catalogue& catalogue) {
  EnvPlan plan;
  plan.request = request;
  if (plan.request.version == 0) {
    plan.request.version = knobs::Catalogue::NewestComplete(request.library);
    plan.notes.push_back({"library", "its version is not known: this is for " +
                                         LibraryText(plan.request) +
                                         ", the newest known; name yours with --library-version"});
  }
  plan.gpus = static_cast<int>(machine.gpus.size());
  if (plan.request.ranks <= 0) plan.request.ranks = plan.gpus > 0 ? plan.gpus : 1;
  PlanBuilder builder(&plan, machine, catalogue);
  PlanForGoal(&builder);
  PlanForNetwork(&builder);
  PlanForGpus(&builder);
  PlanForHost(&builder);
  plan.places = PlaceRanks(machine, cores, plan.request.ranks, &plan.place_notes);
  return plan;
}

}  // namespace diapason::env_plan
