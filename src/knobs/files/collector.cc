#include "knobs/files/collector.h"

#include <algorithm>

#include "base/secrets.h"
#include "base/text.h"

namespace diapason::knobs {
namespace {

// More than a person writes; such a file is something else.
constexpr size_t kMostAssignments = 10000;
constexpr size_t kMostComplaints = 20;
constexpr size_t kLongestValue = 65536;
constexpr size_t kLongestName = 128;
constexpr size_t kLongestScope = 400;

constexpr const char* kFamilies[] = {"NCCL_", "RCCL_", "MSCCL",  "TORCH_", "CUDA_",     "HSA_",
                                     "HIP_",  "UCX_",  "FI_",    "OMPI_",  "MPICH_",    "GLOO_",
                                     "OMP_",  "OFI_",  "SHARP_", "ROCR_",  "DIAPASON_", "PSM"};

bool IsNameChar(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool InCapitals(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// "CCL_DEBUG", "NCLL_DEBUG": one slip in the family, and the rest is a variable of NCCL.
bool IsSlipOfFamily(std::string_view name) {
  const size_t bar = name.find('_');
  if (bar == std::string_view::npos || bar < 3 || bar > 5) return false;
  if (EditDistance(name.substr(0, bar), "NCCL") != 1) return false;
  const Knob* knob = Catalogue::BuiltIn().Find("NCCL" + std::string(name.substr(bar)));
  return knob != nullptr && knob->exists;
}

}  // namespace

bool IsIdentifier(std::string_view text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         std::all_of(text.begin(), text.end(), IsNameChar);
}

bool CountsInFiles(std::string_view name) {
  if (name.size() > kLongestName || name.size() < 5 || !IsIdentifier(name) || !InCapitals(name)) {
    return false;
  }
  for (const char* family : kFamilies) {
    if (name.starts_with(family) && name != family) return true;
  }
  return IsSlipOfFamily(name);
}

bool IsTemplate(std::string_view value) {
  if (value.find("{{") != std::string_view::npos || value.find("{%") != std::string_view::npos ||
      value.find("<%") != std::string_view::npos || value.find('`') != std::string_view::npos) {
    return true;
  }
  for (size_t i = value.find('$'); i != std::string_view::npos; i = value.find('$', i + 1)) {
    const char next = i + 1 < value.size() ? value[i + 1] : ' ';
    if (next == '{' || next == '(' || next == '$' || IsNameChar(next)) return true;
  }
  for (size_t i = value.find("%("); i != std::string_view::npos; i = value.find("%(", i + 1)) {
    if (value.find(")s", i) != std::string_view::npos) return true;
  }
  // printf's and format()'s places; "%h" and "%p" are the library's own.
  for (const char* place : {"%s", "%d", "%i", "%r", "{}"}) {
    if (value.find(place) != std::string_view::npos) return true;
  }
  // "<value>", "[your interface]": a place to fill in.
  const std::string_view trimmed = Trim(value);
  return trimmed.size() > 2 && ((trimmed.front() == '<' && trimmed.back() == '>') ||
                                (trimmed.front() == '{' && trimmed.back() == '}') ||
                                (trimmed.front() == '[' && trimmed.back() == ']'));
}

bool HasAssignment(std::string_view text) {
  for (size_t equals = text.find('='); equals != std::string_view::npos;
       equals = text.find('=', equals + 1)) {
    size_t begin = equals;
    while (begin > 0 && equals - begin <= kLongestName && IsNameChar(text[begin - 1])) --begin;
    if (CountsInFiles(text.substr(begin, equals - begin))) return true;
  }
  return false;
}

std::string Collector::NewScope(const std::string& parent, bool command) {
  // Deeper blocks than any person writes share a scope.
  if (parent.size() > kLongestScope) return parent;
  return parent + (command ? "c" : "") + Format("{}/", ++scopes_);
}

bool Collector::Full() const { return assignments_.size() + passed_.size() >= kMostAssignments; }

std::string Collector::Place(size_t line) const { return source_ + Format(":{}", line); }

void Collector::Set(const std::string& name, const std::string& value, bool known, size_t line,
                    const std::string& scope) {
  if (!CountsInFiles(name) || Full() || value.size() > kLongestValue) return;
  Override(name, scope);
  Assignment one;
  one.name = name;
  one.value = MaskSecrets(name, value);
  one.source = Place(line);
  one.known = known;
  one.scope = scope;
  by_name_[name].push_back(assignments_.size());
  assignments_.push_back(std::move(one));
}

void Collector::Pass(const std::string& name, size_t line, const std::string& scope) {
  if (!CountsInFiles(name) || Full()) return;
  Assignment one;
  one.name = name;
  one.source = Place(line);
  one.known = false;
  one.scope = scope;
  passed_.push_back(std::move(one));
}

void Collector::Unset(const std::string& name, size_t line, const std::string& scope) {
  std::string value;
  Override(name, scope);
  if (!Holds(name, scope, &value) || Full()) return;
  Assignment one;
  one.name = name;
  one.source = Place(line);
  one.scope = scope;
  one.unset = true;
  by_name_[name].push_back(assignments_.size());
  assignments_.push_back(std::move(one));
}

void Collector::Override(const std::string& name, const std::string& scope) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return;
  for (const size_t i : found->second) {
    Assignment& one = assignments_[i];
    const bool inside = std::string_view(one.scope).starts_with(scope);
    // What a command had in its own environment stays true for that command.
    if (inside && one.scope.find('c', scope.size()) == std::string::npos) one.overridden = true;
  }
}

bool Collector::Holds(const std::string& name, const std::string& scope, std::string* value) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return false;
  for (auto i = found->second.rbegin(); i != found->second.rend(); ++i) {
    const Assignment& one = assignments_[*i];
    if (one.overridden || !std::string_view(scope).starts_with(one.scope)) continue;
    *value = one.value;
    return true;
  }
  return false;
}

void Collector::Complain(const std::string& id, Severity severity, size_t line,
                         const std::string& title, const std::string& action) {
  if (findings_.size() >= kMostComplaints) return;
  // Texts quote what the file has.
  findings_.push_back({id, severity, MaskSecretsIn(title), {Place(line)}, MaskSecretsIn(action)});
}

std::vector<Assignment> Collector::TakeAssignments() {
  // A name that is only handed on is reported where the file gives it no value.
  std::set<std::string> seen;
  for (const Assignment& one : passed_) {
    if (by_name_.count(one.name) > 0 || !seen.insert(one.name).second) continue;
    assignments_.push_back(one);
  }
  passed_.clear();
  return std::move(assignments_);
}

}  // namespace diapason::knobs
