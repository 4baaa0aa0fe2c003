#include <algorithm>

#include "base/text.h"
#include "knobs/files/collector.h"
#include "knobs/files/read_file.h"

namespace diapason::knobs {
namespace {

constexpr size_t kLooked = 5000;  // lines

// Counts of lines by which texts without a telling name are recognised.
struct LineKinds {
  size_t all = 0;       // neither blank nor comment
  size_t keys = 0;      // "key:", "- key: value"
  size_t assigns = 0;   // "NAME=VALUE" without a blank in the value
  size_t bare = 0;      // of `assigns`, those of every environment: PATH, HOME
  size_t exports = 0;   // "export NAME=VALUE"
  size_t docker = 0;    // "ENV ...", "RUN ..."
  size_t python = 0;    // "import os", "os.environ[...]", "def f():"
  size_t sections = 0;  // "[section]"
  size_t spaced = 0;    // "name = value"
  bool from = false;    // the first line is a Dockerfile's FROM or ARG
  bool batch = false;   // "#SBATCH"
  bool services = false, api = false, kind = false, jobs = false, runs_on = false;
};

bool StartsWithOneOf(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(),
                     [text](std::string_view one) { return text.starts_with(one); });
}

bool IsKeyLine(std::string_view line) {
  while (line.starts_with("- ")) line = Trim(line.substr(2));
  size_t end = 0;
  while (end < line.size() && line[end] != ':' && line[end] != ' ' && line[end] != '=' &&
         line[end] != '(' && line[end] != '$') {
    ++end;
  }
  if (end == 0 || end >= line.size() || line[end] != ':') return false;
  return end + 1 == line.size() || line[end + 1] == ' ';
}

void Look(std::string_view line, LineKinds* kinds) {
  const bool first = kinds->all++ == 0;
  if (first) kinds->from = StartsWithOneOf(line, {"FROM ", "ARG "});
  if (IsKeyLine(line)) ++kinds->keys;
  if (line.starts_with("- ") && line.find(": ") == std::string_view::npos) ++kinds->keys;
  if (line.starts_with("export ")) ++kinds->exports;
  if (StartsWithOneOf(line, {"FROM ", "ENV ", "RUN ", "COPY ", "WORKDIR ", "ENTRYPOINT "})) {
    ++kinds->docker;
  }
  if ((line.starts_with("import ") && line.find('=') == std::string_view::npos) ||
      (line.starts_with("from ") && line.find(" import ") != std::string_view::npos) ||
      line.find("os.environ") != std::string_view::npos ||
      (line.starts_with("def ") && line.ends_with(':'))) {
    ++kinds->python;
  }
  if (line.starts_with('[') && line.ends_with(']') && line.find(' ') == std::string_view::npos) {
    ++kinds->sections;
  }
  const size_t equals = line.find('=');
  if (equals != std::string_view::npos) {
    if (IsIdentifier(line.substr(0, equals))) {
      if (StartsWithOneOf(line, {"PATH=", "HOME=", "PWD=", "USER=", "SHLVL=", "LANG="})) {
        ++kinds->bare;
      }
      std::string_view value = Trim(line.substr(equals + 1));
      value = value.substr(0, value.find(" #"));
      const bool quoted = value.size() > 1 && (value[0] == '"' || value[0] == '\'') &&
                          value.find(value[0], 1) == value.size() - 1;
      if (quoted || value.find_first_of(" `$(") == std::string_view::npos) ++kinds->assigns;
    } else if (equals > 1 && line[equals - 1] == ' ' &&
               IsIdentifier(Trim(line.substr(0, equals)))) {
      ++kinds->spaced;
    }
  }
  kinds->services = kinds->services || line == "services:";
  kinds->api = kinds->api || line.starts_with("apiVersion:");
  kinds->kind = kinds->kind || line.starts_with("kind:");
  kinds->jobs = kinds->jobs || line == "jobs:";
  kinds->runs_on = kinds->runs_on || line.starts_with("runs-on:");
}

LineKinds LookAt(std::string_view text) {
  LineKinds kinds;
  size_t seen = 0;
  for (const std::string_view raw : Split(text, '\n')) {
    if (++seen > kLooked) break;
    const std::string_view line = Trim(raw);
    if (raw.starts_with("#SBATCH") || raw.starts_with("#PBS") || raw.starts_with("#BSUB")) {
      kinds.batch = true;
    }
    if (line.empty() || line[0] == '#') continue;
    Look(line, &kinds);
  }
  return kinds;
}

FileForm YamlForm(const LineKinds& kinds) {
  if (kinds.api && kinds.kind) return FileForm::kKubernetes;
  if (kinds.jobs && kinds.runs_on) return FileForm::kActions;
  if (kinds.services) return FileForm::kCompose;
  return FileForm::kYaml;
}

bool EndsWithOneOf(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(),
                     [text](std::string_view one) { return text.ends_with(one); });
}

bool LooksLikeJson(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  if (trimmed.size() < 2) return false;
  const bool object = trimmed.front() == '{' && trimmed.back() == '}';
  const bool list = trimmed.front() == '[' && trimmed.back() == ']';
  return (object || list) && trimmed.find('"') != std::string_view::npos &&
         !trimmed.starts_with("{{") && !trimmed.starts_with("[[");
}

}  // namespace

std::string_view FormText(FileForm form) {
  switch (form) {
    case FileForm::kShell:
      return "a shell script";
    case FileForm::kBatch:
      return "a batch script";
    case FileForm::kDockerfile:
      return "a Dockerfile";
    case FileForm::kCompose:
      return "a compose file";
    case FileForm::kKubernetes:
      return "a Kubernetes file";
    case FileForm::kActions:
      return "a GitHub workflow";
    case FileForm::kYaml:
      return "a YAML file";
    case FileForm::kJson:
      return "a JSON file";
    case FileForm::kPython:
      return "a Python program";
    case FileForm::kProgram:
      return "a program";
    case FileForm::kSettings:
      return "a file of settings";
    case FileForm::kList:
      return "a list of variables";
    case FileForm::kEnvironFile:
      return "the environment of a process";
    case FileForm::kConfig:
      return "a configuration file of the library";
  }
  return "a file";
}

FileForm RecogniseForm(std::string_view text, std::string_view name) {
  if (text.find('\0') != std::string_view::npos) return FileForm::kEnvironFile;
  const std::string base = ToLower(name.substr(name.rfind('/') + 1));
  if (EndsWithOneOf(base, {"nccl.conf", "rccl.conf"})) return FileForm::kConfig;
  const std::string_view first = text.substr(0, text.find('\n'));
  const LineKinds kinds = LookAt(text);
  if (base.starts_with("dockerfile") || base.starts_with("containerfile") ||
      base.ends_with(".dockerfile")) {
    return FileForm::kDockerfile;
  }
  if (EndsWithOneOf(base, {".py", ".ipynb"})) {
    return base.ends_with(".py") ? FileForm::kPython : FileForm::kJson;
  }
  if (EndsWithOneOf(base, {".yaml", ".yml", ".yaml.j2", ".yml.j2", ".yaml.tpl"})) {
    return YamlForm(kinds);
  }
  if (EndsWithOneOf(base, {".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".go", ".rs", ".js", ".ts"})) {
    return FileForm::kProgram;
  }
  if (first.starts_with("#!")) {
    if (first.find("python") != std::string_view::npos) return FileForm::kPython;
    if (first.find("sh") != std::string_view::npos) {
      return kinds.batch ? FileForm::kBatch : FileForm::kShell;
    }
  }
  if (kinds.batch) return FileForm::kBatch;
  if (EndsWithOneOf(base, {".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".pbs", ".csh", ".lsf"})) {
    return FileForm::kShell;
  }
  if (base.ends_with(".json") || LooksLikeJson(text)) return FileForm::kJson;
  if (EndsWithOneOf(base, {".toml", ".ini", ".cfg", ".service", ".conf"}) ||
      (kinds.sections > 0 && kinds.spaced + kinds.assigns > 0 && kinds.exports == 0 &&
       kinds.sections + kinds.spaced + kinds.assigns == kinds.all)) {
    return FileForm::kSettings;
  }
  if (base.ends_with(".env") || base.starts_with(".env") || base == ".deepspeed_env") {
    return FileForm::kList;
  }
  if (kinds.from && kinds.docker > 1) return FileForm::kDockerfile;
  if (kinds.python > 0 && kinds.exports == 0 && kinds.keys < kinds.all / 2 + 1 &&
      kinds.assigns == 0) {
    return FileForm::kPython;
  }
  if (kinds.all > 0 && kinds.exports == 0 && kinds.keys * 2 > kinds.all) return YamlForm(kinds);
  // Terraform and the like: a shell has no blanks around '='.
  if (kinds.spaced > 0 && kinds.exports == 0) return FileForm::kSettings;
  if (kinds.all > 0 && (kinds.bare > 1 || kinds.assigns == kinds.all)) return FileForm::kList;
  return FileForm::kShell;
}

}  // namespace diapason::knobs
