#include "logs/raised.h"

#include <algorithm>

namespace diapason::logs {
namespace {

bool Letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool NameCharacter(char c) { return Letter(c) || (c >= '0' && c <= '9') || c == '.'; }

// "[rank3]:", "(Worker pid=12)", "2025-11-15", "ERROR", "INFO:", "|": what stands before a message.
bool PrefixWord(std::string_view word) {
  const char first = word.front();
  const char last = word.back();
  if (first == '[' || first == '(' || (first >= '0' && first <= '9') || first == '\033')
    return true;
  if (last == ']' || last == ')' || last == ':' || last == '|' || last == '-') return true;
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; }) ||
         word.find("pid=") != std::string_view::npos;
}

bool ExceptionName(std::string_view name) {
  if (name.empty() || name.size() > 100 || !Letter(name[0])) return false;
  const size_t dot = name.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? name : name.substr(dot + 1);
  if (last.size() < 5 || last == "Error" || last[0] < 'A' || last[0] > 'Z') return false;
  return last.ends_with("Error") || last.ends_with("Exception") || last.ends_with("Interrupt") ||
         last == "SystemExit" || last == "StopIteration" || last == "Empty";
}

}  // namespace

bool ExceptionIn(std::string_view line, std::string_view* type, std::string_view* text) {
  size_t at = 0;
  for (int words = 0; words < 12; ++words) {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
    // "[rank3]:ValueError: ..." has no blank in between.
    size_t name = at;
    if (name < line.size() && line[name] == '[') {
      const size_t close = line.find("]:", name);
      if (close != std::string_view::npos && close < line.find(' ', name)) name = close + 2;
    }
    size_t end = name;
    while (end < line.size() && NameCharacter(line[end])) ++end;
    const std::string_view candidate = line.substr(name, end - name);
    const bool closed = end == line.size() || line[end] == '\r' ||
                        (line[end] == ':' && (end + 1 == line.size() || line[end + 1] == ' '));
    if (closed && ExceptionName(candidate)) {
      *type = candidate;
      *text = end + 2 < line.size() ? line.substr(end + 2) : std::string_view();
      return true;
    }
    size_t blank = line.find(' ', at);
    // "(Worker pid=123)" contains blanks.
    if (at < line.size() && line[at] == '(') {
      const size_t close = line.find(')', at);
      if (close != std::string_view::npos && close < at + 60) blank = line.find(' ', close);
    }
    if (at >= line.size() || blank == std::string_view::npos) return false;
    if (!PrefixWord(line.substr(at, blank - at))) return false;
    at = blank;
  }
  return false;
}

bool Follows(std::string_view type) {
  for (const std::string_view name : {"ChildFailedError",
                                      "SignalException",
                                      "BrokenPipeError",
                                      "ConnectionResetError",
                                      "EOFError",
                                      "CalledProcessError",
                                      "SystemExit",
                                      "DistBackendError",
                                      "DistNetworkError",
                                      "DistStoreError",
                                      "DistError",
                                      "KeyboardInterrupt",
                                      "EngineDeadError",
                                      "ProcessExitedException",
                                      "ProcessRaisedException",
                                      "RemoteError",
                                      "RayTaskError",
                                      "ActorDiedError",
                                      "Empty",
                                      "CancelledError",
                                      "ConnectionAbortedError",
                                      "GeneratorExit",
                                      "TimeoutError"}) {
    if (type.ends_with(name)) return true;
  }
  return false;
}

void RaisedList::Add(const Spot& spot, std::string_view line, std::string_view type,
                     std::string_view text, std::string_view frame, const Writer& writer) {
  for (Raised& known : list) {
    if (known.type != type || known.text.substr(0, 24) != text.substr(0, 24)) continue;
    AddTo(&known.lines, 2, spot, line, text, writer);
    return;
  }
  if (list.size() >= kMost) return;
  list.emplace_back();
  Raised& raised = list.back();
  raised.type = std::string(type);
  raised.text = MaskSecretsIn(text.substr(0, 600)).substr(0, 200);
  raised.frame = MaskSecretsIn(frame.substr(0, 300)).substr(0, 160);
  AddTo(&raised.lines, 2, spot, line, text, writer);
}

}  // namespace diapason::logs
