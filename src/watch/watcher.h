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

// From so many looks on the growth of memory is worth showing: a process that has just started, or
// two looks alone, make anything of it.
inline constexpr size_t kLeastGrowthLooks = 5;

// One process as it was between the last two looks.
struct ProcessView {
  host::ProcessSample now;
  bool ended = false;
  bool first = true;  // there was one look only: there are no rates yet
  ProcessRate rate;
  int rank = -1;            // as its launcher told it; -1: not told
  bool names_off = false;   // it uses NCCL or RCCL, and was started without NCCL_SET_THREAD_NAME=1
  double growth = 0;        // bytes of resident memory a minute, over the looks that are kept
  double growth_since = 0;  // seconds they span; 0: no growth is known yet
  size_t growth_looks = 0;  // how many they are; see kLeastGrowthLooks
  // nullptr where it has no journal. `operations_per_s` and the others are since the last look.
  std::shared_ptr<JournalTail> journal;
  bool journal_read = false;
  double operations_per_s = 0;
  double runs_per_s = 0;
  double rewards_per_s = 0;
};

// Everything at one look.
struct WatchView {
  double time_s = 0;   // steady clock
  double seconds = 0;  // since the last look; 0 at the first
  std::vector<ProcessView> processes;
  struct Net {
    std::string of;  // "all processes here", or whose namespace it is
    std::vector<NetRate> rates;
  };
  std::vector<Net> nets;
  std::vector<NetRate> rdma;
  std::vector<std::string> notes;  // what could not be looked at, and why; each once
  size_t alive = 0;
};

// Looks at processes again and again. Nothing is changed in them.
class Watcher {
 public:
  struct Options {
    std::vector<pid_t> pids;
    bool children = false;              // and all that they started, looked up again each time
    std::vector<std::string> journals;  // in place of those the processes name, in their order
    size_t kept_looks = 300;            // for the growth of memory
  };
  Watcher(RootFs tree, Options options) : tree_(std::move(tree)), options_(std::move(options)) {}

  // An error at the first look when one of the processes asked for is not there, or none may be
  // looked at.
  Result<WatchView> Look();
  // A quick look between two: only where the named threads and the main one wait.
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
  std::vector<pid_t> order_;
  std::map<pid_t, State> states_;
  std::map<std::string, std::vector<NetCounters>> nets_;
  std::vector<NetCounters> rdma_;
  std::vector<std::string> notes_;
};

}  // namespace diapason::watch
