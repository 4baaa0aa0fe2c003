#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/root_fs.h"

namespace diapason::watch {

// A process that has NCCL or RCCL mapped, as far as /proc shows it.
struct JobProcess {
  pid_t pid = 0;
  pid_t inner_pid = 0;  // in its own PID namespace: the number that RAS reports
  uint64_t start_ticks = 0;
  pid_t parent = 0;
  pid_t session = 0;
  std::string name;
  int rank = -1;      // from the variables of its launcher; -1: unknown
  int world = -1;     // ranks of the job
  std::string marks;  // the variables that identify its job: "MASTER_ADDR=... ..."; "" for none
  std::string ras_address;  // NCCL_RAS_ADDR, or the default
  std::string net;          // its network namespace; "" if unknown
  std::string library;      // the file that is mapped
};

// The rank and the number of ranks that a launcher's variables say; -1: unknown.
int RankInEnvironment(const Environment& environment);
int WorldInEnvironment(const Environment& environment);

// Whether a process has NCCL or RCCL mapped; the file.
bool MapsCollectiveLibrary(const RootFs& tree, pid_t pid, std::string* file = nullptr);

// Reads one process. False if it does not exist, may not be read, or has neither library mapped.
bool ReadJobProcess(const RootFs& tree, pid_t pid, JobProcess* process);

// All such processes of this host that may be read, in the order of their numbers. Without
// launchers that have the library mapped as well (torchrun), and without the processes that a rank
// has started (workers that load data): of one rank of a job only the oldest.
std::vector<JobProcess> LibraryProcesses(const RootFs& tree);

// Whether two processes are ranks of one job: the same marks, or, without any, the same session or
// parent (the init process is no parent in this sense).
bool SameJob(const JobProcess& a, const JobProcess& b);

// The processes split into jobs, in the order of their first processes.
std::vector<std::vector<JobProcess>> SplitIntoJobs(const std::vector<JobProcess>& processes);

// The state of a process in /proc/PID/stat; 'X' if it has ended: there is none with that start.
char StateOf(const RootFs& tree, pid_t pid, uint64_t start_ticks);
// "running", "stopped", "traced", "in the kernel", "zombie", "gone"; "-" for an unknown state.
const char* StateName(char state);

}  // namespace diapason::watch
