#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "base/text.h"
#include "cli/framework/output.h"

namespace diapason::cli {

class CommandLine;

// Exit statuses of every command; docs/formats/exit-status.md and `diapason --help` list them.
inline constexpr int kExitFine = 0;
inline constexpr int kExitFailed = 1;  // invalid input, or a missing file or resource
inline constexpr int kExitUsage = 2;   // invalid command line
// Commands that report findings (doctor, env check, logs): the severity of the worst finding.
inline constexpr int kExitWarnings = 3;
inline constexpr int kExitErrors = 4;
inline constexpr int kExitInterrupted = 130;  // Ctrl-C

// Formats, and prints to standard output by WriteOut. main() reports an output that cannot be
// written.
template <typename... T>
void PrintOut(fmt::format_string<T...> format, T&&... arguments) {
  WriteOut(FormatArguments(format, fmt::make_format_args(arguments...)));
}

// What a command does; returns its exit status. An error is printed, and ends with kExitFailed.
using CommandAction = std::function<Result<int>()>;

// "diapason: error: ..." on standard error; returns kExitFailed.
int Fail(const Status& status);
// "diapason: warning: ..." on standard error.
void Warn(const std::string& text);
// Prints "diapason: ..." on standard error to report progress; prints nothing with -q.
void Progress(const std::string& text);
// Reports a command-line error, and a hint where to read more, on standard error.
void Complain(const std::string& text, const std::string& hint);

// With --json a command always prints one document: FinishJson prints {"error": "..."} if the
// command failed before it printed any. Only one rank of a job may call ExpectJson(true).
void ExpectJson(bool expected);
void FinishJson();

}  // namespace diapason::cli
