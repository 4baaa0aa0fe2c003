#include "knobs/check.h"

#include "base/text.h"
#include "domain/library_version.h"
#include "knobs/context.h"
#include "knobs/values.h"

namespace diapason::knobs {

std::string AssignmentText(const Assignment& assignment) {
  std::string value = assignment.value;
  if (value.size() > 100) value = value.substr(0, 97) + "...";
  if (value.empty() && !assignment.known) return assignment.name + " (" + assignment.source + ")";
  return assignment.name + "=" + value + " (" + assignment.source + ")";
}

CheckContext::CheckContext(const std::vector<Assignment>& assignments,
                           const CheckedFor& checked_for, const Catalogue& catalogue,
                           const std::set<std::string>& elsewhere)
    : checked_for_(checked_for), catalogue_(catalogue), elsewhere_(elsewhere) {
  for (const Assignment& assignment : assignments) {
    if (!assignment.overridden) live_.emplace(assignment.name, &assignment);
  }
}

std::string CheckContext::Title() const { return std::string(LibraryTitle(checked_for_.library)); }

std::string CheckContext::TitleVersion() const {
  return checked_for_.version == 0 ? Title()
                                   : Title() + " " + LibraryVersionText(checked_for_.version);
}

bool CheckContext::Unknown(const std::string& name) const {
  const auto found = live_.find(name);
  return found != live_.end() && !found->second->known;
}

std::string CheckContext::Value(const std::string& name) const {
  const auto found = live_.find(name);
  return found == live_.end() || !found->second->known ? "" : found->second->value;
}

std::optional<int64_t> CheckContext::Number(const std::string& name) const {
  const auto found = live_.find(name);
  if (found == live_.end() || !found->second->known) return std::nullopt;
  const NumberReading reading = ReadNumber(found->second->value);
  if (!reading.digits || reading.overflow) return std::nullopt;
  return reading.value;
}

bool CheckContext::Is(const std::string& name, const std::string& value) const {
  return IsSet(name) && !Unknown(name) && ToLower(Trim(Value(name))) == ToLower(value);
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

namespace {

constexpr size_t kMostScopes = 500;

// What holds in a scope: of one name the innermost, and there the last.
std::vector<Assignment> HoldingIn(const std::string& scope,
                                  const std::vector<Assignment>& assignments) {
  std::map<std::string, size_t> best;
  std::vector<Assignment> holding;
  // A command got what was set before it; what stands outside it and later is for others.
  const size_t mark = scope.find('c');
  const std::string command =
      mark == std::string::npos ? "" : scope.substr(0, scope.find('/', mark) + 1);
  bool started = false;
  for (const Assignment& one : assignments) {
    started = started || (!command.empty() && std::string_view(one.scope).starts_with(command));
    if (!std::string_view(scope).starts_with(one.scope)) continue;
    if (started && one.scope.size() < command.size()) continue;
    holding.push_back(one);
    if (one.overridden) continue;
    const auto [found, first] = best.emplace(one.name, holding.size() - 1);
    if (first) continue;
    Assignment& before = holding[found->second];
    // Without scopes (environment, the library's files) the first counts.
    const bool deeper = one.scope.size() >= before.scope.size() && !one.scope.empty();
    (deeper ? before : holding.back()).overridden = true;
    if (deeper) found->second = holding.size() - 1;
  }
  std::erase_if(holding, [](const Assignment& one) { return one.unset; });
  return holding;
}

std::vector<Finding> CheckTogetherIn(const std::vector<Assignment>& holding,
                                     const CheckedFor& checked_for, const Catalogue& catalogue,
                                     const std::set<std::string>& elsewhere) {
  CheckContext context(holding, checked_for, catalogue, elsewhere);
  CheckNames(holding, &context);
  CheckTogether(&context);
  CheckTuner(&context);
  CheckOwnSettings(&context);
  CheckCosts(holding, &context);
  return context.Take();
}

}  // namespace

std::vector<Finding> CheckAssignments(const std::vector<Assignment>& assignments,
                                      const CheckedFor& checked_for, const Catalogue& catalogue) {
  std::set<std::string> names;
  // Inner scopes and those around them: a branch may not be taken.
  std::set<std::string> all_scopes;
  for (const Assignment& one : assignments) {
    names.insert(one.name);
    all_scopes.insert(one.scope);
  }
  std::vector<Finding> findings;
  std::set<std::string> said;
  std::set<std::string> spoken_of;  // assignments with a finding
  size_t scopes = 0;
  for (const std::string& scope : all_scopes) {
    if (++scopes > kMostScopes) break;
    for (Finding& finding :
         CheckTogetherIn(HoldingIn(scope, assignments), checked_for, catalogue, names)) {
      if (!said.insert(finding.id + finding.title + Join(finding.evidence, "\n")).second) continue;
      if (finding.severity != Severity::kFine) {
        spoken_of.insert(finding.evidence.begin(), finding.evidence.end());
      }
      findings.push_back(std::move(finding));
    }
  }
  // Fine in one part of a file is not fine where another part has a finding about it.
  std::erase_if(findings, [&spoken_of](const Finding& one) {
    return one.severity == Severity::kFine && spoken_of.count(one.evidence[0]) > 0;
  });
  SortBySeverity(&findings);
  return findings;
}

}  // namespace diapason::knobs
