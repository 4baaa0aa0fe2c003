#include "logs/line.h"

#include "logs/cursor.h"

namespace diapason::logs {
namespace {

bool Digit(char c) { return c >= '0' && c <= '9'; }

// "host:pid:tid" at the end of `token`; text before the host is ignored.
bool Identity(std::string_view token, LibraryLine* parsed) {
  const size_t thread = token.rfind(':');
  if (thread == std::string_view::npos || thread == 0) return false;
  const size_t process = token.rfind(':', thread - 1);
  if (process == std::string_view::npos || process == 0) return false;
  int64_t tid = 0;
  Cursor threads(token.substr(thread + 1));
  Cursor pids(token.substr(process + 1, thread - process - 1));
  if (!threads.Number(&tid) || !threads.AtEnd()) return false;
  if (!pids.Number(&parsed->pid) || !pids.AtEnd() || parsed->pid < 0) return false;
  size_t first = process;
  while (first > 0 && token[first - 1] != ':' && token[first - 1] != ']' &&
         token[first - 1] != '>') {
    --first;
  }
  parsed->host = token.substr(first, process - first);
  parsed->process = token.substr(first, thread - first);
  return !parsed->host.empty() && parsed->host.size() <= 253;
}

}  // namespace

Label LabelOf(std::string_view line) {
  Label label;
  Cursor cursor(line);
  if (line.empty()) return label;
  if (line[0] == '[') {
    int64_t job = 0;
    int64_t rank = 0;
    std::string_view stream;
    cursor.Skip("[");
    if (cursor.Number(&job)) {
      // "[1,3]<stdout>:"
      if (!cursor.Skip(",") || !cursor.Number(&rank) || !cursor.Skip("]<")) return label;
      if (!cursor.Until(">:", &stream) || stream.size() > 8) return label;
      label.launcher = "mpirun";
      label.rank = rank;
    } else if (cursor.Skip("rank")) {
      // PyTorch itself writes this, under any launcher.
      if (!cursor.Number(&rank) || !cursor.Skip("]:")) return label;
      label.rank = rank;
    } else if (cursor.Skip("default")) {
      // A local rank: the global rank is unknown.
      if (!cursor.Number(&rank) || !cursor.Skip("]:")) return label;
      label.launcher = "torchrun";
    } else {
      return label;
    }
    cursor.Skip(" ");
    label.length = line.size() - cursor.rest().size();
    return label;
  }
  size_t blanks = 0;
  while (blanks < line.size() && blanks < 6 && line[blanks] == ' ') ++blanks;
  Cursor number(line.substr(blanks));
  int64_t rank = 0;
  if (Digit(line.size() > blanks ? line[blanks] : ' ') && number.Number(&rank) &&
      number.Skip(": ")) {
    label.launcher = "srun";
    label.rank = rank;
    label.length = line.size() - number.rest().size();
  }
  return label;
}

std::string_view TimeOf(std::string_view line) {
  const size_t first = !line.empty() && line[0] == '[' ? 1 : 0;
  if (line.size() < first + 19) return {};
  const std::string_view time = line.substr(first, 19);
  if (!Digit(time[0]) || time[4] != '-' || time[7] != '-' || time[13] != ':' || time[16] != ':') {
    return {};
  }
  return time;
}

bool ParseLibraryLine(std::string_view line, size_t at, LibraryLine* parsed) {
  const std::string_view behind = line.substr(at + 5);
  if (behind.starts_with("INFO ")) {
    parsed->level = Level::kInfo;
  } else if (behind.starts_with("WARN ")) {
    parsed->level = Level::kWarn;
  } else if (behind.starts_with("CALL ")) {
    parsed->level = Level::kCall;
  } else if (behind.starts_with("TRACE ")) {
    parsed->level = Level::kTrace;
  } else {
    return false;
  }
  parsed->message = behind.substr(parsed->level == Level::kTrace ? 6 : 5);
  parsed->host = {};
  parsed->process = {};
  parsed->pid = -1;
  parsed->device = -1;
  // From right to left: (file:line) (time) [device] host:pid:tid.
  std::string_view before = line.substr(0, at);
  for (int token = 0; token < 6 && !before.empty(); ++token) {
    while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
    const size_t blank = before.rfind(' ');
    const std::string_view word =
        blank == std::string_view::npos ? before : before.substr(blank + 1);
    if (word.size() >= 3 && word.front() == '[' && word.back() == ']') {
      Cursor number(word.substr(1));
      int64_t device = 0;
      if (parsed->device < 0 && number.Number(&device)) parsed->device = device;
    } else if (Identity(word, parsed)) {
      return true;
    }
    if (blank == std::string_view::npos) break;
    before = before.substr(0, blank);
  }
  parsed->pid = -1;
  parsed->host = {};
  parsed->process = {};
  return true;
}

}  // namespace diapason::logs
