#include "policy/openmpi_rules.h"

#include <algorithm>
#include <climits>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "domain/collectives.h"
#include "policy/table.h"

namespace diapason::policy {
namespace {

// The collectives that coll_tuned chooses for, in the order of their numbers there.
std::vector<OperationFacts> TunedCollectives() {
  std::vector<OperationFacts> tuned;
  for (const OperationFacts& facts : kOperations) {
    if (facts.openmpi >= 0) tuned.push_back(facts);
  }
  std::sort(tuned.begin(), tuned.end(),
            [](const auto& a, const auto& b) { return a.openmpi < b.openmpi; });
  return tuned;
}

// The fan-out of chains that coll_tuned uses for a forced algorithm, and so the measured one. In a
// rules file 0 would make one chain of all ranks.
constexpr int kChainFanOut = 4;
constexpr size_t kMostLinesNamed = 8;
// From here on, Open MPI needs as long to find a rule as for a small call.
constexpr size_t kManyMessageRules = 1000;

// One line of the innermost level.
struct MessageRule {
  uint64_t bytes = 0;  // from here on
  int algorithm = 0;   // 0: Open MPI's own decision
  int fan = 0;
  int64_t segment = 0;
  int line = 0;  // in the policy, for messages

  bool SameChoice(const MessageRule& other) const {
    return algorithm == other.algorithm && fan == other.fan && segment == other.segment;
  }
};
using MessageRules = std::vector<MessageRule>;

bool SameChoices(const MessageRules& a, const MessageRules& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const MessageRule& one, const MessageRule& other) {
                      return one.bytes == other.bytes && one.SameChoice(other);
                    });
}

struct SizeRules {
  int64_t ranks = 0;  // from here on
  MessageRules messages;
};

std::string Name(Collective collective, int algorithm) {
  return std::string(AlgorithmName(Library::kOpenMpi, collective, algorithm));
}

bool IsTwoProc(const Rule& rule) {
  return Name(rule.collective, rule.config.algorithm) == "two_proc";
}

// Algorithms that combine the ranks' values in another order than MPI guarantees for
// non-commutative operations. Open MPI's own decision avoids them for such operations; a rules file
// does not.
bool NeedsCommutative(Collective collective, int algorithm) {
  const std::string name = Name(collective, algorithm);
  switch (collective) {
    case Collective::kAllReduce:
      return name == "ring" || name == "segmented_ring";
    case Collective::kReduce:
      return name == "chain" || name == "pipeline" || name == "binary" || name == "binomial";
    case Collective::kReduceScatter:
      return name == "recursive_halving" || name == "ring";
    default:
      return false;
  }
}

// Why a rules file does less than lines of the policy say.
enum Why : uint8_t { kNodes, kConditions, kOtherNodes, kTwoRanks, kTooLarge, kWhyCount };
constexpr const char* kWhyTexts[kWhyCount] = {
    "a rules file does not know nodes; the choice holds on any number of them",
    "left out, for no MPI call has numPipeOps or regBuff",
    "left out, for another number of nodes",
    "two_proc is written for two ranks only; with others Open MPI decides",
    "left out, larger than any MPI call",
};

// "line 7", "lines 7, 9 and 3 more".
std::string LinesText(const std::set<int>& lines) {
  std::vector<std::string> named;
  for (const int line : lines) {
    if (named.size() == kMostLinesNamed) break;
    named.push_back(Format("{}", line));
  }
  std::string text = (lines.size() == 1 ? "line " : "lines ") + Join(named, ", ");
  if (lines.size() > named.size()) text += Format(" and {} more", lines.size() - named.size());
  return text;
}

// Text of a policy file as part of a comment, reduced to one line.
std::string OneLine(const std::string& text) {
  std::string line = text;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  return line;
}

// Checks what the parser accepts but Open MPI does not: it ignores a whole file for one invalid
// number, and fails the call for an unknown algorithm.
bool IsSound(const Rule& rule) {
  const Config& config = rule.config;
  const std::vector<int> known = Algorithms(Library::kOpenMpi, rule.collective);
  const bool known_algorithm =
      config.algorithm == kKeep ||
      std::find(known.begin(), known.end(), config.algorithm) != known.end();
  return static_cast<size_t>(rule.collective) < kCollectiveCount && known_algorithm &&
         config.protocol == kKeep && config.channels == 0 && config.segment_bytes >= 0 &&
         config.segment_bytes <= INT_MAX && (rule.ranks == kAny || rule.ranks >= 1);
}

class Exporter {
 public:
  Exporter(const Policy& policy, int64_t nodes) : policy_(policy), nodes_(nodes) {}

  Result<std::string> Write() {
    RETURN_IF_ERROR(Sort());
    std::string body;
    size_t collectives = 0;
    for (const OperationFacts& tuned : TunedCollectives()) {
      RETURN_IF_ERROR(CheckNodes(*tuned.collective));
      const std::vector<SizeRules> sizes = Compile(*tuned.collective);
      if (sizes.empty()) continue;
      ++collectives;
      Print(tuned, sizes, &body);
    }
    Explain(collectives);
    return Head() + Format("{}  # collectives\n", collectives) + body;
  }

  std::vector<std::string> TakeNotes() { return std::move(notes_); }

 private:
  // The rows of one collective that an MPI call can match, as indices into the policy.
  struct Rows {
    std::vector<size_t> any_ranks;
    std::map<int64_t, std::vector<size_t>> by_ranks;
  };

  Status Sort() {
    for (size_t i = 0; i < policy_.rules.size(); ++i) {
      const Rule& rule = policy_.rules[i];
      if (!IsSound(rule)) {
        return Invalid(Format("line {}: not a row for Open MPI: ", rule.line) +
                       RuleText(Library::kOpenMpi, rule));
      }
      if (rule.pipe_ops != kAny || rule.reg_buff != kAny) {
        lines_[kConditions].insert(rule.line);
        continue;
      }
      if (nodes_ != kAny && rule.nodes != kAny && rule.nodes != nodes_) {
        lines_[kOtherNodes].insert(rule.line);
        continue;
      }
      // A communicator's size is an int.
      if (rule.ranks > INT_MAX) {
        lines_[kTooLarge].insert(rule.line);
        continue;
      }
      if (rule.min_bytes > INT64_MAX) lines_[kTooLarge].insert(rule.line);
      if (nodes_ == kAny && rule.nodes != kAny) lines_[kNodes].insert(rule.line);
      Rows& rows = rows_[static_cast<size_t>(rule.collective)];
      (rule.ranks == kAny ? rows.any_ranks : rows.by_ranks[rule.ranks]).push_back(i);
    }
    size_t looked_at = 0;
    for (const Rows& rows : rows_) {
      looked_at += rows.any_ranks.size();
      for (const auto& [ranks, own] : rows.by_ranks) {
        looked_at += 2 * rows.any_ranks.size() + own.size();
      }
    }
    if (looked_at > kMostRulesFileRows) {
      return Unavailable(
          Format("the rules file would come to {} rows, all communicator sizes "
                 "together, and {} is the limit: name fewer numbers of ranks",
                 looked_at, kMostRulesFileRows));
    }
    return {};
  }

  // Whether the rows for one communicator size agree on the number of nodes.
  Status CheckNodes(Collective collective) const {
    if (nodes_ != kAny) return {};
    const Rows& rows = rows_[static_cast<size_t>(collective)];
    const Rule* of_any = nullptr;
    for (const size_t i : rows.any_ranks) {
      RETURN_IF_ERROR(SameNodes(policy_.rules[i], &of_any));
    }
    for (const auto& [ranks, own] : rows.by_ranks) {
      const Rule* of_size = of_any;
      for (const size_t i : own) {
        RETURN_IF_ERROR(SameNodes(policy_.rules[i], &of_size));
      }
    }
    return {};
  }

  static Status SameNodes(const Rule& rule, const Rule** before) {
    if (rule.nodes == kAny) return {};
    if (*before == nullptr) *before = &rule;
    if ((*before)->nodes == rule.nodes) return {};
    const Rule& first = (*before)->line < rule.line ? **before : rule;
    const Rule& second = &first == &rule ? **before : rule;
    return Invalid(
        Format("lines {} and {} are for {} and {} nodes, which a rules file cannot tell apart: "
               "choose with --nodes",
               first.line, second.line, first.nodes, second.nodes));
  }

  // The rules of one collective by communicator size; empty if they would change nothing.
  std::vector<SizeRules> Compile(Collective collective) {
    const Rows& rows = rows_[static_cast<size_t>(collective)];
    // All sizes at which the result can change. From 1: below the first size, the first one's rules
    // apply.
    std::set<int64_t> starts{1};
    for (const auto& [ranks, own] : rows.by_ranks) {
      starts.insert(ranks);
      if (ranks < INT_MAX) starts.insert(ranks + 1);
    }
    for (const size_t i : rows.any_ranks) {
      if (IsTwoProc(policy_.rules[i])) starts.insert({2, 3});
    }
    std::vector<SizeRules> sizes;
    MessageRules other;  // for all sizes that no row names, except two
    bool other_known = false;
    for (const int64_t ranks : starts) {
      const auto own = rows.by_ranks.find(ranks);
      MessageRules messages;
      if (own != rows.by_ranks.end() || ranks == 2) {
        std::vector<size_t> merged = rows.any_ranks;
        if (own != rows.by_ranks.end()) {
          merged.clear();
          std::merge(rows.any_ranks.begin(), rows.any_ranks.end(), own->second.begin(),
                     own->second.end(), std::back_inserter(merged));
        }
        messages = CompileSize(collective, ranks, merged);
      } else {
        if (!other_known) other = CompileSize(collective, ranks, rows.any_ranks);
        other_known = true;
        messages = other;
      }
      if (sizes.empty() || !SameChoices(sizes.back().messages, messages)) {
        sizes.push_back({ranks, std::move(messages)});
      }
    }
    const bool idle = std::all_of(sizes.begin(), sizes.end(), [](const SizeRules& size) {
      return size.messages.size() == 1 && size.messages[0].algorithm == 0;
    });
    if (idle) sizes.clear();
    return sizes;
  }

  // The rules for communicators of this size, from the rows that can match there.
  MessageRules CompileSize(Collective collective, int64_t ranks, const std::vector<size_t>& rows) {
    Policy here;
    here.library = policy_.library;
    for (const size_t i : rows) {
      Rule rule = policy_.rules[i];
      rule.nodes = kAny;
      rule.line = static_cast<int>(i);  // maps a result back to its row
      here.rules.push_back(rule);
    }
    DecisionTable::Options options;
    options.shape = {1, ranks};
    const DecisionTable table(here, options);
    Question question;
    question.collective = collective;
    MessageRules messages;
    for (const ShownRange& range : ShowRanges(table, here, question)) {
      if (range.first > INT64_MAX) break;  // read as a long, and no call is that large
      MessageRule rule;
      rule.bytes = range.first;
      if (range.entry != nullptr) {
        Choose(policy_.rules[static_cast<size_t>(range.entry->line)], ranks, &rule);
      }
      if (messages.empty() || !messages.back().SameChoice(rule)) messages.push_back(rule);
    }
    longest_ = std::max(longest_, messages.size());
    return messages;
  }

  void Choose(const Rule& row, int64_t ranks, MessageRule* rule) {
    const int algorithm = row.config.algorithm;
    if (algorithm == kKeep) return;
    if (ranks != 2 && IsTwoProc(row)) {
      lines_[kTwoRanks].insert(row.line);
      return;
    }
    if (NeedsCommutative(row.collective, algorithm)) {
      commutative_.insert(Name(row.collective, algorithm) + " for " +
                          std::string(CollectiveName(row.collective)));
    }
    rule->algorithm = algorithm;
    rule->fan = Name(row.collective, algorithm) == "chain" ? kChainFanOut : 0;
    rule->segment = row.config.segment_bytes;
    rule->line = row.line;
  }

  static void Print(const OperationFacts& tuned, const std::vector<SizeRules>& sizes,
                    std::string* text) {
    *text +=
        Format("\n{}  # {}\n{}  # communicator sizes\n", tuned.openmpi, tuned.mpi, sizes.size());
    for (const SizeRules& size : sizes) {
      *text +=
          Format("{}  # ranks and more\n{}  # message sizes\n", size.ranks, size.messages.size());
      for (const MessageRule& rule : size.messages) {
        *text += Format("{} {} {} {}", rule.bytes, rule.algorithm, rule.fan, rule.segment);
        *text += rule.algorithm == 0 ? "  # Open MPI's own decision\n"
                                     : Format("  # {}, line {}\n",
                                              Name(*tuned.collective, rule.algorithm), rule.line);
      }
    }
  }

  std::string Head() const {
    std::string head =
        "# Dynamic rules for Open MPI's coll_tuned, written by diapason from the policy\n# " +
        DigestText(Digest(policy_)) + "; lines are those of its file. Use:\n" +
        "#   mpirun --mca coll_tuned_use_dynamic_rules 1 \\\n"
        "#          --mca coll_tuned_dynamic_rules_filename FILE ...\n";
    if (!policy_.header.origin.empty()) {
      head += "# Origin: " + OneLine(policy_.header.origin) + "\n";
    }
    if (nodes_ != kAny) {
      head += Format("# For jobs on {}.\n", Count(static_cast<size_t>(nodes_), "node"));
    }
    return head + "# A rule: bytes from which it holds, algorithm, fan-out, segment bytes.\n\n";
  }

  void Explain(size_t collectives) {
    for (int why = 0; why < kWhyCount; ++why) {
      if (lines_[why].empty()) continue;
      notes_.push_back(LinesText(lines_[why]) + ": " + kWhyTexts[why]);
    }
    if (!commutative_.empty()) {
      notes_.push_back(Join({commutative_.begin(), commutative_.end()}, ", ") +
                       ": wrong results for operations that are not commutative (MPI_Op_create "
                       "with commute = 0), for which a rules file is not asked");
    }
    if (longest_ > kManyMessageRules) {
      notes_.push_back(
          Format("a communicator gets up to {} rules, which Open MPI goes through one "
                 "by one at every call: about 1 us for 1000",
                 longest_));
    }
    if (collectives == 0) notes_.emplace_back("no row changes what Open MPI does");
  }

  const Policy& policy_;
  const int64_t nodes_;
  Rows rows_[kCollectiveCount];
  std::set<int> lines_[kWhyCount];
  std::set<std::string> commutative_;
  size_t longest_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace

Result<std::string> OpenMpiRulesText(const Policy& policy, std::vector<std::string>* notes,
                                     int64_t nodes) {
  if (policy.library != Library::kOpenMpi) {
    return Invalid("only a policy for Open MPI can become its rules file; this one is for " +
                   std::string(LibraryTitle(policy.library)));
  }
  Exporter exporter(policy, nodes);
  Result<std::string> text = exporter.Write();
  if (text.ok() && notes != nullptr) *notes = exporter.TakeNotes();
  return text;
}

}  // namespace diapason::policy
