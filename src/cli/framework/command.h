#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace diapason::cli {

class CommandLine;

// Exit statuses of every command; docs/formats/exit-status.md and `diapason --help` list them.
inline constexpr int kExitFine = 0;
inline constexpr int kExitFailed = 1;  // the input is wrong, or something is not there
inline constexpr int kExitUsage = 2;   // the command line is wrong
// Commands that judge (doctor, env check, logs): what is the worst they found.
inline constexpr int kExitWarnings = 3;
inline constexpr int kExitErrors = 4;
inline constexpr int kExitInterrupted = 130;  // Ctrl-C

// What a command does; returns its exit status.
using CommandAction = std::function<int()>;

// "diapason: error: ..." on standard error; returns kExitFailed.
int Fail(const Status& status);
// "diapason: warning: ..." on standard error.
void Warn(const std::string& text);
// "diapason: ..." on standard error, for people who wait; not where -q was given.
void Progress(const std::string& text);
// An error and where to read more, for what is wrong with a command line.
void Complain(const std::string& text, const std::string& hint);

// Who asks for JSON gets a document whatever happens: {"error": "..."} where the command failed
// before it had printed any. Only one rank of a job may do so.
void ExpectJson(bool expected);
void FinishJson();

// Whether standard output is a terminal and nobody has set NO_COLOR.
bool ColoursOn();
// Of the terminal; 80 where standard output is none.
int TerminalColumns();

}  // namespace diapason::cli
