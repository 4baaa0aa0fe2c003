#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "knobs/check.h"

namespace diapason::knobs {

// The forms of files that set variables.
enum class FileForm : uint8_t {
  kShell,
  kBatch,
  kDockerfile,
  kCompose,
  kKubernetes,
  kActions,
  kYaml,
  kJson,
  kPython,
  kProgram,
  kSettings,
  kList,
  kEnvironFile,
  kConfig,
};
std::string_view FormText(FileForm form);  // "a shell script", "a Dockerfile"

// By its content and its name ("" where it has none, as of standard input).
FileForm RecogniseForm(std::string_view text, std::string_view name);

struct FileReading {
  FileForm form = FileForm::kShell;
  std::vector<Assignment> assignments;
  std::vector<Finding> findings;  // lines that set nothing, names that could not be read
  // The library that the file is for, and what in the file says so. `either`: it is for both.
  Library library = Library::kNccl;
  bool either = false;
  std::string why;
};

// Reads the variables that a file sets, whatever its form: scripts of shells and batch systems,
// Dockerfiles, compose and Kubernetes files, workflows, other YAML and JSON, Python, lists of
// variables. Comments are left out. Values that are expressions are unknown. Pure; time and memory
// are bounded by the size of the text.
FileReading ReadVariables(const std::string& text, const std::string& source,
                          const CheckedFor& checked_for);

}  // namespace diapason::knobs
