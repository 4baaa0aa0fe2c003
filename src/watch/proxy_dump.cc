#include "watch/proxy_dump.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace diapason::watch {
namespace {

constexpr size_t kMostDumps = 64;
constexpr size_t kMostOps = 100000;
constexpr size_t kMostSubs = 4096;
constexpr size_t kLongestLine = 64 * 1024;
constexpr std::string_view kBegin = "ACTIVE OPS";
constexpr std::string_view kFreeOps = "FREE OPS";
constexpr std::string_view kEnd = "[X]";
constexpr std::string_view kStray = "is not in any list";

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Removes a number from the front.
bool Take(std::string_view* text, int64_t* value) {
  size_t end = !text->empty() && (*text)[0] == '-' ? 1 : 0;
  while (end < text->size() && IsDigit((*text)[end])) ++end;
  if (!ParseSigned(text->substr(0, end), value)) return false;
  text->remove_prefix(end);
  return true;
}

bool Take(std::string_view* text, std::string_view what) {
  if (!text->starts_with(what)) return false;
  text->remove_prefix(what.size());
  return true;
}

// Removes "[0-3|17| Recv 1R/0 2R/1]" from the front of `text`.
bool TakeOp(std::string_view* text, ProxyOp* op) {
  std::string_view rest = *text;
  int64_t pool = 0;
  int64_t element = 0;
  if (!Take(&rest, "[") || !Take(&rest, &pool) || !Take(&rest, "-") || !Take(&rest, &element) ||
      !Take(&rest, "|") || !Take(&rest, &op->op_count) || !Take(&rest, "| ")) {
    return false;
  }
  op->type = Take(&rest, "Send") ? "send" : Take(&rest, "Recv") ? "recv" : "coll";
  if (op->type == "coll" && !Take(&rest, "Coll")) return false;
  op->state = "ready";
  while (Take(&rest, " ")) {
    ProxySub sub;
    if (op->subs.size() == kMostSubs || !Take(&rest, &sub.peer)) return false;
    if (!rest.empty() && rest[0] != '/') {
      sub.status = rest[0];
      rest.remove_prefix(1);
      op->state = "progress";
    }
    if (!Take(&rest, "/") || !Take(&rest, &sub.channel)) return false;
    op->subs.push_back(sub);
  }
  if (!Take(&rest, "]")) return false;
  op->place = Format("{}-{}", pool, element);
  op->line = std::string(text->substr(0, text->size() - rest.size()));
  *text = rest;
  return true;
}

// The start of the operation, or npos: launchers prefix lines, and other threads' output may be
// interleaved.
size_t FindOp(std::string_view line) {
  for (size_t at = line.find('['); at != std::string_view::npos; at = line.find('[', at + 1)) {
    std::string_view rest = line.substr(at + 1);
    int64_t number = 0;
    if (Take(&rest, &number) && Take(&rest, "-") && Take(&rest, &number) && Take(&rest, "|")) {
      return at;
    }
  }
  return std::string_view::npos;
}

bool EndsWithWord(std::string_view line, std::string_view word) {
  if (!line.ends_with(word)) return false;
  if (line.size() == word.size()) return true;
  const char before = line[line.size() - word.size() - 1];
  return std::isalnum(static_cast<unsigned char>(before)) == 0;
}

class DumpReader {
 public:
  void Line(std::string_view raw) {
    const std::string_view line = Trim(raw.substr(0, kLongestLine));
    if (EndsWithWord(line, kBegin)) {
      if (dumps_.size() == kMostDumps) dumps_.erase(dumps_.begin());
      dumps_.emplace_back();
      dumps_.back().found = true;
      in_ = In::kActive;
      return;
    }
    if (EndsWithWord(line, kFreeOps)) {
      in_ = In::kFree;
      return;
    }
    const size_t at = FindOp(line);
    if (at != std::string_view::npos) {
      Ops(line.substr(at));
    } else if (EndsWithWord(line, kEnd)) {
      if (in_ == In::kActive && !dumps_.empty()) dumps_.back().complete = true;
      in_ = In::kAfter;
    } else if (in_ == In::kActive && !line.empty() && !EndsWithWord(line, "|") &&
               !EndsWithWord(line, "v")) {
      Damaged();
    }
  }
  std::vector<ProxyDump> Done() { return std::move(dumps_); }

 private:
  enum class In { kActive, kFree, kAfter };

  void Ops(std::string_view line) {
    // A dump whose beginning was lost.
    if (dumps_.empty()) {
      dumps_.emplace_back();
      dumps_.back().found = true;
      in_ = In::kActive;
    }
    ProxyDump& dump = dumps_.back();
    while (true) {
      ProxyOp op;
      if (dump.active.size() + dump.stray.size() >= kMostOps || !TakeOp(&line, &op)) {
        Damaged();
        return;
      }
      if (in_ == In::kFree) {
        ++dump.free_ops;
      } else {
        (in_ == In::kActive ? dump.active : dump.stray).push_back(std::move(op));
      }
      // "->" joins the free elements on a line; "[X]" may end it.
      const size_t next = FindOp(line);
      if (next == std::string_view::npos) break;
      line.remove_prefix(next);
    }
    if (Trim(line).ends_with(kEnd)) in_ = In::kAfter;
  }
  void Damaged() {
    if (!dumps_.empty()) ++dumps_.back().damaged_lines;
  }

  std::vector<ProxyDump> dumps_;
  In in_ = In::kAfter;
};

}  // namespace

bool IsProxyDumpLine(std::string_view raw) {
  const std::string_view line = Trim(raw.substr(0, kLongestLine));
  if (line == "|" || line == "v") return true;
  if (EndsWithWord(line, kBegin) || EndsWithWord(line, kFreeOps) || EndsWithWord(line, kEnd)) {
    return true;
  }
  if (line.find("Elem ") != std::string_view::npos && line.find(kStray) != std::string_view::npos) {
    return true;
  }
  const size_t at = FindOp(line);
  if (at == std::string_view::npos) return false;
  const std::string_view op = line.substr(at);
  return op.find("| Send") != std::string_view::npos ||
         op.find("| Recv") != std::string_view::npos || op.find("| Coll") != std::string_view::npos;
}

std::vector<ProxyDump> ParseProxyDumps(std::string_view text) {
  DumpReader reader;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    reader.Line(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return reader.Done();
}

ProxyDump ParseProxyDump(std::string_view text) {
  std::vector<ProxyDump> dumps = ParseProxyDumps(text);
  return dumps.empty() ? ProxyDump() : std::move(dumps.back());
}

std::string_view ProxyStatusText(char status) {
  switch (status) {
    case 'I':
      return "has buffers to post";
    case 'G':
      return "waits for the GPU";
    case 'S':
      return "waits for the network to take the data";
    case 'R':
      return "waits for data from the peer";
    case 'F':
      return "flushes what came into the GPU's memory";
    case 'D':
      return "is done";
    case '-':
      return "has not begun";
    default:
      return "is in flight";
  }
}

}  // namespace diapason::watch
