
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"

namespace diapason::cli {

void AddEnv(CommandLine* parent, CommandAction* run) {
  CommandLine* env =
      parent->AddCommand("env", "Check, plan and tune the environment variables of a job");
  env->Example("diapason env check", "Find problems with the variables that are set");
  env->RequireCommand();
  env->SeeAlso({"knobs", "doctor"});
  AddEnvCheck(env, run);
  AddEnvPlan(env, run);
  AddEnvTune(env, run);
}

}  // namespace diapason::cli
