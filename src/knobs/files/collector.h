#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "knobs/check.h"

namespace diapason::knobs {

// Whether a name in a file counts: in capitals, and of a family that a collective library, its
// plugins, PyTorch, CUDA, ROCm, UCX, libfabric, MPI, Gloo, OpenMP or diapason read, or a slip of
// the pen for one ("CCL_DEBUG").
bool CountsInFiles(std::string_view name);
// Letters, digits and '_', not beginning with a digit.
bool IsIdentifier(std::string_view text);
// Whether the value is known only when the file is used: "$X", "{{ x }}", "<your interface>".
bool IsTemplate(std::string_view value);
// Whether `text` has NAME=VALUE with a name that counts.
bool HasAssignment(std::string_view text);

// What readers find in one file. A scope is a text "3/c5/": the blocks around an assignment, from
// the outermost; settings of a scope hold in those that begin with it. A 'c' marks a command's own
// environment, which no later line changes. Memory is bounded: what exceeds the limits is left out.
class Collector {
 public:
  explicit Collector(std::string source) : source_(std::move(source)) {}

  std::string NewScope(const std::string& parent, bool command = false);
  // `known` false: the value is an expression. Names that do not count are ignored.
  void Set(const std::string& name, const std::string& value, bool known, size_t line,
           const std::string& scope);
  // Handed on without a value here: "export A", "-x A", valueFrom.
  void Pass(const std::string& name, size_t line, const std::string& scope);
  void Unset(const std::string& name, size_t line, const std::string& scope);
  // Whether a value holds in this scope; `value` gets it.
  bool Holds(const std::string& name, const std::string& scope, std::string* value) const;
  void Complain(const std::string& id, Severity severity, size_t line, const std::string& title,
                const std::string& action);
  bool Full() const;
  // Names that the file expands somewhere ("$NAME"): handed on in another way than by export.
  void SetExpanded(std::set<std::string> names) { expanded_ = std::move(names); }
  bool Expanded(const std::string& name) const { return expanded_.count(name) > 0; }

  std::vector<Assignment> TakeAssignments();
  std::vector<Finding> TakeFindings() { return std::move(findings_); }
  size_t count() const { return assignments_.size() + passed_.size(); }

 private:
  std::string Place(size_t line) const;
  void Override(const std::string& name, const std::string& scope);

  const std::string source_;
  std::vector<Assignment> assignments_;
  std::vector<Assignment> passed_;
  std::map<std::string, std::vector<size_t>> by_name_;
  std::vector<Finding> findings_;
  std::set<std::string> expanded_;
  size_t scopes_ = 0;
};

// The readers. Each takes a text that begins at line `line` of the file, and the scope around it.
// `depth` counts texts inside texts (a script in a string of a YAML file); the readers end at
// kDeepest.
constexpr int kDeepest = 4;
struct Nested {
  size_t line = 1;
  std::string scope;
  int depth = 0;
};
void ReadShell(std::string_view text, const Nested& at, Collector* out);
void ReadDockerfile(std::string_view text, const Nested& at, Collector* out);
void ReadYaml(std::string_view text, const Nested& at, Collector* out);
void ReadList(std::string_view text, const Nested& at, Collector* out);
// Python, JSON, C and languages alike: what is written with quoted names.
void ReadLiterals(std::string_view text, bool hash_comments, const Nested& at, Collector* out);
// A text inside another one, by its form.
void ReadAny(std::string_view text, const std::string& name, const Nested& at, Collector* out);

}  // namespace diapason::knobs
