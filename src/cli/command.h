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
using Run = std::function<int()>;
void AddTune(CommandLine* parent, Run* run);
void AddSettings(CommandLine* parent, Run* run);
void AddPolicy(CommandLine* parent, Run* run);
void AddAsk(CommandLine* parent, Run* run);
void AddJournal(CommandLine* parent, Run* run);
// `freeze` and `thaw`.
void AddFreeze(CommandLine* parent, Run* run);
void AddBackends(CommandLine* parent, Run* run);
void AddLaunch(CommandLine* parent, Run* run);
void AddSimulate(CommandLine* parent, Run* run);
void AddBench(CommandLine* parent, Run* run);
// Below `bench`.
void AddBenchIteration(CommandLine* bench, Run* run);
void AddSweep(CommandLine* parent, Run* run);
void AddWorker(CommandLine* parent, Run* run);
void AddData(CommandLine* parent, Run* run);
void AddTrain(CommandLine* parent, Run* run);
void AddPredict(CommandLine* parent, Run* run);
void AddPlan(CommandLine* parent, Run* run);
void AddEvaluate(CommandLine* parent, Run* run);
void AddReport(CommandLine* parent, Run* run);
void AddKnobs(CommandLine* parent, Run* run);
void AddEnv(CommandLine* parent, Run* run);
// Below `env`.
void AddEnvCheck(CommandLine* env, Run* run);
void AddEnvPlan(CommandLine* env, Run* run);
void AddEnvTune(CommandLine* env, Run* run);
void AddDoctor(CommandLine* parent, Run* run);
void AddLogs(CommandLine* parent, Run* run);
void AddWatch(CommandLine* parent, Run* run);
void AddProxy(CommandLine* parent, Run* run);
void AddMan(CommandLine* parent, Run* run);
void AddCompletion(CommandLine* parent, Run* run);

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
