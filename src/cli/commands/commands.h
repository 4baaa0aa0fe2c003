#pragma once

#include "cli/framework/command.h"

namespace diapason::cli {

// Each command has one such function: it declares its options on `parent` and sets `*run` when the
// command line names the command.
void AddTune(CommandLine* parent, CommandAction* run);
void AddRun(CommandLine* parent, CommandAction* run);
void AddSettings(CommandLine* parent, CommandAction* run);
void AddPolicy(CommandLine* parent, CommandAction* run);
void AddAsk(CommandLine* parent, CommandAction* run);
void AddJournal(CommandLine* parent, CommandAction* run);
// `freeze` and `thaw`.
void AddFreeze(CommandLine* parent, CommandAction* run);
void AddServe(CommandLine* parent, CommandAction* run);
void AddBackends(CommandLine* parent, CommandAction* run);
void AddLaunch(CommandLine* parent, CommandAction* run);
void AddSimulate(CommandLine* parent, CommandAction* run);
void AddBench(CommandLine* parent, CommandAction* run);
// Below `bench`.
void AddBenchIteration(CommandLine* bench, CommandAction* run);
void AddCompare(CommandLine* parent, CommandAction* run);
void AddSweep(CommandLine* parent, CommandAction* run);
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
void AddHelp(CommandLine* parent, CommandAction* run);
void AddMan(CommandLine* parent, CommandAction* run);
void AddCompletion(CommandLine* parent, CommandAction* run);

}  // namespace diapason::cli
