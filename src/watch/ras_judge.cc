#include "watch/ras_judge.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::watch {
namespace {

constexpr size_t kKeptGaps = 8;

// Whether a count is higher than it was; the first known count is no advance.
bool Advanced(const std::vector<uint64_t>& before, const std::vector<uint64_t>& now,
              size_t* function) {
  bool advanced = false;
  for (size_t i = 0; i < now.size() && i < before.size(); ++i) {
    if (now[i] == kUnknownCount || before[i] == kUnknownCount || now[i] == before[i]) continue;
    advanced = true;
    *function = i;
  }
  return advanced;
}

bool IsLocal(const std::string& host, const std::vector<std::string>& local_hosts) {
  return host.empty() ||
         std::find(local_hosts.begin(), local_hosts.end(), host) != local_hosts.end();
}

}  // namespace

void RasJudge::SeeProcesses(double now_s, const std::vector<LocalRank>& locals) {
  for (const LocalRank& local : locals) {
    Process& process = processes_[local.process.pid];
    process.process = local.process;
    const bool stopped = local.state == 'T' || local.state == 't';
    if (!stopped) process.stopped_since_s = -1;
    if (stopped && process.stopped_since_s < 0) process.stopped_since_s = now_s;
    if (Ended(local.state) && process.ended_s < 0) process.ended_s = now_s;
    process.state = local.state;
  }
}

const RasJudge::Process* RasJudge::ProcessOf(const Rank& rank) const {
  const auto found = processes_.find(rank.local);
  return rank.local == 0 || found == processes_.end() ? nullptr : &found->second;
}

// By the number in its own PID namespace, which several ranks may share: then by the rank that its
// launcher gave it, which is that of a communicator of all ranks.
pid_t RasJudge::FindLocal(const RasRank& rank, int size,
                          const std::vector<std::string>& hosts) const {
  if (!IsLocal(rank.host, hosts)) return 0;
  pid_t by_pid = 0;
  pid_t by_rank = 0;
  size_t same_pid = 0;
  for (const auto& [pid, process] : processes_) {
    const bool pid_fits = rank.pid < 0 || process.process.inner_pid == rank.pid;
    if (!pid_fits) continue;
    by_pid = pid;
    ++same_pid;
    if (process.process.rank == rank.rank && process.process.world == size) by_rank = pid;
  }
  if (by_rank != 0) return by_rank;
  return same_pid == 1 && rank.pid >= 0 ? by_pid : 0;
}

void RasJudge::SeeRank(double now_s, const RasRank& seen, const std::vector<std::string>& hosts,
                       Comm* comm) {
  const auto [place, added] = comm->ranks.try_emplace(seen.rank);
  Rank& rank = place->second;
  if (added) rank.advanced_s = now_s;
  // An answer about a missing rank may know less than the one before.
  const std::string host = seen.host.empty() ? rank.last.host : seen.host;
  const int pid = seen.pid < 0 ? rank.last.pid : seen.pid;
  rank.last = seen;
  rank.last.host = host;
  rank.last.pid = pid;
  if (rank.local == 0) rank.local = FindLocal(rank.last, comm->size, hosts);
  const bool absent =
      seen.absence == RasAbsence::kUnresponsive || seen.absence == RasAbsence::kDead;
  rank.absences = absent ? rank.absences + 1 : 0;
  if (!absent) rank.absent_since_s = -1;
  if (absent && rank.absent_since_s < 0) rank.absent_since_s = now_s;
  rank.advances = false;
  if (seen.counts.empty()) return;
  size_t function = SIZE_MAX;
  if (Advanced(rank.counts, seen.counts, &function)) {
    rank.advanced_s = now_s;
    rank.ever_advanced = true;
    rank.advances = true;
    comm->function = function;
  }
  rank.counts = seen.counts;
}

void RasJudge::SeeAnswer(double now_s, const RasAnswer& answer,
                         const std::vector<std::string>& local_hosts) {
  json_ = answer.json;
  // Another order of the functions would mix up the counts.
  const size_t known = std::min(functions_.size(), answer.functions.size());
  if (!std::equal(functions_.begin(), functions_.begin() + static_cast<ptrdiff_t>(known),
                  answer.functions.begin())) {
    comms_.clear();
  }
  functions_ = answer.functions;
  std::map<std::string, Comm> seen;
  size_t index = 0;
  for (const RasCommunicator& communicator : answer.communicators) {
    const std::string key = communicator.hash.empty() ? Format("#{}", index) : communicator.hash;
    ++index;
    if (seen.contains(key)) continue;
    Comm& comm = seen[key];
    if (const auto before = comms_.find(key);
        before != comms_.end() && before->second.size == communicator.size) {
      comm = before->second;
    } else {
      comm.advanced_s = now_s;
    }
    comm.hash = communicator.hash;
    comm.size = communicator.size;
    for (const RasRank& rank : communicator.ranks) SeeRank(now_s, rank, local_hosts, &comm);
    const bool advanced = std::any_of(comm.ranks.begin(), comm.ranks.end(),
                                      [](const auto& rank) { return rank.second.advances; });
    // A pause in which a rank was absent or stopped is not one of a healthy job.
    comm.troubled |= std::any_of(comm.ranks.begin(), comm.ranks.end(), [this](const auto& rank) {
      const Process* process = ProcessOf(rank.second);
      return rank.second.absences > 0 || (process != nullptr && process->stopped_since_s >= 0);
    });
    if (advanced && comm.answers > 1 && !comm.troubled) {
      comm.gaps.push_back(now_s - comm.advanced_s);
      if (comm.gaps.size() > kKeptGaps) comm.gaps.pop_front();
    }
    if (advanced) {
      comm.advanced_s = now_s;
      comm.troubled = false;
    }
    comm.still = advanced || comm.answers == 0 ? 0 : comm.still + 1;
    ++comm.answers;
    comm.answered_s = now_s;
  }
  for (const auto& [key, comm] : comms_) {
    if (!seen.contains(key)) SeeEnd(comm);
  }
  comms_ = std::move(seen);
}

// A communicator that the others gave up after a process of it had ended: they do so on errors. (At
// an ordinary end a communicator ends before its processes.)
void RasJudge::SeeEnd(const Comm& comm) {
  const bool ending = std::any_of(comm.ranks.begin(), comm.ranks.end(), [](const auto& rank) {
    return rank.second.last.ending && !rank.second.last.aborted;
  });
  for (const auto& [number, rank] : comm.ranks) {
    const Process* process = ProcessOf(rank);
    if (ending || process == nullptr || process->ended_s < 0) continue;
    if (comm.answered_s > process->ended_s) processes_[rank.local].abandoned = true;
  }
}

std::vector<CommunicatorView> RasJudge::View(double now_s, const RasVerdict& verdict) const {
  std::vector<CommunicatorView> views;
  for (const auto& [key, comm] : comms_) {
    CommunicatorView view;
    view.hash = comm.hash;
    view.size = comm.size;
    for (const auto& [number, rank] : comm.ranks) {
      RankView shown;
      shown.rank = number;
      shown.host = rank.last.host;
      shown.pid = rank.last.pid;
      shown.local_pid = rank.local;
      shown.absence = rank.last.absence;
      shown.async_error = rank.last.async_error;
      shown.absent_s = rank.absent_since_s < 0 ? 0 : now_s - rank.absent_since_s;
      shown.counts = rank.counts;
      shown.advances = rank.advances;
      if (const Process* process = ProcessOf(rank)) shown.state = process->state;
      shown.blamed =
          IsBlame(verdict.kind) && verdict.communicator == comm.hash &&
          std::find(verdict.ranks.begin(), verdict.ranks.end(), number) != verdict.ranks.end();
      view.ranks.push_back(std::move(shown));
    }
    views.push_back(std::move(view));
  }
  std::stable_sort(views.begin(), views.end(),
                   [](const auto& a, const auto& b) { return a.size > b.size; });
  return views;
}

}  // namespace diapason::watch
