
#include "cli/command.h"
#include "cli/command_line.h"

namespace diapason::cli {

void AddEnv(CommandLine* parent, Run* run) {
  CommandLine* env = parent->AddCommand(
      "env",
      "The environment variables of a job: what is wrong, what to set, what makes it faster");
  env->RequireCommand();
  AddEnvCheck(env, run);
  AddEnvPlan(env, run);
  AddEnvTune(env, run);
}

}  // namespace diapason::cli
