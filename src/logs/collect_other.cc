// Lines of other programs than the library: frameworks, launchers, kernels, Python.
#include <algorithm>

#include "base/text.h"
#include "logs/collect.h"
#include "watch/proxy_dump.h"

namespace diapason::logs {
namespace {

constexpr size_t kMostDumpBytes = 4 << 20;
constexpr size_t kMostDumpFiles = 1024;
constexpr uint64_t kDumpReach = 4096;     // maximum distance between two lines of a dump
constexpr uint64_t kTracebackReach = 60;  // lines after the start of a traceback or its last frame
constexpr uint64_t kFailureReach = 12;    // lines of one failure in torchrun's summary

// A line that calls itself an error, without a known meaning.
bool CallsItselfError(std::string_view line) {
  for (const std::string_view word :
       {"[ERROR] ", " ERROR: ", " FATAL: ", "FATAL ERROR", "Fatal error", "fatal error", "[FATAL]",
        "*** Error", "!!! Error", " error: ", "panic: "}) {
    const size_t at = line.find(word);
    if (at != std::string_view::npos && at < 80) return true;
  }
  return false;
}

}  // namespace

Writer Collector::WriterOf(std::string_view line, const Label& label) const {
  Writer writer;
  writer.rank = label.rank;
  if (writer.rank < 0) writer.rank = RankIn(line);
  if (writer.rank < 0 && spot_.line <= failure_until_) writer.rank = failure_rank_;
  if (writer.rank < 0) writer.rank = file_rank_;
  if (writer.rank >= 0) {
    writer.name = Format("rank {}", writer.rank);
    if (spot_.line <= failure_until_ && writer.rank == failure_rank_ && !failure_host_.empty()) {
      writer.name += " (" + failure_host_ + ")";
    }
  }
  return writer;
}

bool Collector::ProxyDump(std::string_view line, std::string_view rest) {
  if (spot_.line > dump_until_ && !rest.starts_with("ACTIVE OPS")) return false;
  if (!watch::IsProxyDumpLine(rest)) return false;
  dump_until_ = spot_.line + kDumpReach;
  look_until_ = std::max(look_until_, dump_until_);
  auto& dumps = facts_->proxy_dumps;
  if (dumps.empty() || dumps.back().first.file != spot_.file) {
    if (dumps.size() == kMostDumpFiles) return true;
    dumps.push_back({MakePlace(spot_, line), ""});
  }
  if (facts_->proxy_dump_bytes + rest.size() < kMostDumpBytes) {
    dumps.back().text.append(rest).push_back('\n');
    facts_->proxy_dump_bytes += rest.size() + 1;
  }
  return true;
}

// "  rank      : 3 (local_rank: 3)" and its neighbours.
void Collector::FailureLine(std::string_view rest) {
  if (rest.find("Root Cause (first observed failure)") != std::string_view::npos) {
    in_root_failure_ = true;
    failure_until_ = spot_.line + kFailureReach;
    look_until_ = std::max(look_until_, failure_until_);
    failure_rank_ = -1;
    failure_host_.clear();
    return;
  }
  Cursor cursor(rest);
  cursor.Blanks();
  if (cursor.Skip("host ")) {
    cursor.SkipTo(": ");
    failure_host_ = std::string(cursor.Word().substr(0, 100));
    failure_until_ = spot_.line + kFailureReach;
  } else if (cursor.Skip("rank ")) {
    int64_t rank = -1;
    if (!cursor.SkipTo(": ") || !cursor.Number(&rank)) return;
    failure_rank_ = rank;
    failure_until_ = spot_.line + kFailureReach;
    if (in_root_failure_) {
      facts_->root_failure.rank = rank;
      facts_->root_failure.host = failure_host_;
      facts_->root_failure.place = MakePlace(spot_, rest);
      in_root_failure_ = false;
    }
  } else if (cursor.Skip("exitcode ")) {
    int64_t code = 0;
    if (!cursor.SkipTo(": ") || !cursor.Number(&code)) return;
    if (facts_->root_failure.rank == failure_rank_) facts_->root_failure.exit_code = code;
  }
  look_until_ = std::max(look_until_, failure_until_);
}

// Frames of a traceback; true if the line is one.
bool Collector::TracebackLine(std::string_view rest) {
  if (rest.find("Traceback (most recent call last)") != std::string_view::npos) {
    ++facts_->tracebacks;
    if (facts_->tracebacks == 1) facts_->first_traceback = MakePlace(spot_, rest);
    traceback_until_ = spot_.line + kTracebackReach;
    look_until_ = std::max(look_until_, traceback_until_);
    frame_.clear();
    return true;
  }
  const size_t file = rest.find("File \"");
  if (file == std::string_view::npos || rest.find("\", line ") == std::string_view::npos) {
    return false;
  }
  frame_ = std::string(rest.substr(file + 5, 200));
  traceback_until_ = spot_.line + kTracebackReach;
  look_until_ = std::max(look_until_, traceback_until_);
  return true;
}

void Collector::OtherLine(std::string_view line, bool noted) {
  const Label label = LabelOf(line);
  const std::string_view rest = line.substr(label.length);
  if (facts_->perf.Line(spot_, rest)) {
    Labelled(label);
    return;
  }
  if (rest.starts_with("RCCL version") || rest.starts_with("HIP version") ||
      rest.starts_with("ROCm version")) {
    Version(line, rest, facts_->processes.empty() ? UINT32_MAX : file_process_);
    return;
  }
  if (ProxyDump(line, rest)) return;
  if (!noted && spot_.line > look_until_) return;
  if (noted && facts_->proxy_traces.Line(spot_, line)) {
    Labelled(label);
    return;
  }
  if (noted && facts_->watchdog.Line(spot_, line)) {
    Labelled(label);
    return;
  }
  const int64_t named = label.rank >= 0 ? label.rank : RankIn(line);
  facts_->highest_rank = std::max(facts_->highest_rank, named);
  if (TracebackLine(rest)) return;
  FailureLine(rest);
  if (rest.find("Last error:") != std::string_view::npos) {
    last_error_line_ = spot_.line + 1;
    look_until_ = std::max(look_until_, last_error_line_);
    return;
  }
  Meaning(line, rest, label);
}

void Collector::Meaning(std::string_view line, std::string_view rest, const Label& label) {
  const bool last_error = spot_.line == last_error_line_;
  const int kind = messages::Catalogue::BuiltIn().Classify(line, last_error);
  std::string_view type;
  std::string_view text;
  if (kind >= 0) {
    Labelled(label);
    const messages::Message& message =
        messages::Catalogue::BuiltIn().messages()[static_cast<size_t>(kind)];
    if (message.cause == messages::Cause::kBenign) return;
    if (ExceptionIn(line, &type, &text)) frame_.clear();
    facts_->troubles.Add(static_cast<size_t>(kind), spot_, line, rest, WriterOf(line, label));
  } else if (ExceptionIn(line, &type, &text)) {
    Labelled(label);
    facts_->raised.Add(spot_, line, type, text, frame_, WriterOf(line, label));
    frame_.clear();
  } else if (last_error && !rest.empty()) {
    AddTo(&facts_->troubles.unknown_warnings, 8, spot_, line, rest, WriterOf(line, label));
  } else if (CallsItselfError(rest)) {
    AddTo(&facts_->troubles.unknown_errors, 4, spot_, line, rest, WriterOf(line, label));
  }
}

}  // namespace diapason::logs
