#include "knobs/check.h"

#include "base/text.h"
#include "domain/library_version.h"
#include "knobs/context.h"
#include "knobs/values.h"

namespace diapason::knobs {

std::string AssignmentText(const Assignment& assignment) {
  std::string value = assignment.value;
  if (value.size() > 100) value = value.substr(0, 97) + "...";
  return assignment.name + "=" + value + " (" + assignment.source + ")";
}

CheckContext::CheckContext(const std::vector<Assignment>& assignments,
                           const CheckedFor& checked_for, const Catalogue& catalogue)
    : checked_for_(checked_for), catalogue_(catalogue) {
  for (const Assignment& assignment : assignments) {
    if (!assignment.overridden) live_.emplace(assignment.name, &assignment);
  }
}

std::string CheckContext::Title() const { return std::string(LibraryTitle(checked_for_.library)); }

std::string CheckContext::TitleVersion() const {
  return checked_for_.version == 0 ? Title()
                                   : Title() + " " + LibraryVersionText(checked_for_.version);
}

std::string CheckContext::Value(const std::string& name) const {
  const auto found = live_.find(name);
  return found == live_.end() ? "" : found->second->value;
}

std::optional<int64_t> CheckContext::Number(const std::string& name) const {
  const auto found = live_.find(name);
  if (found == live_.end()) return std::nullopt;
  const NumberReading reading = ReadNumber(found->second->value);
  if (!reading.digits || reading.overflow) return std::nullopt;
  return reading.value;
}

bool CheckContext::Is(const std::string& name, const std::string& value) const {
  return IsSet(name) && ToLower(Trim(Value(name))) == ToLower(value);
}
bool CheckContext::On(const std::string& name) const { return Number(name).value_or(0) != 0; }
bool CheckContext::Off(const std::string& name) const { return Number(name).value_or(1) == 0; }

bool CheckContext::Reads(const std::string& name) const {
  const Knob* knob = catalogue_.Find(name);
  if (knob == nullptr || !knob->Of(checked_for_.library).Ever()) return false;
  return checked_for_.version == 0 || knob->Of(checked_for_.library).Reads(checked_for_.version);
}

void CheckContext::Add(std::string id, Severity severity, std::string title,
                       const std::vector<std::string>& names, std::string action) {
  std::vector<std::string> evidence;
  for (const std::string& name : names) {
    const auto found = live_.find(name);
    if (found != live_.end()) evidence.push_back(AssignmentText(*found->second));
  }
  AddFinding({std::move(id), severity, std::move(title), std::move(evidence), std::move(action)},
             names);
}

void CheckContext::AddFinding(Finding finding, const std::vector<std::string>& names) {
  for (const std::string& one : names) {
    spoken_of_.insert(one);
    for (const std::string& other : names) together_.insert({one, other});
  }
  findings_.push_back(std::move(finding));
}

bool CheckContext::Together(const std::string& one, const std::string& other) const {
  return together_.count({one, other}) > 0;
}

std::vector<Finding> CheckContext::Take() {
  for (const auto& [name, assignment] : live_) {
    if (spoken_of_.count(name) > 0) continue;
    const Knob* knob = catalogue_.Find(name);
    std::string who = OtherReader(name);
    std::string title = name + " is read by " + who;
    if (knob != nullptr && knob->exists) {
      const std::string text = knob->Of(checked_for_.library).DefaultAt(checked_for_.version);
      title = name + " is read" + (knob->OnlyOfPlugin() ? " by " + knob->reader : "") +
              (text.empty() ? "" : " (default " + text + ")");
    } else if (who.empty()) {
      title = name + " is not a variable of " + Title();
    }
    findings_.push_back({"env.fine", Severity::kFine, title, {AssignmentText(*assignment)}, ""});
  }
  SortBySeverity(&findings_);
  return std::move(findings_);
}

std::vector<Finding> CheckAssignments(const std::vector<Assignment>& assignments,
                                      const CheckedFor& checked_for, const Catalogue& catalogue) {
  CheckContext context(assignments, checked_for, catalogue);
  CheckNames(assignments, &context);
  CheckTogether(&context);
  CheckTuner(&context);
  CheckOwnSettings(&context);
  CheckCosts(assignments, &context);
  return context.Take();
}

}  // namespace diapason::knobs
