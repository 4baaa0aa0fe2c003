// Present and missing ranks, and where ranks stopped.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "logs/diagnose.h"

namespace diapason::logs {
namespace {

std::string Name(const LoggedComm& communicator) {
  if (communicator.id == 0) {
    return Format("a communicator of {} ranks", communicator.ranks);
  }
  return Format("communicator 0x{:x}", communicator.id);
}

// It must have completed its initialisation, whatever lines were lost.
bool Alive(const CommRank& member) { return member.complete || member.used || member.ended; }

void Duplicates(const LogFacts& facts, const LoggedComm& communicator,
                std::vector<Finding>* findings) {
  for (size_t i = 1; i < communicator.members.size(); ++i) {
    const CommRank& a = facts.members[communicator.members[i - 1]];
    const CommRank& b = facts.members[communicator.members[i]];
    if (a.rank < 0 || a.rank != b.rank || a.process == b.process || a.ended || b.ended) continue;
    findings->push_back({"rank.twice",
                         Severity::kError,
                         Format("Two processes are rank {} of {}", a.rank, Name(communicator)),
                         {facts.Where(a.start) + ": " + facts.ProcessText(a.process),
                          facts.Where(b.start) + ": " + facts.ProcessText(b.process)},
                         "look at how the launcher hands out RANK; a process left over from an "
                         "earlier job does this too"});
    return;
  }
}

// Two GPUs with the same bus number on one host.
void SharedGpus(const LogFacts& facts, const LoggedComm& communicator,
                std::vector<Finding>* findings) {
  std::map<std::pair<uint32_t, uint64_t>, const CommRank*> seen;
  for (const uint32_t index : communicator.members) {
    const CommRank& member = facts.members[index];
    if (member.bus_id == 0 || member.ended) continue;
    const std::pair<uint32_t, uint64_t> key(facts.processes[member.process].host, member.bus_id);
    const auto [other, fresh] = seen.emplace(key, &member);
    if (fresh || other->second->rank == member.rank) continue;
    // With a NCCL_HOSTID for each process the library permits it: it is intentional.
    const bool wanted =
        std::any_of(facts.variables.begin(), facts.variables.end(),
                    [](const Variable& variable) { return variable.name == "NCCL_HOSTID"; });
    findings->push_back(
        {"rank.duplicate-gpu",
         wanted ? Severity::kNote : Severity::kError,
         Format("Ranks {} and {} of {} use the same GPU (bus {:x}) of host {}", other->second->rank,
                member.rank, Name(communicator), member.bus_id, facts.hosts[key.first]),
         {facts.Where(other->second->start), facts.Where(member.start)},
         wanted ? "fine for a test: NCCL_HOSTID makes the library take them for different hosts"
                : "give every rank a GPU of its own"});
    return;
  }
}

// The line that says that all ranks of a host write into one file; null if they do not.
const SourceLine* SharedLogFile(const LogFacts& facts) {
  const bool several = std::any_of(facts.communicators.begin(), facts.communicators.end(),
                                   [](const LoggedComm& one) { return one.ranks > 1; });
  if (!several) return nullptr;
  for (const Variable& variable : facts.variables) {
    if (variable.name != "NCCL_DEBUG_FILE") continue;
    for (size_t i = 0; i < variable.places.size(); ++i) {
      const std::string& value = variable.values[static_cast<uint32_t>(i)];
      if (value.find("%p") == std::string::npos && !value.starts_with("std")) {
        return &variable.places[i];
      }
    }
  }
  return nullptr;
}

void Incomplete(const LogFacts& facts, const LoggedComm& communicator,
                std::vector<Finding>* findings) {
  std::vector<int64_t> stuck;
  std::vector<int64_t> missing;
  std::vector<std::string> evidence;
  size_t alive = 0;
  int64_t next = 0;
  for (const uint32_t index : communicator.members) {
    const CommRank& member = facts.members[index];
    if (Alive(member)) {
      ++alive;
    } else if (member.started) {
      stuck.push_back(member.rank);
      if (evidence.size() < 3) {
        evidence.push_back(facts.Where(member.start) + ": " + facts.ProcessText(member.process) +
                           " began and did not finish");
      }
    }
    for (; next < member.rank && missing.size() < 65536; ++next) missing.push_back(next);
    next = std::max<int64_t>(next, member.rank + 1);
  }
  for (; next < communicator.ranks && missing.size() < 65536; ++next) missing.push_back(next);
  if (!stuck.empty()) {
    // Damaged lines may have been those that say "complete".
    const bool sure = facts.damaged == 0 || alive == 0;
    std::string title =
        Format("{} {} of {} began to initialise and never finished",
               stuck.size() == 1 ? "Rank" : "Ranks", RanksText(stuck), Name(communicator));
    if (!missing.empty()) {
      title +=
          Format("; ranks {} did not even begin, or their logs are not here", RanksText(missing));
    }
    if (facts.retries.count > 0) {
      title += "; connections were tried again and again: firewall, route or wrong interface";
      evidence.push_back(facts.Where(facts.retries.first));
    }
    findings->push_back(
        {"hang.init", sure ? Severity::kError : Severity::kWarning, title, evidence,
         missing.empty()
             ? "look at the last lines of these ranks: they wait for a connection; compare their "
               "interfaces (NCCL_SOCKET_IFNAME, NCCL_IB_HCA) and firewalls"
             : "look at the ranks that did not begin: the others wait for them"});
  } else if (!missing.empty() && communicator.id != 0) {
    findings->push_back({"rank.not-here",
                         Severity::kNote,
                         Format("The logs hold {} of the {} ranks of {}; missing: {}",
                                static_cast<size_t>(communicator.ranks) - missing.size(),
                                communicator.ranks, Name(communicator), RanksText(missing)),
                         {facts.Where(communicator.first)},
                         "give the logs of all ranks: what differs between them shows only then"});
  }
}

void SlowInit(const LogFacts& facts, const LoggedComm& communicator,
              std::vector<Finding>* findings) {
  const CommRank* slowest = nullptr;
  for (const uint32_t index : communicator.members) {
    const CommRank& member = facts.members[index];
    if (member.init_seconds >= 0 &&
        (slowest == nullptr || member.init_seconds > slowest->init_seconds)) {
      slowest = &member;
    }
  }
  if (slowest == nullptr || slowest->init_seconds < 20) return;
  const bool bootstrap = slowest->bootstrap_seconds > slowest->init_seconds / 2;
  findings->push_back(
      {"init.slow",
       Severity::kWarning,
       Format("Initialising {} took {:.1f} s{}", Name(communicator), slowest->init_seconds,
              bootstrap ? ", most of it to find each other" : ""),
       {facts.Where(slowest->start) + ": " + facts.ProcessText(slowest->process)},
       bootstrap ? "ranks wait for the last one to come: look at what it does before; name "
                   "resolution and a slow NCCL_SOCKET_IFNAME cost time here too"
                 : "look at the parts in the line 'Init timings'"});
}

}  // namespace

void DiagnoseRanks(const LogFacts& facts, std::vector<Finding>* findings) {
  size_t said = 0;
  const SourceLine* shared = SharedLogFile(facts);
  if (shared != nullptr) {
    findings->push_back(
        {"log.shared-file",
         Severity::kWarning,
         "All ranks of a host write into one NCCL_DEBUG_FILE, over each other: lines and whole "
         "ranks are missing here, and nothing follows from that",
         {facts.Where(*shared)},
         "give every rank a file of its own: NCCL_DEBUG_FILE=/path/nccl.%h.%p"});
  }
  for (const LoggedComm& communicator : facts.communicators) {
    if (communicator.members.empty()) continue;
    const size_t before = findings->size();
    if (communicator.other_ranks != 0) {
      findings->push_back(
          {"rank.count-differs",
           Severity::kError,
           Format("Ranks disagree about the size of {}: {} and {}", Name(communicator),
                  communicator.ranks, communicator.other_ranks),
           {facts.Where(communicator.first), facts.Where(communicator.disagreement)},
           "make every process pass the same number of ranks (WORLD_SIZE)"});
    }
    Duplicates(facts, communicator, findings);
    SharedGpus(facts, communicator, findings);
    if (shared == nullptr) Incomplete(facts, communicator, findings);
    SlowInit(facts, communicator, findings);
    said += findings->size() - before;
    if (said > 24) break;  // a thousand small communicators of one job give the same finding
  }
}

void DiagnoseOperations(const LogFacts& facts, std::vector<Finding>* findings) {
  size_t differences = 0;
  for (const Disagreement& difference : facts.disagreements) {
    const LoggedComm& communicator = facts.communicators[difference.communicator];
    if (communicator.point_to_point || differences >= 4) continue;
    ++differences;
    findings->push_back(
        {"op.mismatch",
         facts.damaged > 0 ? Severity::kWarning : Severity::kError,
         Format("Ranks {} and {} of {} called different collectives at opCount 0x{:x}",
                difference.ranks[0], difference.ranks[1], Name(communicator), difference.op_count),
         {facts.Where(difference.places[0]), facts.Where(difference.places[1])},
         "all ranks must call the same collectives with the same counts, in the same order"});
  }
  const bool lost = SharedLogFile(facts) != nullptr;  // the last calls of ranks, perhaps
  for (const LoggedComm& communicator : facts.communicators) {
    if (lost || communicator.point_to_point || communicator.members.size() < 2) continue;
    const CommRank* behind = nullptr;
    const CommRank* ahead = nullptr;
    std::vector<int64_t> late;
    bool over = false;
    for (const uint32_t index : communicator.members) {
      const CommRank& member = facts.members[index];
      over |= member.ended;
      if (member.operations == 0) continue;
      if (behind == nullptr || member.op_count < behind->op_count) behind = &member;
      if (ahead == nullptr || member.op_count > ahead->op_count) ahead = &member;
    }
    if (over || behind == nullptr || behind->op_count == ahead->op_count) continue;
    for (const uint32_t index : communicator.members) {
      const CommRank& member = facts.members[index];
      if (member.operations > 0 && member.op_count < ahead->op_count) late.push_back(member.rank);
    }
    const bool sick = facts.troubles.Any() || !facts.watchdog.ranks.empty();
    findings->push_back(
        {"op.behind",
         sick ? Severity::kError : Severity::kNote,
         Format("{} {} of {} stopped before the others: last opCount 0x{:x} ({}), the others got "
                "to 0x{:x} ({})",
                late.size() == 1 ? "Rank" : "Ranks", RanksText(late), Name(communicator),
                behind->op_count, facts.words[behind->collective], ahead->op_count,
                facts.words[ahead->collective]),
         {facts.Where(behind->last) + ": " + facts.ProcessText(behind->process),
          facts.Where(ahead->last) + ": " + facts.ProcessText(ahead->process)},
         sick ? "look at what these ranks did after that line: the others wait for them"
              : "if the job hangs, look at what these ranks did after that line"});
  }
  const ProxyTraces& traces = facts.proxy_traces;
  if (!traces.oldest.empty()) {
    const ProxyTraceOp& oldest = traces.oldest.front();
    std::string waits = "waits";
    if (oldest.status == "WAITING_GPU") waits = "waits for its own GPU";
    if (oldest.status == "SENDING") waits = "waits until the network has sent";
    if (oldest.status == "RECEIVING") waits = "waits for data of the peer";
    if (oldest.status == "POSTING" || oldest.status == "INIT") waits = "has not begun";
    if (oldest.status == "FLUSHING") waits = "waits for the flush to GPU memory";
    Finding finding;
    finding.id = "hang.proxy";
    finding.severity = Severity::kWarning;
    finding.title = Format(
        "{} proxy operations were not finished; the oldest (opCount {}, rank {} {} rank "
        "{}, channel {}, {} of {} steps done) {}",
        traces.unfinished, oldest.op_count, oldest.rank, oldest.send ? "to" : "from", oldest.peer,
        oldest.channel, oldest.done, oldest.steps, waits);
    for (size_t i = 0; i < traces.oldest.size() && i < 3; ++i) {
      finding.evidence.push_back(facts.Where(traces.oldest[i].place));
    }
    finding.action =
        "if the job hung, begin with the oldest: find the same operation in the peer's trace, and "
        "see which of the two does not move";
    findings->push_back(std::move(finding));
  }
}

}  // namespace diapason::logs
