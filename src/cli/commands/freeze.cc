#include "agree/freeze.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "agree/job.h"
#include "agree/store.h"
#include "base/environment.h"
#include "base/settings.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"

namespace diapason::cli {
namespace {

struct FreezeOptions {
  std::string job;
  std::string store;
  bool json = false;
};

// The store's error message, followed by the jobs that the store has.
Status NoSuchJob(const Status& status, const std::string& where) {
  if (status.code() != ErrorCode::kNotFound) return status;
  const std::vector<std::string> jobs = agree::JobsIn(where);
  if (jobs.empty()) return status;
  return Status::Error(status.code(), status.message() + "; there are: " + Join(jobs, ", "));
}

Result<int> SetFrozen(const FreezeOptions& options, bool frozen) {
  const Settings settings = Settings::Read(ProcessEnvironment());
  agree::StoreOptions wanted;
  wanted.where = !options.store.empty()            ? options.store
                 : settings.IsSet(Setting::kStore) ? settings.Text(Setting::kStore)
                                                   : "shm";
  wanted.job = options.job.empty() ? agree::JobIdentity(ProcessEnvironment()) : options.job;
  wanted.existing_only = true;
  const Result<std::unique_ptr<agree::CellStore>> store = agree::OpenStore(wanted);
  if (!store.ok()) return NoSuchJob(store.status(), wanted.where);
  ASSIGN_OR_RETURN(const bool changed, agree::FreezeLog(store.value().get()).Set(frozen));
  const char* state = frozen ? "frozen" : "thawed";
  if (options.json) {
    const nlohmann::ordered_json whole{{"job", wanted.job}, {"state", state}, {"changed", changed}};
    PrintOut("{}\n", JsonText(whole));
  } else if (!changed) {
    PrintOut("job {} is {} already\n", wanted.job, state);
  } else {
    PrintOut("job {} is {}: {}\n", wanted.job, state,
             frozen ? "exploration stops with the first epoch that is not agreed yet"
                    : "exploration continues");
  }
  return kExitFine;
}

void AddOne(CommandLine* parent, CommandAction* run, bool frozen) {
  auto options = std::make_shared<FreezeOptions>();
  CommandLine* command =
      frozen ? parent->AddCommand("freeze",
                                  "Stop the exploration of a running job that learns, on all ranks")
             : parent->AddCommand("thaw", "Let a frozen job explore configurations again");
  command->AddOption("JOB", options->job, "Name of the job in the store")
      ->Default("the job id from DIAPASON_JOB, Slurm, torchrun or Open MPI");
  command->AddOption("--store", options->store, "Store of the job, in the syntax of DIAPASON_STORE")
      ->Default("DIAPASON_STORE, else shm");
  command->AddJson(options->json);
  if (frozen) {
    command->Describe(
        "All ranks continue with the best configuration known so far. Epochs that the ranks have "
        "agreed on already still run: one epoch of a context that explores, up to two minutes of a "
        "context that has settled. The job must run as the same user and share the store with this "
        "machine.");
    command->Example("diapason freeze 4711",
                     "Freeze the Slurm job 4711, whose store is in shared memory");
    command->Example("diapason freeze mine --store redis://head",
                     "Freeze a job that spans several hosts");
  } else {
    command->Example("diapason thaw 4711", "Resume the exploration of the Slurm job 4711");
  }
  command->ExitStatus(kExitFailed, "the job does not exist, or its store cannot be reached");
  command->SeeAlso({frozen ? "thaw" : "freeze", "journal"});
  command->Callback(
      [options, run, frozen] { *run = [options, frozen] { return SetFrozen(*options, frozen); }; });
}

}  // namespace

void AddFreeze(CommandLine* parent, CommandAction* run) {
  AddOne(parent, run, true);
  AddOne(parent, run, false);
}

}  // namespace diapason::cli
