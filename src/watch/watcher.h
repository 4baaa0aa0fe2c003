#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/process.h"
#include "watch/counters.h"
#include "watch/journal_tail.h"
#include "watch/rates.h"

namespace diapason::watch {

// The number of samples from which the growth of memory is shown: at the start of a process, or
// with two samples alone, it is not meaningful.
inline constexpr size_t kLeastGrowthLooks = 5;

// One process between the last two samples.
struct ProcessView {
  host::ProcessSample now;
  bool ended = false;
  bool first = true;  // there is one sample only: no rates yet
  ProcessRate rate;
  int rank = -1;            // from its launcher's variables; -1: unknown
  bool names_off = false;   // it uses NCCL or RCCL, and was started without NCCL_SET_THREAD_NAME=1
  double growth = 0;        // bytes of resident memory per minute, over the kept samples
  double growth_since = 0;  // seconds they span; 0: not known yet
  size_t growth_looks = 0;  // their number; see kLeastGrowthLooks
  // nullptr if it has no journal. `operations_per_s` and the others are since the last sample.
  std::shared_ptr<JournalTail> journal;
  bool journal_read = false;
  double operations_per_s = 0;
  double runs_per_s = 0;
  double rewards_per_s = 0;
};

// The state of all processes at one time.
struct WatchView {
  double time_s = 0;   // steady clock
  double seconds = 0;  // since the last sample; 0 at the first
  std::vector<ProcessView> processes;
  struct Net {
    std::string of;  // "all processes here", or the namespace's process
    std::vector<NetRate> rates;
  };
  std::vector<Net> nets;
  std::vector<NetRate> rdma;
  std::vector<std::string> notes;  // what could not be read, and why; without duplicates
  size_t alive = 0;
};

// Samples processes repeatedly, without changing them.
class Watcher {
 public:
  struct Options {
    std::vector<pid_t> pids;
    bool children = false;  // include all descendants, looked up at each sample
    // Replaces the journals that the processes name, in their order.
    std::vector<std::string> journals;
    size_t kept_looks = 300;  // for the growth of memory
  };
  Watcher(RootFs tree, Options options) : tree_(std::move(tree)), options_(std::move(options)) {}

  // Fails at the first sample if one of the given processes does not exist, or none may be read.
  Result<WatchView> Look();
  // Watches further processes from the next sample on.
  void Include(const std::vector<pid_t>& pids) { included_ = pids; }
  // A quick sample in between: only where the named threads and the main thread wait.
  void Peek();

 private:
  struct State {
    host::ProcessSample last;
    bool known = false;
    bool ended = false;
    bool told = false;  // that it has ended
    int rank = -1;
    bool names_on = true;  // NCCL_SET_THREAD_NAME
    bool library = false;  // of NCCL or RCCL, is mapped
    FutexByThread futex;
    std::deque<std::pair<double, uint64_t>> resident;
    std::shared_ptr<JournalTail> journal;
    bool journal_known = false;
    JournalTail::Counts counted;
  };

  void Gather();
  void Meet(pid_t pid, State* state);
  ProcessView LookAt(pid_t pid, State* state);
  void LookAtJournal(State* state, ProcessView* view);
  void LookAtNets(WatchView* view);
  void Note(const std::string& text);

  const RootFs tree_;
  const Options options_;
  double last_s_ = 0;
  std::vector<pid_t> included_;
  std::vector<pid_t> order_;
  std::map<pid_t, State> states_;
  std::map<std::string, std::vector<NetCounters>> nets_;
  std::vector<NetCounters> rdma_;
  std::vector<std::string> notes_;
};

}  // namespace diapason::watch
