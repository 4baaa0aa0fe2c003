#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands/journal/journal.h"
#include "cli/framework/command.h"
#include "journal/trace.h"

namespace diapason::cli {
namespace {

// A file that gets its name only when it is complete; or standard output.
class Output {
 public:
  ~Output() {
    if (file_ == nullptr || file_ == stdout) return;
    std::fclose(file_);
    if (!partial_.empty()) ::unlink(partial_.c_str());
  }
  Status Open(const std::string& path) {
    path_ = path;
    if (path == "-") {
      file_ = stdout;
      return {};
    }
    target_ = WhatToReplace(path);
    if (target_.empty()) {
      file_ = std::fopen(path.c_str(), "wb");
    } else {
      partial_ = Format("{}.{}.partial", target_, static_cast<int>(::getpid()));
      file_ = std::fopen(partial_.c_str(), "wbx");
    }
    return file_ == nullptr ? Failure() : Status();
  }
  Status Write(std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), file_) == text.size() ? Status() : Failure();
  }
  Status Close() {
    if (file_ == stdout) return std::fflush(stdout) == 0 ? Status() : Failure();
    const bool closed = std::fclose(file_) == 0;
    file_ = nullptr;
    if (closed && (target_.empty() || std::rename(partial_.c_str(), target_.c_str()) == 0)) {
      return {};
    }
    const Status failure = Failure();
    if (!partial_.empty()) ::unlink(partial_.c_str());
    return failure;
  }

 private:
  Status Failure() const {
    return IoError(Format("cannot write '{}': {}", path_, ErrnoText(errno)));
  }
  std::string path_;
  std::string target_;  // final name of `partial_`; "": written directly
  std::string partial_;
  std::FILE* file_ = nullptr;
};

}  // namespace

Result<int> RunJournalExport(const JournalExport& asked) {
  Output output;
  bool open = false;
  journal::TraceWriter trace([&](std::string_view text) { return output.Write(text); });
  for (const std::string& file : asked.files) {
    ASSIGN_OR_RETURN(const journal::JournalContents read, ReadWithWarnings(file));
    // Opened only now, so that unreadable input leaves no file behind.
    if (!open) {
      RETURN_IF_ERROR(output.Open(asked.output));
      open = true;
    }
    RETURN_IF_ERROR(trace.Add(file, read));
  }
  RETURN_IF_ERROR(trace.Finish());
  RETURN_IF_ERROR(output.Close());
  if (asked.output != "-") {
    PrintOut("{}: {} of {}\n", asked.output, Count(trace.events(), "event"),
             Count(asked.files.size(), "journal"));
  }
  return kExitFine;
}

}  // namespace diapason::cli
