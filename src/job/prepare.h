#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/status.h"
#include "base/temporary_file.h"
#include "cell_server/served_store.h"
#include "domain/finding.h"
#include "host/job_library.h"
#include "job/command.h"
#include "job/hand_over.h"
#include "policy/policy.h"

namespace diapason::job {

enum class JobMode : uint8_t {
  kStatic,
  kLearn,
  kCompare,
  kObserve,
  kTune,  // orders of this program say what runs (agree::OrderLog)
};
std::string_view JobModeName(JobMode mode);  // as DIAPASON_MODE has it
// Whether the ranks agree on every call while they run, and need a store for it.
inline bool AgreesOnCalls(JobMode mode) {
  return mode == JobMode::kLearn || mode == JobMode::kCompare || mode == JobMode::kTune;
}

// Which collectives a job is about.
enum class JobKind : uint8_t {
  kDetect,  // those of MPI if the program shows it (IsMpiProgram), else those of NCCL or RCCL
  kNccl,    // NCCL's or RCCL's: the plugin
  kMpi,     // MPI's: the recorder, and rules for Open MPI
};

// What a user wants of a job.
struct JobRequest {
  std::vector<std::string> command;
  JobKind kind = JobKind::kDetect;
  JobMode mode = JobMode::kStatic;  // of an MPI program: kStatic or kObserve
  std::string policy;               // a file; "": what the environment names, if anything
  std::string learned;  // where kLearn keeps its result; "": DIAPASON_LEARNED, else kLearnedFile
  std::string journal_dir;              // "": a folder of its own, which is removed
  std::string store;                    // "": DIAPASON_STORE; see ChooseStore
  std::string job;                      // its name in the store; "": as the launcher has it
  std::vector<RankVariable> variables;  // further ones, which win over those that are set here
  bool dry_run = false;                 // nothing is created
};
inline constexpr char kLearnedFile[] = "diapason-learned.conf";

// A job that is ready to be started, with everything that is known about it beforehand.
struct PreparedJob {
  JobCommand command;
  JobMode mode = JobMode::kStatic;
  bool mpi = false;          // an MPI program: its recordings are in the place of journals
  std::string plugin;        // its file; of an MPI program, the recorder
  host::JobLibrary library;  // that the job will probably use; no file: none is found
  std::string policy_name;   // a file or a variable; "": none
  std::optional<policy::Policy> policy;
  std::map<int, std::string> evidence;  // what the policy's file says of its rows, by their lines
  std::string learned;                  // "" unless learning
  std::string learned_before;           // its text before the run
  std::string journal_dir;
  std::string journal_stem;  // the journals of this run are the files that begin with it
  std::vector<RankVariable> variables;
  HandedOver handed;
  // Worst first. An error: what is set would not be read, so the job is not to be started.
  std::vector<Finding> findings;
  std::shared_ptr<TemporaryFolder> own_folder;  // of the journals, if none was named
  // The store in which the ranks agree, if this process serves it: until the job has ended.
  std::shared_ptr<cell_server::ServedStore> served_store;

  // Every journal of the run that there is now, sorted.
  std::vector<std::string> Journals() const;
  // The value of a variable that is set for the ranks; "" for another one.
  std::string Variable(const std::string& name) const;
};

// Determines what has to be set, checks that it will be read, and writes it into the command line
// and the environment. Loads our plugin (dlopen) and may run `mpirun --version`. Fails where the
// request itself is wrong: a policy that cannot be used, a folder that cannot be written.
Result<PreparedJob> Prepare(const JobRequest& request, const Environment& environment);

// The text "verified: ..." or "learned: ..." in front of the rows of a policy file, by line.
std::map<int, std::string> EvidenceIn(const std::string& text);

}  // namespace diapason::job
