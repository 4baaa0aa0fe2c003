#include "flight_recorder/diagnose.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "flight_recorder/causes.h"
#include "flight_recorder/describe.h"
#include "flight_recorder/read.h"
#include "flight_recorder/words.h"

namespace diapason::flight_recorder {
namespace {

constexpr size_t kMostLines = 6;       // of evidence about chains
constexpr size_t kMostShown = 3;       // ranks with a line of their own
constexpr size_t kMostMismatches = 4;  // findings

class Report {
 public:
  Report(const JobProgress& job, const WaitGraph& graph, const Causes& causes)
      : job_(job), causes_(causes), graph_(graph), say_(job, graph) {}

  std::vector<Finding> Findings() {
    size_t mismatches = 0;
    for (const Mismatch& mismatch : causes_.mismatches) {
      if (mismatch.open && ++mismatches <= kMostMismatches) AddMismatch(mismatch);
    }
    // A GPU that stopped is the reason why its rank is behind.
    const bool stuck_first = std::includes(causes_.stuck.begin(), causes_.stuck.end(),
                                           causes_.behind.begin(), causes_.behind.end());
    if (stuck_first) AddStuck();
    AddBehind();
    if (!stuck_first) AddStuck();
    for (const Deadlock& deadlock : causes_.deadlocks) AddDeadlock(deadlock);
    AddStalled();
    AddMissing();
    for (const Mismatch& mismatch : causes_.mismatches) {
      if (!mismatch.open && ++mismatches <= kMostMismatches) AddMismatch(mismatch);
    }
    AddRemarks();
    // The job went on while the dumps were written: a rank that is late was not stuck then.
    for (Finding& finding : findings_) {
      if (!causes_.older.empty() && finding.id != "flight.mismatch") {
        finding.severity = std::min(finding.severity, Severity::kWarning);
      }
    }
    return std::move(findings_);
  }

 private:
  const std::string& File(uint32_t rank) const { return job_.rank(rank).dump->name; }

  // "all other ranks wait for it", "3 of 7 other ranks wait for it".
  std::string Waiting(const std::vector<uint32_t>& roots) const {
    const std::vector<char> reached = graph_.Reach(roots);
    const auto count = static_cast<size_t>(std::count(reached.begin(), reached.end(), 1));
    const size_t waiting = count - roots.size();
    const size_t others = job_.ranks().size() - roots.size();
    const std::string whom = roots.size() == 1 ? "it" : "them";
    if (waiting == others && others > 1) return "all other ranks wait for " + whom;
    std::vector<uint32_t> ranks;
    for (uint32_t i = 0; i < reached.size(); ++i) {
      if (reached[i] != 0 && std::find(roots.begin(), roots.end(), i) == roots.end()) {
        ranks.push_back(i);
      }
    }
    return say_.Words(ranks) + (waiting == 1 ? " waits for " : " wait for ") + whom;
  }

  static std::string MismatchVerb(Mismatch::Kind kind) {
    switch (kind) {
      case Mismatch::Kind::kSize:
        return "the size differs";
      case Mismatch::Kind::kType:
        return "the type differs";
      default:
        return "the operation differs";
    }
  }

  std::string MismatchTitle(const Mismatch& mismatch) const {
    const std::string place =
        mismatch.kind == Mismatch::Kind::kPair
            ? say_.Group(mismatch.group)
            : Format("collective {} of {}", mismatch.sequence, say_.Group(mismatch.group));
    const Mismatch::Variant& most = mismatch.variants[0];
    if (mismatch.kind == Mismatch::Kind::kExchange) {
      return Format("{} do not fit in {}, {}", RankWordsUpper(say_.Ranks(most.ranks)), place,
                    most.call);
    }
    const Mismatch::Variant& odd = mismatch.variants[1];
    if (mismatch.kind == Mismatch::Kind::kPair) {
      return Format("The send of {} and the receive of {} in {} differ: {} and {}",
                    say_.Words(most.ranks), say_.Words(odd.ranks), place, most.call, odd.call);
    }
    if (mismatch.tie) {
      return Format("{} and {} differ in {}: {} and {}", RankWordsUpper(say_.Ranks(most.ranks)),
                    say_.Words(odd.ranks), place, most.call, odd.call);
    }
    std::vector<uint32_t> all_odd;
    for (size_t i = 1; i < mismatch.variants.size(); ++i) {
      const std::vector<uint32_t>& ranks = mismatch.variants[i].ranks;
      all_odd.insert(all_odd.end(), ranks.begin(), ranks.end());
    }
    const bool one = all_odd.size() == 1;
    const std::string calls = mismatch.variants.size() > 2 ? "other things" : odd.call;
    return Format("{} {} from {} in {}: {}, {} {} where {} {} {}",
                  RankWordsUpper(say_.Ranks(all_odd)), one ? "differs" : "differ",
                  say_.Words(most.ranks), place, MismatchVerb(mismatch.kind),
                  (one ? "it calls" : "they call"), calls,
                  one ? (most.ranks.size() == 1 ? "the other" : "the others") : "the others",
                  most.ranks.size() == 1 ? "calls" : "call", most.call);
  }

  void AddMismatch(const Mismatch& mismatch) {
    Finding finding;
    finding.id = "flight.mismatch";
    finding.severity = mismatch.open ? Severity::kError : Severity::kWarning;
    finding.title = MismatchTitle(mismatch);
    if (!mismatch.remark.empty()) finding.title += "; " + mismatch.remark;
    // The odd ones are what is looked for.
    for (size_t i = mismatch.variants.size(); i-- > 0 && finding.evidence.size() < kMostLines;) {
      const Mismatch::Variant& variant = mismatch.variants[i];
      finding.evidence.push_back(Format("{}: {}: {}{}", File(variant.ranks[0]),
                                        say_.Words(variant.ranks), variant.call,
                                        say_.From(*variant.entry)));
    }
    finding.action = mismatch.open
                         ? "make all ranks call the same collectives with the same sizes and "
                           "types, in the same order; the calls above show where they part"
                         : "all ranks completed it, but its result is undefined: make them call "
                           "the same";
    findings_.push_back(std::move(finding));
  }

  // Why the roots count as behind: the one group, the send that is missing, or many groups.
  std::string BehindWords() const {
    std::set<uint32_t> groups;
    const Node* only_p2p = nullptr;
    const Node* collective = nullptr;
    for (const uint32_t root : causes_.behind) {
      for (const uint32_t id : graph_.WaitFor(root)) {
        const Node& node = graph_.nodes()[id];
        groups.insert(node.group);
        if (node.from >= 0 && only_p2p == nullptr) only_p2p = &node;
        // The earliest of a group comes first.
        if (node.from < 0 && (collective == nullptr || (node.group == collective->group &&
                                                        node.sequence < collective->sequence))) {
          collective = &node;
        }
      }
    }
    const bool one = causes_.behind.size() == 1;
    if (collective == nullptr && one && only_p2p != nullptr) {
      const bool send = only_p2p->from == say_.Ranks(causes_.behind)[0];
      return Format("it did not {} rank {} in {}", send ? "send to" : "receive from",
                    send ? only_p2p->to : only_p2p->from, say_.Group(only_p2p->group));
    }
    if (groups.size() == 1 && collective != nullptr) {
      return Format("{} behind in {} and did not enter collective {}, {}",
                    one ? "it is" : "they are", say_.Group(collective->group), collective->sequence,
                    job_.record().CallText(*collective->op->entry));
    }
    return Format("{} behind in {} groups", one ? "it is" : "they are", groups.size());
  }

  void AddBehind() {
    if (causes_.behind.empty()) return;
    const bool one = causes_.behind.size() == 1;
    Finding finding;
    finding.id = "flight.behind";
    finding.severity = Severity::kError;
    finding.title =
        Format("{} {} the root of the wait: {}; {}", RankWordsUpper(say_.Ranks(causes_.behind)),
               one ? "is" : "are", BehindWords(), Waiting(causes_.behind));
    for (size_t i = 0; i < causes_.behind.size() && i < kMostShown; ++i) {
      finding.evidence.push_back(say_.LastCall(causes_.behind[i]));
    }
    for (std::string& line : say_.Chains(causes_.behind, kMostLines)) {
      finding.evidence.push_back(std::move(line));
    }
    finding.action = Format(
        "look at {} first: what {} did after the last call is the cause (an exception, a data "
        "loader, another branch, a lock; py-spy dump shows a process that still runs)",
        say_.Words(causes_.behind), one ? "it" : "they");
    findings_.push_back(std::move(finding));
  }

  void AddStuck() {
    if (causes_.stuck.empty()) return;
    const bool one = causes_.stuck.size() == 1;
    Finding finding;
    finding.id = "flight.gpu-stuck";
    // If no rank waits, its dump may just have been written before the operations were complete.
    finding.severity = graph_.nodes().empty() ? Severity::kWarning : Severity::kError;
    finding.title = Format(
        "{} did not complete collectives that other members of the group completed: {} suspected",
        RankWordsUpper(say_.Ranks(causes_.stuck)),
        one ? "its GPU, or the link to it, is" : "their GPUs, or the links to them, are");
    for (size_t i = 0; i < causes_.stuck.size() && i < kMostShown; ++i) {
      const RankProgress& rank = job_.rank(causes_.stuck[i]);
      const Entry& entry = *rank.stale.front()->entry;
      finding.evidence.push_back(
          Format("{}: rank {} has {} open that others completed, the first{} is {} of {}, {}",
                 rank.dump->name, rank.dump->rank, Count(rank.stale.size(), "collective"),
                 Describe::Since(entry), entry.sequence, say_.Group(entry.group),
                 job_.record().CallText(entry)));
    }
    finding.action = Format(
        "look for errors of the {} of {} (Xid in the kernel's log, "
        "nvidia-smi -q), and at the links of that host",
        one ? "GPU" : "GPUs", say_.Words(causes_.stuck));
    findings_.push_back(std::move(finding));
  }

  void AddDeadlock(const Deadlock& deadlock) {
    std::vector<uint32_t> ranks;
    for (const auto& step : deadlock.steps) ranks.push_back(step.first);
    Finding finding;
    finding.id = "flight.deadlock";
    finding.severity = Severity::kError;
    const Node& first = graph_.nodes()[deadlock.steps[0].second];
    const Node& second = graph_.nodes()[deadlock.steps[1 % deadlock.steps.size()].second];
    finding.title =
        Format("{} wait for each other (deadlock): rank {} is in {}, rank {} is in {}",
               RankWordsUpper(say_.Ranks(ranks)), say_.Ranks(ranks)[0], say_.Operation(first),
               say_.Ranks(ranks)[1 % ranks.size()], say_.Operation(second));
    for (size_t i = 0; i < deadlock.steps.size() && i < kMostLines; ++i) {
      const uint32_t next = ranks[(i + 1) % ranks.size()];
      finding.evidence.push_back(
          File(ranks[i]) + ": " +
          say_.Wait(graph_.nodes()[deadlock.steps[i].second], {ranks[i]}, {next}));
    }
    for (std::string& line : say_.Chains(ranks, kMostLines)) {
      finding.evidence.push_back(std::move(line));
    }
    finding.action =
        "make these ranks call the two operations in the same order, or let them run beside each "
        "other (async_op=True; batch_isend_irecv for sends and receives)";
    findings_.push_back(std::move(finding));
  }

  void AddStalled() {
    if (causes_.stalled.empty()) return;
    const Node& node = graph_.nodes()[causes_.stalled[0]];
    Finding finding;
    finding.id = "flight.network";
    finding.severity = Severity::kWarning;
    std::string what = say_.Operation(node);
    what[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(what[0])));
    finding.title = Format(
        "{}, is open{} although all its {} entered it: the network or a GPU is "
        "suspected",
        what, Describe::Since(*node.op->entry),
        Count(node.from < 0 ? job_.Members(node.group).size() : 2, "rank"));
    for (size_t i = 0; i < causes_.stalled.size() && i < kMostLines; ++i) {
      const Node& other = graph_.nodes()[causes_.stalled[i]];
      finding.evidence.push_back(Format("{}: {} {} in {}{}", File(other.waiting[0]),
                                        say_.Words(other.waiting),
                                        other.waiting.size() == 1 ? "is" : "are",
                                        say_.Operation(other), say_.From(*other.op->entry)));
    }
    if (causes_.stalled.size() > kMostLines) {
      finding.evidence.push_back(
          Format("and {} more such operations", causes_.stalled.size() - kMostLines));
    }
    finding.action =
        "if the job hung there, look at the links and GPUs of these ranks (NCCL_DEBUG=INFO, "
        "counters of the adapters, Xid): no rank is late and all call the same";
    findings_.push_back(std::move(finding));
  }

  void AddMissing() {
    if (causes_.without_dump.empty()) return;
    const bool waited = !causes_.missing.empty();
    const std::vector<int64_t>& ranks = waited ? causes_.missing : causes_.without_dump;
    Finding finding;
    finding.id = "flight.missing-dump";
    const bool few = causes_.without_dump.size() <= job_.ranks().size();
    finding.severity = waited && few ? Severity::kError : Severity::kWarning;
    if (!waited && !findings_.empty()) finding.severity = Severity::kNote;
    finding.title = "No dump of " + RankWords(ranks);
    for (const uint32_t id : causes_.missing_nodes) {
      if (finding.evidence.size() >= kMostLines) break;
      const Node& node = graph_.nodes()[id];
      finding.evidence.push_back(Format("{}: {} {} in {}{}", File(node.waiting[0]),
                                        say_.Words(node.waiting),
                                        node.waiting.size() == 1 ? "waits" : "wait",
                                        say_.Operation(node), say_.From(*node.op->entry)));
    }
    const std::string them = ranks.size() == 1 ? "it" : "them";
    if (waited) {
      finding.title += Format(", and others wait in operations that need {}", them);
      finding.action = few ? Format(
                                 "look at {} first: the process had ended, or was stuck where "
                                 "it could not write",
                                 RankWords(ranks))
                           : "give the dumps of all ranks: without them the cause cannot be told";
    } else {
      finding.evidence.push_back(Format(
          "groups name {}, and {} given", Count(causes_.without_dump.size(), "such rank"),
          Count(job_.ranks().size(), "dump") + (job_.ranks().size() == 1 ? " was" : " were")));
      finding.action = "give the dumps of all ranks, if they exist";
    }
    findings_.push_back(std::move(finding));
  }

  void AddRemarks() {
    if (!causes_.older.empty()) {
      findings_.push_back(
          {"flight.older-dump",
           Severity::kNote,
           Format("The dumps of {} are older than those of other ranks, which completed "
                  "collectives that these had not entered",
                  say_.Words(causes_.older)),
           {File(causes_.older[0])},
           "the job ran while they were written: nothing is concluded from what these ranks had "
           "not entered"});
    }
    const std::vector<std::string>& twice = job_.record().twice;
    if (!twice.empty()) {
      findings_.push_back(
          {"flight.twice",
           Severity::kNote,
           Format("{} not used: another dump of the same rank has more entries",
                  Count(twice.size(), "dump") + (twice.size() == 1 ? " is" : " are")),
           {twice[0]},
           "give the dumps of one job only"});
    }
    for (const RankProgress& rank : job_.ranks()) {
      const std::string remark = VersionRemark(rank.dump->version);
      if (remark.empty()) continue;
      findings_.push_back({"flight.version",
                           Severity::kNote,
                           "The dumps are read as far as known: " + remark,
                           {rank.dump->name},
                           ""});
      break;
    }
  }

  const JobProgress& job_;
  const Causes& causes_;
  const WaitGraph& graph_;
  Describe say_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> Diagnose(const FlightRecord& record) {
  const JobProgress job(record);
  const WaitGraph graph(job);
  const Causes causes = FindCauses(job, graph);
  return Report(job, graph, causes).Findings();
}

}  // namespace diapason::flight_recorder
