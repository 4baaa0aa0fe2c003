#include "watch/watcher.h"

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/text.h"
#include "watch/job_processes.h"

namespace diapason::watch {
namespace {

constexpr size_t kMostPeeked = 64;  // threads of one process
constexpr size_t kMostNotes = 32;

void CountLook(const host::ThreadSample& thread, FutexByThread* futex) {
  FutexLooks& looks = (*futex)[thread.tid];
  ++looks.looks;
  looks.told += thread.state == 'R' || !thread.waits_in.empty() ? 1 : 0;
  looks.futex += host::WaitsInFutex(thread) ? 1 : 0;
}

double Rate(uint64_t before, uint64_t now, double seconds) {
  return now > before && seconds > 0 ? static_cast<double>(now - before) / seconds : 0;
}

}  // namespace

void Watcher::Note(const std::string& text) {
  if (notes_.size() < kMostNotes && std::find(notes_.begin(), notes_.end(), text) == notes_.end()) {
    notes_.push_back(text);
  }
}

// Reads the constant properties of a process.
void Watcher::Meet(pid_t pid, State* state) {
  state->known = true;
  const Result<MapEnvironment> environment = host::EnvironmentOf(tree_, pid);
  if (!environment.ok()) {
    if (environment.status().code() == ErrorCode::kUnavailable)
      Note(environment.status().message());
  } else {
    state->rank = RankInEnvironment(environment.value());
    state->names_on = environment.value().Get("NCCL_SET_THREAD_NAME").value_or("") == "1";
  }
  std::string path;
  const auto place = std::find(order_.begin(), order_.end(), pid);
  if (!options_.journals.empty()) {
    const auto index = static_cast<size_t>(place - order_.begin());
    if (index < options_.journals.size()) path = options_.journals[index];
  } else if (environment.ok()) {
    path = JournalOf(tree_, pid, environment.value());
  }
  if (!path.empty()) state->journal = std::make_shared<JournalTail>(path);
}

void Watcher::LookAtJournal(State* state, ProcessView* view) {
  if (state->journal == nullptr) return;
  view->journal = state->journal;
  view->journal_read = state->journal->Poll();
  if (!view->journal_read) return;
  const JournalTail::Counts& counts = state->journal->counts();
  // At the first sample all existing records are old.
  if (state->journal_known && counts.restarts == state->counted.restarts && !view->first) {
    view->operations_per_s =
        Rate(state->counted.operations(), counts.operations(), view->rate.seconds);
    view->runs_per_s = Rate(state->counted.runs, counts.runs, view->rate.seconds);
    view->rewards_per_s = Rate(state->counted.rewards, counts.rewards, view->rate.seconds);
  }
  state->counted = counts;
  state->journal_known = true;
}

ProcessView Watcher::LookAt(pid_t pid, State* state) {
  ProcessView view;
  Result<host::ProcessSample> sample = host::SampleProcess(tree_, pid);
  const bool met = state->known;
  if (!sample.ok() && sample.status().code() != ErrorCode::kNotFound) {
    Note(sample.status().message());
  }
  // A process with the same pid that started later is another process.
  if (!sample.ok() || sample.value().state == 'Z' || sample.value().state == 'X' ||
      (met && sample.value().start_ticks != state->last.start_ticks)) {
    state->ended = true;
  } else {
    view.now = std::move(sample).value();
    if (!met) Meet(pid, state);
    for (const host::ThreadSample& thread : view.now.threads) CountLook(thread, &state->futex);
    view.first = !met;
    if (met) view.rate = RatesOf(state->last, view.now, state->futex);
    state->futex.clear();
    state->last = view.now;
    state->resident.emplace_back(view.now.time_s, view.now.resident);
    if (state->resident.size() > options_.kept_looks) state->resident.pop_front();
    const auto& [since, was] = state->resident.front();
    view.growth_since = view.now.time_s - since;
    view.growth_looks = state->resident.size();
    if (view.growth_since > 0) {
      view.growth = (static_cast<double>(view.now.resident) - static_cast<double>(was)) /
                    view.growth_since * 60;
    }
  }
  view.ended = state->ended;
  if (view.ended) {
    view.now = state->last;
    view.now.pid = pid;
    view.now.threads.clear();
  }
  view.rank = state->rank;
  // The library may be loaded at any time.
  if (!state->names_on && !state->library && !view.ended) {
    state->library = MapsCollectiveLibrary(tree_, pid);
  }
  view.names_off = !state->names_on && state->library;
  LookAtJournal(state, &view);
  return view;
}

void Watcher::LookAtNets(WatchView* view) {
  std::set<std::string> seen;
  const std::string own = tree_.Link("/proc/self/ns/net").value_or("");
  for (const ProcessView& process : view->processes) {
    if (process.ended) continue;
    std::string space = NetNamespaceOf(tree_, process.now.pid);
    if (space.empty()) space = Format("process {}", static_cast<int>(process.now.pid));
    if (!seen.insert(space).second) continue;
    std::vector<NetCounters> counters = InterfacesOf(tree_, process.now.pid);
    WatchView::Net net;
    net.of = space == own
                 ? "this host"
                 : Format("network namespace of process {}", static_cast<int>(process.now.pid));
    const auto before = nets_.find(space);
    if (before != nets_.end()) net.rates = NetRates(before->second, counters, view->seconds);
    nets_[space] = std::move(counters);
    view->nets.push_back(std::move(net));
  }
  std::vector<NetCounters> ports = RdmaPorts(tree_);
  if (last_s_ > 0) view->rdma = NetRates(rdma_, ports, view->seconds);
  rdma_ = std::move(ports);
}

// Updates the list of processes. Children come and go; one that has ended is reported once.
void Watcher::Gather() {
  std::erase_if(order_, [this](pid_t pid) {
    const bool asked =
        std::find(options_.pids.begin(), options_.pids.end(), pid) != options_.pids.end();
    if (asked || !states_[pid].told) return false;
    states_.erase(pid);
    return true;
  });
  std::vector<pid_t> pids = options_.pids;
  pids.insert(pids.end(), included_.begin(), included_.end());
  if (options_.children) {
    pids.insert(pids.end(), order_.begin(), order_.end());
    pids = host::WithDescendants(tree_, pids);
  }
  for (const pid_t pid : pids) {
    if (states_.try_emplace(pid).second) order_.push_back(pid);
  }
}

Result<WatchView> Watcher::Look() {
  WatchView view;
  view.time_s = SteadySeconds();
  view.seconds = last_s_ > 0 ? std::max(view.time_s - last_s_, 1e-3) : 0;
  Gather();
  for (const pid_t pid : order_) {
    State& state = states_[pid];
    if (last_s_ == 0) {
      const Result<host::ProcessSample> there = host::SampleProcess(tree_, pid);
      const bool asked =
          std::find(options_.pids.begin(), options_.pids.end(), pid) != options_.pids.end();
      const bool missing = !there.ok() && there.status().code() == ErrorCode::kNotFound;
      // A child may have ended since it was found; a process given by the user never existed.
      if (!there.ok() && (order_.size() == 1 || (asked && missing))) return there.status();
    }
    ProcessView process = LookAt(pid, &state);
    if (!state.known && state.ended) Note(Format("there is no process {}", static_cast<int>(pid)));
    view.alive += process.ended ? 0 : 1;
    state.told |= process.ended;
    view.processes.push_back(std::move(process));
  }
  if (last_s_ == 0 && view.alive == 0) return NotFound("none of these processes is running");
  LookAtNets(&view);
  view.notes = notes_;
  last_s_ = view.time_s;
  return view;
}

void Watcher::Peek() {
  for (auto& [pid, state] : states_) {
    if (state.ended || !state.known) continue;
    size_t peeked = 0;
    for (const host::ThreadSample& thread : state.last.threads) {
      if (thread.role == host::ThreadRole::kOther && thread.tid != pid) continue;
      if (++peeked > kMostPeeked) break;
      host::ThreadSample quick = thread;
      if (host::PeekThread(tree_, pid, &quick)) CountLook(quick, &state.futex);
    }
  }
}

}  // namespace diapason::watch
