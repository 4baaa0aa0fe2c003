#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/root_fs.h"
#include "base/status.h"

namespace diapason::host {

// The purpose of a thread, from its name. NCCL and RCCL name theirs with NCCL_SET_THREAD_NAME=1
// only; without it they inherit the name of the starting thread, and are kOther here.
enum class ThreadRole : uint8_t {
  kOther,
  kProgress,  // "NCCL Progress 0": moves the data of network and proxied transports
  kService,   // "NCCL Service 0": serves requests of other ranks for connections and memory
  kUds,       // "NCCL UDS Service"
  kIbAsync,   // "NCCL IbAsync 0"
  kSocket,    // "NCCL Sock..." helpers
  kBootstrap,
  kRas,
  kDiapason,  // the plugin's own
};
ThreadRole RoleOfThread(const std::string& name);
std::string_view ThreadRoleName(ThreadRole role);

// Counters since the thread or process began.
struct ThreadSample {
  pid_t tid = 0;
  uint64_t start_ticks = 0;  // distinguishes a thread from a later one with the same id
  std::string name;
  ThreadRole role = ThreadRole::kOther;
  char state = '?';
  double user_s = 0;
  double system_s = 0;
  bool has_wait = false;     // the kernel tells wait_s
  double wait_s = 0;         // runnable, but without a CPU
  uint64_t voluntary = 0;    // context switches: it waited, for example for a lock
  uint64_t involuntary = 0;  // it was preempted
  int last_cpu = -1;
  std::string allowed_cpus;
  // The kernel function it sleeps in, "futex_wait_queue", or the system call, "futex"; "" if it
  // runs, or is unknown.
  std::string waits_in;
};

struct ProcessSample {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';          // 'Z': a zombie
  uint64_t start_ticks = 0;  // distinguishes a process from a later one with the same id
  double time_s = 0;         // steady clock
  std::string name;
  uint64_t resident = 0;  // bytes
  uint64_t virtual_size = 0;
  uint64_t anonymous = 0;
  uint64_t shared_memory = 0;
  uint64_t locked = 0;
  uint64_t pinned = 0;  // for devices, such as registered memory of RDMA
  uint64_t swapped = 0;
  uint64_t major_faults = 0;
  int open_files = 0;
  std::vector<ThreadSample> threads;
};

// Whether a thread waits in user space for a lock, a condition variable or another thread.
bool WaitsInFutex(const ThreadSample& thread);

// One sample of /proc/PID. kNotFound if there is no such process, kUnavailable if reading it is not
// permitted.
Result<ProcessSample> SampleProcess(const RootFs& tree, pid_t pid);

// Only a thread's current state and what it waits in. False: it has ended.
bool PeekThread(const RootFs& tree, pid_t pid, ThreadSample* thread);

// A mapped shared library, with its memory.
struct MappedFile {
  std::string path;
  bool deleted = false;   // replaced on the disk since
  uint64_t resident = 0;  // 0 if smaps cannot be read
};
Result<std::vector<MappedFile>> MappedLibraries(const RootFs& tree, pid_t pid);

// The initial environment of a process (later changes are not visible).
Result<MapEnvironment> EnvironmentOf(const RootFs& tree, pid_t pid);

// The processes and all their descendants, parents first; at most `most` of them.
std::vector<pid_t> WithDescendants(const RootFs& tree, const std::vector<pid_t>& roots,
                                   size_t most = 4096);

}  // namespace diapason::host
