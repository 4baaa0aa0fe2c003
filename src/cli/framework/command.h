#pragma once

#include <cstdio>
#include <functional>
#include <string>

#include "base/status.h"
#include "base/text.h"

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

// Formats, and prints to standard output. main() reports an output that cannot be written.
template <typename... T>
void PrintOut(fmt::format_string<T...> format, T&&... arguments) {
  const std::string text = FormatArguments(format, fmt::make_format_args(arguments...));
  std::fwrite(text.data(), 1, text.size(), stdout);
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

// Whether standard output is a terminal and NO_COLOR is not set.
bool ColoursOn();
// Width of the terminal; 80 if standard output is not a terminal.
int TerminalColumns();

}  // namespace diapason::cli
