#include "knobs/files/read_file.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "knobs/files/collector.h"

namespace diapason::knobs {
namespace {

constexpr size_t kMostShown = 12;

bool IsNameChar(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// A name of the libraries' own families somewhere in a text.
bool IsTelling(std::string_view name) {
  for (const char* family : {"NCCL_", "RCCL_", "TORCH_NCCL_", "MSCCL_", "OFI_NCCL_", "DIAPASON_"}) {
    const std::string_view prefix = family;
    if (name.starts_with(prefix) && name.size() > prefix.size() + 1 && CountsInFiles(name)) {
      return true;
    }
  }
  return false;
}

struct Occurrence {
  std::string name;
  size_t line = 1;
};

// What the file does with names beside setting them.
struct Uses {
  std::set<std::string> own;       // the script or program itself uses the value
  std::set<std::string> expanded;  // "$NAME" anywhere
  std::vector<Occurrence> telling;
};

bool EndsWithAny(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(),
                     [text](std::string_view one) { return text.ends_with(one); });
}

// One name in a line: `before` and `after` are the rest of the line.
void Note(std::string_view name, std::string_view before, std::string_view after, bool printed,
          Uses* uses) {
  const bool dollar = EndsWithAny(before, {"$", "${", "$(", "${{ env.", "env."});
  if (dollar) {
    uses->expanded.insert(std::string(name));
    // "${A:-1}" is a default of A itself; "A=$A" hands it on; "echo $A" only shows it.
    const bool fallback = after.starts_with(":-") || after.starts_with("-") ||
                          after.starts_with(":=") || after.starts_with("=") ||
                          after.starts_with(":+") || after.starts_with("+");
    const std::string itself = std::string(name) + "=";
    const size_t start = before.rfind(itself);
    const bool handed =
        start != std::string_view::npos &&
        before.substr(start + itself.size()).find_first_not_of("\"'${(") == std::string_view::npos;
    if (!fallback && !handed && !printed) uses->own.insert(std::string(name));
    return;
  }
  // os.environ.get("A"), os.getenv("A"), os.environ["A"] without an assignment.
  if (EndsWithAny(before, {"get(\"", "get('", "getenv(\"", "getenv('"})) {
    uses->own.insert(std::string(name));
  } else if (EndsWithAny(before, {"environ[\"", "environ['"})) {
    const std::string_view rest = Trim(after.substr(std::min<size_t>(2, after.size())));
    if (!rest.starts_with('=') || rest.starts_with("==")) uses->own.insert(std::string(name));
  }
}

Uses LookForUses(const std::string& text) {
  Uses uses;
  size_t number = 0;
  for (const std::string_view line : Split(text, '\n')) {
    ++number;
    const std::string_view trimmed = Trim(line);
    if (trimmed.starts_with('#') || trimmed.starts_with("//")) continue;
    const bool printed = trimmed.starts_with("echo ") || trimmed.starts_with("printf ") ||
                         trimmed.starts_with("print(");
    for (size_t i = 0; i < line.size();) {
      if (!IsNameChar(line[i])) {
        ++i;
        continue;
      }
      const size_t begin = i;
      while (i < line.size() && IsNameChar(line[i])) ++i;
      const std::string_view name = line.substr(begin, i - begin);
      if (!CountsInFiles(name)) continue;
      const size_t context = std::min<size_t>(begin, 256);
      Note(name, line.substr(begin - context, context), line.substr(i, 64), printed, &uses);
      if (IsTelling(name) && uses.telling.size() < 1000) {
        uses.telling.push_back({std::string(name), number});
      }
    }
  }
  return uses;
}

// Zero variables are no approval where such names occur.
void ReportUnread(const Uses& uses, const std::string& source, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<size_t>> lines;
  for (const Occurrence& one : uses.telling) lines[one.name].push_back(one.line);
  if (lines.empty()) return;
  Finding finding;
  finding.id = "env.not-understood";
  finding.severity = Severity::kNote;
  finding.title = Count(lines.size(), "name") + (lines.size() == 1 ? " occurs" : " occur") +
                  " that could not be read as assignments";
  for (const auto& [name, where] : lines) {
    if (finding.evidence.size() == kMostShown) {
      finding.evidence.push_back(Format("and {} more", lines.size() - kMostShown));
      break;
    }
    finding.evidence.push_back(source + Format(":{}: ", where[0]) + name);
  }
  finding.action = "Look at these lines: nothing about them was checked";
  findings->push_back(std::move(finding));
}

struct Hint {
  const char* word;  // in lower case
  const char* what;
};
constexpr Hint kOfRccl[] = {{"rccl", "RCCL"},
                            {"rocm", "ROCm"},
                            {"hsa_", "HSA_*"},
                            {"hip_visible", "HIP_VISIBLE_DEVICES"},
                            {"rocr_", "ROCR_*"},
                            {"miopen", "MIOpen"},
                            {"/dev/kfd", "/dev/kfd"},
                            {"amd.com/gpu", "amd.com/gpu"},
                            {"mi300", "MI300"},
                            {"mi250", "MI250"},
                            {"mi210", "MI210"},
                            {"mi355", "MI355"},
                            {"gfx90a", "gfx90a"},
                            {"gfx94", "gfx94x"},
                            {"hipify", "HIP"},
                            {"hipcc", "HIP"},
                            {"min_nchannels=112", "NCCL_MIN_NCHANNELS=112"}};
constexpr Hint kOfNvidia[] = {{"nvidia", "nvidia"}, {"nvcr.io", "nvcr.io"}, {"nvshmem", "nvshmem"}};

// The library by what the file itself names; comments count, for they say what it is for.
void GuessLibrary(const std::string& text, FileReading* reading) {
  size_t number = 0;
  std::string rccl;
  bool nvidia = false;
  for (const std::string_view line : Split(text, '\n')) {
    ++number;
    const std::string lower = ToLower(line.substr(0, 4096));
    for (const Hint& hint : kOfRccl) {
      if (rccl.empty() && lower.find(hint.word) != std::string::npos) {
        rccl = std::string(hint.what) + Format(" on line {}", number);
      }
    }
    for (const Hint& hint : kOfNvidia) {
      nvidia = nvidia || lower.find(hint.word) != std::string::npos;
    }
  }
  if (rccl.empty()) {
    reading->why = "guessed: the file names nothing of RCCL or ROCm";
    return;
  }
  reading->either = nvidia;
  reading->library = nvidia ? Library::kNccl : Library::kRccl;
  reading->why =
      nvidia ? "guessed: the file names both NVIDIA and " + rccl : "guessed from the file: " + rccl;
}

// /proc/PID/environ: everything after '=' is the value.
void ReadEnviron(std::string_view text, Collector* out) {
  size_t number = 0;
  for (const std::string_view entry : Split(text, '\0')) {
    ++number;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    out->Set(std::string(entry.substr(0, equals)), std::string(entry.substr(equals + 1)), true,
             number, "");
  }
}

void ReadForm(FileForm form, std::string_view text, const Nested& at, Collector* out) {
  switch (form) {
    case FileForm::kShell:
    case FileForm::kBatch:
      return ReadShell(text, at, out);
    case FileForm::kDockerfile:
      return ReadDockerfile(text, at, out);
    case FileForm::kCompose:
    case FileForm::kKubernetes:
    case FileForm::kActions:
    case FileForm::kYaml:
      return ReadYaml(text, at, out);
    case FileForm::kJson:
    case FileForm::kProgram:
      return ReadLiterals(text, /*hash_comments=*/false, at, out);
    case FileForm::kPython:
      return ReadLiterals(text, /*hash_comments=*/true, at, out);
    case FileForm::kSettings:
    case FileForm::kList:
    case FileForm::kConfig:
      return ReadList(text, at, out);
    case FileForm::kEnvironFile:
      return ReadEnviron(text, out);
  }
}

}  // namespace

void ReadAny(std::string_view text, const std::string& name, const Nested& at, Collector* out) {
  if (at.depth >= kDeepest) return;
  ReadForm(RecogniseForm(text, name), text, at, out);
}

FileReading ReadVariables(const std::string& text, const std::string& source,
                          const CheckedFor& checked_for) {
  FileReading reading;
  reading.form = RecogniseForm(text, source);
  GuessLibrary(text, &reading);
  const Uses uses = LookForUses(text);
  if (reading.form == FileForm::kConfig) {
    reading.assignments =
        FromConfigText(text, source, checked_for, MapEnvironment({}), &reading.findings);
  } else {
    Collector collector(source);
    collector.SetExpanded(uses.expanded);
    ReadForm(reading.form, text, {}, &collector);
    reading.assignments = collector.TakeAssignments();
    reading.findings = collector.TakeFindings();
  }
  for (Assignment& one : reading.assignments) one.own = uses.own.count(one.name) > 0;
  if (reading.assignments.empty() && reading.findings.empty()) {
    ReportUnread(uses, source, &reading.findings);
  }
  return reading;
}

}  // namespace diapason::knobs
