#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/root_fs.h"
#include "base/status.h"

namespace diapason::host {

// What a thread is for, from its name. NCCL and RCCL name theirs with NCCL_SET_THREAD_NAME=1 only;
// without it they have the name of the thread that started them, and are kOther here.
enum class ThreadRole : uint8_t {
  kOther,
  kProgress,  // "NCCL Progress 0": moves the data of network and proxied transports
  kService,   // "NCCL Service 0": answers requests of other ranks for connections and memory
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
  uint64_t start_ticks = 0;  // tells a thread from a later one with the same number
  std::string name;
  ThreadRole role = ThreadRole::kOther;
  char state = '?';
  double user_s = 0;
  double system_s = 0;
  bool has_wait = false;     // the kernel tells wait_s
  double wait_s = 0;         // runnable, but without a CPU
  uint64_t voluntary = 0;    // context switches: it waited for something, a lock among them
  uint64_t involuntary = 0;  // it was pushed off its CPU
  int last_cpu = -1;
  std::string allowed_cpus;
  // The kernel function it sleeps in, "futex_wait_queue", or the system call, "futex"; "" where it
  // runs, or nobody tells.
  std::string waits_in;
};

struct ProcessSample {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';          // 'Z': it has ended, and nobody has asked how
  uint64_t start_ticks = 0;  // tells a process from a later one with the same number
  double time_s = 0;         // steady clock
  std::string name;
  uint64_t resident = 0;  // bytes
  uint64_t virtual_size = 0;
  uint64_t anonymous = 0;
  uint64_t shared_memory = 0;
  uint64_t locked = 0;
  uint64_t pinned = 0;  // for devices, as registered memory of RDMA is
  uint64_t swapped = 0;
  uint64_t major_faults = 0;
  int open_files = 0;
  std::vector<ThreadSample> threads;
};

// Whether a thread waits for a lock, a condition or another thread, in user space.
bool WaitsInFutex(const ThreadSample& thread);

// One look at /proc/PID. kNotFound when there is no such process, kUnavailable when we may not
// look.
Result<ProcessSample> SampleProcess(const RootFs& tree, pid_t pid);

// Only where a thread is at this moment: its state and what it waits in. False: it has ended.
bool PeekThread(const RootFs& tree, pid_t pid, ThreadSample* thread);

// A shared library that is mapped, with the memory it takes.
struct MappedFile {
  std::string path;
  bool deleted = false;   // replaced on the disk since
  uint64_t resident = 0;  // 0 where smaps cannot be read
};
Result<std::vector<MappedFile>> MappedLibraries(const RootFs& tree, pid_t pid);

// The environment a process was started with (what it changed since cannot be seen).
Result<MapEnvironment> EnvironmentOf(const RootFs& tree, pid_t pid);

// A process and all that it started, and those started, parents first; at most `most` of them.
std::vector<pid_t> WithDescendants(const RootFs& tree, const std::vector<pid_t>& roots,
                                   size_t most = 4096);

}  // namespace diapason::host
