#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace CLI {
class App;
}

namespace diapason::cli {

// Exit statuses of every command; `diapason --help` lists them.
inline constexpr int kExitFine = 0;
inline constexpr int kExitFailed = 1;  // the input is wrong, or something is not there
inline constexpr int kExitUsage = 2;   // the command line is wrong

// Each command has a file of its own with one such function: it declares its options on `parent`
// and sets `*run` when the command line names it.
using Run = std::function<int()>;
void AddSettings(CLI::App* parent, Run* run);
void AddPolicy(CLI::App* parent, Run* run);
void AddAsk(CLI::App* parent, Run* run);
void AddJournal(CLI::App* parent, Run* run);
void AddBackends(CLI::App* parent, Run* run);
void AddLaunch(CLI::App* parent, Run* run);
void AddSimulate(CLI::App* parent, Run* run);
void AddBench(CLI::App* parent, Run* run);
// Below `bench`.
void AddBenchIteration(CLI::App* bench, Run* run);
void AddSweep(CLI::App* parent, Run* run);
void AddWorker(CLI::App* parent, Run* run);
void AddData(CLI::App* parent, Run* run);
void AddTrain(CLI::App* parent, Run* run);
void AddPredict(CLI::App* parent, Run* run);
void AddPlan(CLI::App* parent, Run* run);
void AddEvaluate(CLI::App* parent, Run* run);

// "diapason: error: ..." on standard error; returns kExitFailed.
int Fail(const Status& status);
// "diapason: warning: ..." on standard error.
void Warn(const std::string& text);

}  // namespace diapason::cli
