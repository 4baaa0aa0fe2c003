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

// Each command has a file of its own with one such function: it declares its options on `parent`
// and sets `*run` when the command line names it.
using CommandAction = std::function<int()>;
void AddTune(CommandLine* parent, CommandAction* run);
void AddSettings(CommandLine* parent, CommandAction* run);
void AddPolicy(CommandLine* parent, CommandAction* run);
void AddAsk(CommandLine* parent, CommandAction* run);
void AddJournal(CommandLine* parent, CommandAction* run);
// `freeze` and `thaw`.
void AddFreeze(CommandLine* parent, CommandAction* run);
void AddBackends(CommandLine* parent, CommandAction* run);
void AddLaunch(CommandLine* parent, CommandAction* run);
void AddSimulate(CommandLine* parent, CommandAction* run);
void AddBench(CommandLine* parent, CommandAction* run);
// Below `bench`.
void AddBenchIteration(CommandLine* bench, CommandAction* run);
void AddSweep(CommandLine* parent, CommandAction* run);
void AddWorker(CommandLine* parent, CommandAction* run);
void AddData(CommandLine* parent, CommandAction* run);
void AddTrain(CommandLine* parent, CommandAction* run);
void AddPredict(CommandLine* parent, CommandAction* run);
void AddPlan(CommandLine* parent, CommandAction* run);
void AddEvaluate(CommandLine* parent, CommandAction* run);
void AddReport(CommandLine* parent, CommandAction* run);
void AddKnobs(CommandLine* parent, CommandAction* run);
void AddEnv(CommandLine* parent, CommandAction* run);
// Below `env`.
void AddEnvCheck(CommandLine* env, CommandAction* run);
void AddEnvPlan(CommandLine* env, CommandAction* run);
void AddEnvTune(CommandLine* env, CommandAction* run);
void AddDoctor(CommandLine* parent, CommandAction* run);
void AddLogs(CommandLine* parent, CommandAction* run);
void AddWatch(CommandLine* parent, CommandAction* run);
void AddProxy(CommandLine* parent, CommandAction* run);
void AddMan(CommandLine* parent, CommandAction* run);
void AddCompletion(CommandLine* parent, CommandAction* run);

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
