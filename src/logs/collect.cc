#include "logs/collect.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/text.h"
#include "logs/cursor.h"
#include "messages/catalogue.h"

namespace diapason::logs {
namespace {

constexpr size_t kLongestLine = 64 << 10;
constexpr size_t kMostHostTries = 8;
constexpr int kLeastInfoWeight = 68;

constexpr std::string_view kLibrary = "NCCL ";

// A line with none of these texts or those of the known messages, and that is not a row of a table,
// is skipped.
const messages::Matcher& MarkerWords() {
  static const messages::Matcher matcher = [] {
    std::vector<std::string> words = messages::Catalogue::BuiltIn().texts();
    for (const char* word :
         {"NCCL INFO",         "NCCL WARN",       "NCCL CALL",       "NCCL TRACE",
          "NCCL version ",     "RCCL version",    "Watchdog caught", "last enqueued ",
          "createT:",          "ACTIVE OPS",      "Last error:",     "Traceback (most",
          "ValueError",        "RuntimeError",    "KeyError",        "AssertionError",
          "TypeError",         "IndexError",      "AttributeError",  "NotImplementedError",
          "ZeroDivisionError", "OSError: ",       "BrokenPipeError", "ConnectionResetError",
          "ConnectionError",   "TimeoutError",    "Exception: ",     "NameError",
          "DecodeError",       "FileExistsError", "RecursionError",  "ArithmeticError",
          "OverflowError",     "LookupError",     "PermissionError", "UnboundLocalError",
          "SyntaxError",       "EOFError",        "[ERROR] ",        " ERROR: ",
          " FATAL: ",          "FATAL ERROR",     "Fatal error",     "fatal error",
          "*** Error",         " error: ",        " panic: ",        "local_rank: "}) {
      words.emplace_back(word);
    }
    return messages::Matcher(std::move(words));
  }();
  return matcher;
}

// "rank3", "rank_3", "rank-3" in the name of a file; -1 for none.
int64_t RankOfFile(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  const size_t at = name.find("rank");
  if (at == std::string_view::npos) return -1;
  Cursor cursor(name.substr(at + 4));
  for (const std::string_view between : {"_", "-", "."}) cursor.Skip(between);
  int64_t rank = -1;
  return cursor.Number(&rank) && rank >= 0 ? rank : -1;
}

}  // namespace

Collector::Collector(LogFacts* facts) : facts_(facts), markers_(MarkerWords()) {}

void Collector::BeginFile(uint32_t file, std::string_view name) {
  spot_ = {file, 0};
  file_process_ = UINT32_MAX;
  look_until_ = dump_until_ = traceback_until_ = failure_until_ = last_error_line_ = 0;
  file_rank_ = RankOfFile(name);
  failure_rank_ = -1;
  frame_.clear();
  facts_->perf.BeginFile(file, name);
}

void Collector::EndFile() {
  if (spot_.file < facts_->files.size()) facts_->files[spot_.file].lines = spot_.line;
  facts_->lines += spot_.line;
}

void Collector::LongLine(std::string_view start) {
  ++facts_->long_lines;
  Lines(start);
}

void Collector::Lines(std::string_view block) {
  const char* block_end = block.data() + block.size();
  const char* marked = markers_.First(block.data(), block_end);
  for (const char* at = block.data(); at < block_end;) {
    const auto* feed =
        static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(block_end - at)));
    const char* end = feed == nullptr ? block_end : feed;
    ++spot_.line;
    const bool noted = marked < end;
    if (end > at) Line({at, static_cast<size_t>(end - at)}, noted);
    if (noted) marked = markers_.First(end, block_end);
    at = end + 1;
  }
}

void Collector::Line(std::string_view line, bool noted) {
  if (line.size() > kLongestLine) {
    ++facts_->long_lines;
    line = line.substr(0, kLongestLine);
  }
  if (noted) {
    const size_t at = line.find(kLibrary);
    if (at != std::string_view::npos) {
      Library(line, at);
    } else {
      OtherLine(line, true);
    }
    return;
  }
  if (line == "Killed" || line == "Killed\r") {
    // A shell's whole message; too short to be searched for.
    OtherLine("Killed  ", true);
    return;
  }
  const char first = line[0];
  if (first == '#' || first == ' ' || first == '[' || first == 'H' || first == 'R' ||
      (first >= '0' && first <= '9') || spot_.line <= look_until_) {
    OtherLine(line, false);
  }
}

void Collector::Labelled(const Label& label) {
  if (label.launcher.empty()) return;
  std::vector<std::string>& known = facts_->launchers;
  if (known.size() < 3 && std::find(known.begin(), known.end(), label.launcher) == known.end()) {
    known.emplace_back(label.launcher);
  }
}

void Collector::Library(std::string_view line, size_t at) {
  // Processes that write into one file concurrently cut each other's lines: the rest of a line may
  // be another one.
  for (;;) {
    LibraryLine parsed;
    while (!ParseLibraryLine(line, at, &parsed)) {
      at = line.find(kLibrary, at + 1);
      if (at == std::string_view::npos) {
        // "NCCL version 2.29.2+cuda13.1" stands alone at level VERSION; in other programs' output
        // the words mean nothing.
        const std::string_view rest = line.substr(LabelOf(line).length);
        if (!rest.starts_with("NCCL version ") || !Version(line, rest, UINT32_MAX)) {
          OtherLine(line, true);
        }
        return;
      }
    }
    ++facts_->library_lines;
    if (parsed.level == Level::kTrace) Hdp(line, parsed.message);
    if (parsed.level == Level::kCall || parsed.level == Level::kTrace) return;
    size_t next = at;
    size_t cut = 0;
    while ((next = line.find(kLibrary, next + 1)) != std::string_view::npos) {
      LibraryLine other;
      if (!ParseLibraryLine(line, next, &other) || other.host.empty()) continue;
      cut = static_cast<size_t>(other.process.data() - line.data());
      if (cut > at) break;
    }
    if (next == std::string_view::npos) {
      Message(line, parsed);
      return;
    }
    ++facts_->damaged;
    const auto start = static_cast<size_t>(parsed.message.data() - line.data());
    parsed.message = cut > start ? line.substr(start, cut - start) : std::string_view();
    Message(line.substr(0, cut), parsed);
    line = line.substr(cut);
    at = next - cut;
  }
}

uint32_t Collector::ProcessOf(const LibraryLine& parsed, int64_t label_rank) {
  if (parsed.host.empty()) return UINT32_MAX;
  const uint64_t hash = std::hash<std::string_view>()(parsed.process);
  if (hash == last_process_hash_ && last_process_ != nullptr) {
    ++last_process_->lines;
    return last_process_->process;
  }
  auto found = processes_.find(hash);
  if (found == processes_.end()) {
    // A name without its start, or with the end of another line before it, is not a new host.
    uint32_t process = UINT32_MAX;
    std::vector<uint32_t>& same = by_pid_[parsed.pid];
    for (const uint32_t known : same) {
      const std::string& host = facts_->hosts[facts_->processes[known].host];
      if (parsed.host.ends_with(host) || host.ends_with(parsed.host)) process = known;
    }
    if (process != UINT32_MAX) {
      ++facts_->damaged;
    } else if (facts_->processes.size() < kMostProcesses && same.size() < kMostHostTries) {
      process = static_cast<uint32_t>(facts_->processes.size());
      facts_->processes.emplace_back();
      facts_->processes.back().host = facts_->hosts.Id(parsed.host);
      facts_->processes.back().pid = parsed.pid;
      facts_->processes.back().rank = label_rank;
      same.push_back(process);
    }
    if (process == UINT32_MAX || processes_.size() >= 4 * kMostProcesses) {
      if (same.empty()) by_pid_.erase(parsed.pid);
      ++facts_->processes_left_out;
      return process;
    }
    found = processes_.emplace(hash, Alias{process, facts_->hosts.Id(parsed.host), 0}).first;
  }
  last_process_hash_ = hash;
  last_process_ = &found->second;
  ++last_process_->lines;
  return last_process_->process;
}

// The host is the most frequent name in a process's lines.
void Collector::NameHosts() {
  std::vector<uint64_t> most(facts_->processes.size());
  for (const auto& [hash, alias] : processes_) {
    uint64_t& lines = most[alias.process];
    LoggedProcess& process = facts_->processes[alias.process];
    const bool better = alias.lines > lines || (alias.lines == lines && alias.host < process.host);
    if (!better || alias.host == kNoName) continue;
    lines = alias.lines;
    process.host = alias.host;
  }
}

void Collector::Message(std::string_view line, const LibraryLine& parsed) {
  Label label;
  if (line[0] == '[' || line[0] == ' ' || (line[0] >= '0' && line[0] <= '9')) {
    label = LabelOf(line);
    Labelled(label);
    const std::string_view time = TimeOf(line.substr(label.length));
    if (!time.empty()) {
      if (facts_->first_time.empty() || time < facts_->first_time) facts_->first_time = time;
      if (time > facts_->last_time) facts_->last_time = time;
    }
  }
  const uint32_t process = ProcessOf(parsed, label.rank);
  if (process == UINT32_MAX) {
    if (parsed.host.empty()) ++facts_->damaged;
  } else {
    file_process_ = process;
    // Text before the line itself belongs to another line.
    const std::string& host = facts_->hosts[facts_->processes[process].host];
    auto start = static_cast<size_t>(parsed.host.data() - line.data());
    if (parsed.host.size() > host.size() && parsed.host.ends_with(host)) {
      start += parsed.host.size() - host.size();
    }
    if (start > label.length && facts_->perf.open()) {
      const std::string_view piece = line.substr(label.length, start - label.length);
      if (TimeOf(piece).empty()) facts_->perf.Fragment(piece);
    }
  }
  if (parsed.level == Level::kWarn) {
    ++facts_->warnings;
    Warning(line, parsed, process);
    return;
  }
  if (process == UINT32_MAX) return;
  if (!Information(line, parsed.message, process)) Unknown(line, parsed.message, process);
}

void Collector::Warning(std::string_view line, const LibraryLine& parsed, uint32_t process) {
  // The proxy trace is one warning; its operations are separate lines.
  if (parsed.message.starts_with("commDump for") || parsed.message.find("createT:") == 0) {
    facts_->proxy_traces.Line(spot_, line);
    return;
  }
  // Another line may have cut it right here.
  if (parsed.message.empty()) return;
  // With the words "NCCL WARN".
  const auto start = static_cast<size_t>(parsed.message.data() - line.data());
  const std::string_view text = line.substr(start - std::min<size_t>(start, 10));
  const messages::Catalogue& catalogue = messages::Catalogue::BuiltIn();
  const int kind = catalogue.Classify(text, true);
  if (kind < 0) {
    AddTo(&facts_->troubles.unknown_warnings, 8, spot_, line, parsed.message, WriterOf(process));
    return;
  }
  const auto index = static_cast<size_t>(kind);
  if (catalogue.messages()[index].cause == messages::Cause::kBenign) return;
  facts_->troubles.Add(index, spot_, line, parsed.message, WriterOf(process));
}

Writer Collector::WriterOf(uint32_t process) const {
  if (process == UINT32_MAX)
    return {file_rank_, file_rank_ < 0 ? "" : Format("rank {}", file_rank_)};
  return {facts_->processes[process].rank, facts_->ProcessText(process)};
}

bool Collector::Information(std::string_view line, std::string_view message, uint32_t process) {
  if (message.empty()) return true;
  // The two most frequent kinds come first.
  const size_t colon = message.substr(0, 24).find(": ");
  if (colon != std::string_view::npos) {
    const std::string_view behind = message.substr(colon + 2);
    if (behind.starts_with("opCount ")) return Operation(line, message, process);
    if (!behind.empty() && behind[0] >= '0' && behind[0] <= '9' && Tuning(message)) return true;
  }
  const char last = message.back();
  switch (message[0]) {
    case 'C':
      if (message.starts_with("Channel ")) return Channel(line, message, process);
      if (message.starts_with("Connected all ")) {
        if (CommRank* member = Current(process)) member->used = true;
        return true;
      }
      break;
    case 'T':
      if (message.starts_with("Trees ")) return Trees(message, process);
      break;
    case 'I':
      if (message.starts_with("Init timings")) return InitTimings(message, process);
      break;
    default:
      break;
  }
  if ((last == 'E' || last == 'T') && Initialisation(line, message, process)) return true;
  if (message[0] >= '0' && message[0] <= '9') {
    return Channels(message, process) || Tuning(message);
  }
  return Environment(line, message, process) || Plugin(line, message) ||
         NetworkLine(line, message, process) || Version(line, message, process) ||
         Device(line, message, process);
}

void Collector::Unknown(std::string_view line, std::string_view message, uint32_t process) {
  // "file.cc:123 -> 2": a function that returned an error.
  const size_t arrow = message.rfind(" -> ");
  // A search for InfiniBand or a plugin that finds none returns an error code, but is not a
  // failure.
  const bool looking = message.starts_with("transport/net_ib") || message.starts_with("plugin/");
  if (arrow != std::string_view::npos && message.size() - arrow <= 6 && !looking &&
      message.find(".cc:") != std::string_view::npos) {
    Cursor number(message.substr(arrow + 4));
    int64_t code = 0;
    if (number.Number(&code) && code > 0 && code < 8) {
      LineCount& tally = facts_->returned[code];
      if (tally.count++ == 0) tally.first = MakePlace(spot_, line);
      return;
    }
  }
  const size_t size = message.substr(0, 160).find("Cuda Alloc Size ");
  if (size != std::string_view::npos) {
    Cursor cursor(message.substr(size + 16));
    int64_t bytes = 0;
    if (cursor.Number(&bytes) && bytes > 0) {
      facts_->processes[process].gpu_bytes += static_cast<uint64_t>(bytes);
    }
    return;
  }
  const messages::Catalogue& catalogue = messages::Catalogue::BuiltIn();
  const int kind = catalogue.Classify(message, false);
  if (kind < 0) return;
  const messages::Message& meaning = catalogue.messages()[static_cast<size_t>(kind)];
  if (meaning.cause == messages::Cause::kBenign) {
    if (message.find(", retrying") != std::string_view::npos) {
      if (facts_->retries.count++ == 0) facts_->retries.first = MakePlace(spot_, line);
    }
    return;
  }
  // At level INFO the library reports attempts, too; what cannot be one counts.
  if (meaning.weight < kLeastInfoWeight && meaning.severity == Severity::kError) return;
  facts_->troubles.Add(static_cast<size_t>(kind), spot_, line, message, WriterOf(process));
}

}  // namespace diapason::logs
