#include "env_tune/state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/text.h"

namespace diapason::env_tune {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kLargest = size_t{256} << 20;
constexpr int kVersion = 1;
constexpr char kMark[] = "diapason_env_tune";

std::string Dump(const ordered_json& line) {
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

template <typename T>
bool Get(const json& object, const char* key, T* value) {
  const auto found = object.find(key);
  if (found == object.end()) return false;
  if constexpr (std::is_same_v<T, bool>) {
    if (!found->is_boolean()) return false;
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (!found->is_number()) return false;
  } else {
    if (!found->is_string()) return false;
  }
  *value = found->get<T>();
  return true;
}

bool ReadHead(const json& line, StateHead* head) {
  int version = 0;
  if (!line.is_object() || !Get(line, kMark, &version) || version != kVersion) return false;
  if (!Get(line, "fingerprint", &head->fingerprint)) return false;
  if (!line.contains("command") || !line["command"].is_array()) return false;
  for (const json& word : line["command"]) {
    if (!word.is_string()) return false;
    head->command.push_back(word.get<std::string>());
  }
  std::string binds;
  if (!Get(line, "binds", &binds) || !Get(line, "binds_stated", &head->binding.stated))
    return false;
  const Result<Binds> parsed = ParseBinds(binds);
  head->binding.binds = parsed.ok() ? parsed.value() : Binds::kUnknown;
  if (!line.contains("evidence") || !line["evidence"].is_array()) return false;
  for (const json& text : line["evidence"]) {
    if (text.is_string()) head->binding.evidence.push_back(text.get<std::string>());
  }
  if (!line.contains("candidates") || !line["candidates"].is_array()) return false;
  for (const json& one : line["candidates"]) {
    KnobValue candidate;
    if (!one.is_object() || !Get(one, "name", &candidate.name) ||
        !Get(one, "value", &candidate.value)) {
      return false;
    }
    Get(one, "why", &candidate.why);
    head->candidates.push_back(std::move(candidate));
  }
  return true;
}

bool ReadRun(const json& line, StateRun* run) {
  if (!line.is_object()) return false;
  std::string phase;
  Step& step = run->step;
  RunFigure& figure = run->figure;
  if (!Get(line, "phase", &phase) || !Get(line, "candidate", &step.candidate) ||
      !Get(line, "block", &step.block) || !Get(line, "slot", &step.slot) ||
      !Get(line, "treated", &step.treated) || !Get(line, "fine", &figure.fine) ||
      !Get(line, "value", &figure.value)) {
    return false;
  }
  bool known = false;
  for (const ExperimentPhase each : {ExperimentPhase::kWarmUp, ExperimentPhase::kBaseline,
                                     ExperimentPhase::kCompare, ExperimentPhase::kValidate}) {
    if (PhaseName(each) != phase) continue;
    step.phase = each;
    known = true;
  }
  Get(line, "cpu_s", &figure.cpu_s);
  Get(line, "memory", &figure.memory);
  Get(line, "why", &figure.why);
  if (line.contains("settings") && line["settings"].is_object()) {
    for (const auto& [name, value] : line["settings"].items()) {
      if (!value.is_string()) return false;
      step.settings[name] = value.get<std::string>();
    }
  }
  return known;
}

}  // namespace

Result<TuneState> ReadState(const std::string& path) {
  if (!FileExists(path)) return NotFound("there is no state '" + path + "'");
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargest));
  return ParseState(text, path);
}

Result<TuneState> ParseState(std::string_view text, const std::string& name) {
  TuneState state;
  bool first = true;
  int number = 0;
  while (state.good_bytes < text.size()) {
    const size_t end = text.find('\n', state.good_bytes);
    if (end == std::string_view::npos) break;  // cut short
    ++number;
    const json line =
        json::parse(text.substr(state.good_bytes, end - state.good_bytes), nullptr, false);
    StateRun run;
    const bool good = first ? ReadHead(line, &state.head) : ReadRun(line, &run);
    if (!good) {
      return Invalid(
          Format("{}:{}: this is not a line of a state of diapason env tune", name, number));
    }
    if (!first) state.runs.push_back(std::move(run));
    first = false;
    state.good_bytes = end + 1;
  }
  if (first) return Invalid(name + " holds no state of diapason env tune");
  return state;
}

Result<StateWriter> StateWriter::Create(const std::string& path, const StateHead& head) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    if (errno == EEXIST) {
      return Invalid("the state '" + path +
                     "' is there already: go on with it (--resume), or name another file");
    }
    return IoError("cannot create the state '" + path + "': " + ErrnoText(errno));
  }
  StateWriter writer(::fdopen(fd, "w"), path);
  ordered_json line;
  line[kMark] = kVersion;
  line["fingerprint"] = head.fingerprint;
  line["command"] = head.command;
  line["binds"] = BindsName(head.binding.binds);
  line["binds_stated"] = head.binding.stated;
  line["evidence"] = head.binding.evidence;
  line["candidates"] = ordered_json::array();
  for (const KnobValue& candidate : head.candidates) {
    line["candidates"].push_back(
        {{"name", candidate.name}, {"value", candidate.value}, {"why", candidate.why}});
  }
  RETURN_IF_ERROR(writer.Write(Dump(line)));
  return writer;
}

Result<StateWriter> StateWriter::Continue(const std::string& path, const TuneState& state) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.open()) return IoError("cannot open the state '" + path + "': " + ErrnoText(errno));
  const auto end = static_cast<off_t>(state.good_bytes);
  if (::ftruncate(file.get(), end) != 0 || ::lseek(file.get(), end, SEEK_SET) != end) {
    return IoError("cannot go on in the state '" + path + "': " + ErrnoText(errno));
  }
  return StateWriter(::fdopen(file.Release(), "w"), path);
}

Status StateWriter::Write(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0) {
    return IoError("cannot write the state '" + path_ + "': " + ErrnoText(errno));
  }
  return {};
}

Status StateWriter::Add(const StateRun& run) {
  ordered_json line;
  line["phase"] = PhaseName(run.step.phase);
  line["candidate"] = run.step.candidate;
  line["block"] = run.step.block;
  line["slot"] = run.step.slot;
  line["treated"] = run.step.treated;
  line["settings"] = ordered_json::object();
  for (const auto& [name, value] : run.step.settings) line["settings"][name] = value;
  line["fine"] = run.figure.fine;
  line["value"] = run.figure.value;
  line["cpu_s"] = run.figure.cpu_s;
  line["memory"] = run.figure.memory;
  if (!run.figure.why.empty()) line["why"] = run.figure.why;
  return Write(Dump(line));
}

}  // namespace diapason::env_tune
