#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/journal/journal.h"
#include "cli/framework/command.h"
#include "dataset/summary.h"
#include "dataset/words.h"
#include "domain/library_version.h"
#include "journal/joined.h"
#include "plugin/client/recorded_table.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using dataset::Printable;
using journal::JournalRecord;
using journal::RecordKind;
using Align = report::Table::Align;

constexpr char kNotSeen[] = "not seen";
// In the encoding of ncclGetVersion.
constexpr int kOnlyLowersChannels = 23100;

std::string NameOf(uint8_t collective) {
  return std::string(CollectiveName(static_cast<Collective>(collective)));
}

// A call as it is shown: the requested configuration and the one that ran.
struct Shown {
  uint32_t communicator = 0;
  uint32_t call = 0;
  uint8_t collective = 0;
  uint64_t bytes = 0;
  std::string asked;
  std::string ran;
  std::string alone;
  std::string why;
  double seconds = 0;
  journal::Obeyed obeyed = journal::Obeyed::kYes;
  bool replay = false;  // replay of a call that was shown before
};

class Calls {
 public:
  explicit Calls(const journal::JournalContents& contents)
      : contents_(contents), partners_(journal::JoinRuns(contents)) {}

  // In the order of the journal.
  void ForEach(bool detailed, const std::function<void(const Shown&)>& show) const {
    for (size_t i = 0; i < contents_.records.size(); ++i) {
      const JournalRecord& record = contents_.records[i];
      const Library library = contents_.Find(record.communicator)->library;
      Shown shown;
      shown.communicator = record.communicator;
      shown.call = record.call;
      shown.collective = record.collective;
      shown.bytes = record.bytes;
      switch (record.kind) {
        case RecordKind::kDecision:
          Decision(record, library, detailed, &shown);
          Partner(partners_[i], library, &shown);
          break;
        case RecordKind::kBypassed:
          shown.asked = shown.alone = "-";
          shown.ran = "bypassed";
          shown.why = "the library took a path on which it does not ask the tuner";
          break;
        case RecordKind::kRan:
          if (!Alone(i, record, library, detailed, &shown)) continue;
          break;
        case RecordKind::kReward:
        case RecordKind::kStep:
          continue;
      }
      show(shown);
    }
  }

 private:
  static std::string Text(const JournalRecord& record, Library library, const Config& config) {
    return ConfigText(library, static_cast<Collective>(record.collective), config);
  }
  // -1 in what ran does not mean "the library's own": it has no name.
  static std::string RanText(const JournalRecord& run, Library library) {
    if (run.algorithm == kKeep && run.protocol == kKeep) return "nameless";
    return Text(run, library, journal::ConfigOf(run));
  }
  static void Decision(const JournalRecord& record, Library library, bool detailed, Shown* shown) {
    shown->asked = Text(record, library, journal::ConfigOf(record));
    shown->alone = Text(record, library, {record.default_algorithm, record.default_protocol, 0});
    shown->why = ReasonSentence(record.reason);
    if (record.line > 0) {
      shown->why =
          Format("line {}", record.line) + (record.reason == Reason::kRow ? "" : ": " + shown->why);
    }
    if (record.reason == Reason::kRow && !record.applied) shown->why += " (observed only)";
    if (record.captured) shown->why += ", captured";
    if (detailed && record.learning) {
      shown->why += Format(" (epoch {}, number {})", record.epoch, record.index);
    }
  }
  void Partner(uint32_t run, Library library, Shown* shown) const {
    if (run == journal::kNoPartner) {
      shown->ran = kNotSeen;
      return;
    }
    const JournalRecord& ran = contents_.records[run];
    const JournalRecord& decision = contents_.records[partners_[run]];
    shown->obeyed = journal::CompareRun(decision, ran);
    shown->ran = RanText(ran, library);
    shown->seconds = ran.seconds;
    if (shown->obeyed != journal::Obeyed::kYes) shown->ran += " !";
  }
  // A run without a decision in the journal: a replay, or an unknown call.
  bool Alone(size_t at, const JournalRecord& run, Library library, bool detailed,
             Shown* shown) const {
    shown->ran = RanText(run, library);
    shown->seconds = run.seconds;
    if (partners_[at] == journal::kNoPartner) {
      shown->asked = shown->alone = "unknown";
      shown->why = "its question is not in the journal";
      return true;
    }
    const JournalRecord& decision = contents_.records[partners_[at]];
    if (partners_[partners_[at]] == at) return false;
    Decision(decision, library, detailed, shown);
    shown->obeyed = journal::CompareRun(decision, run);
    if (shown->obeyed != journal::Obeyed::kYes) shown->ran += " !";
    shown->replay = true;
    return true;
  }

  const journal::JournalContents& contents_;
  const std::vector<uint32_t> partners_;
};

// Whether a library of this journal uses a requested number of channels only to lower its own.
bool OnlyLowers(const journal::JournalContents& contents) {
  return std::any_of(
      contents.communicators.begin(), contents.communicators.end(),
      [](const journal::JournalComm& one) { return one.library_version >= kOnlyLowersChannels; });
}

// Explains the marks in a table.
struct Marks {
  size_t other_pair = 0;
  size_t other_channels = 0;
  bool not_seen = false;
  bool times = false;

  void Add(const Shown& shown) {
    other_pair += shown.obeyed == journal::Obeyed::kOtherPair ? 1 : 0;
    other_channels += shown.obeyed == journal::Obeyed::kOtherChannels ? 1 : 0;
    not_seen |= shown.ran == kNotSeen;
    times |= shown.seconds > 0;
  }
  void Print(const journal::JournalContents& contents) const {
    if (other_pair > 0) {
      PrintOut("! {} with another algorithm or protocol than requested\n",
               Count(other_pair, "run"));
    }
    if (other_channels > 0) {
      PrintOut(
          "! {} with another number of channels than requested: the library uses fewer for small "
          "messages{}\n",
          Count(other_channels, "run"),
          OnlyLowers(contents) ? "; from 2.31 on a request can only lower the library's own count, "
                                 "and NCCL_MIN_CTAS wins over it"
                               : "");
    }
    if (!not_seen) return;
    const std::vector<bool> sees = journal::SeesRuns(contents);
    PrintOut("{}: {}\n", kNotSeen,
             std::find(sees.begin(), sees.end(), true) == sees.end()
                 ? "the profiler plugin was not loaded, or saw no call"
                 : "the call did not run, or its run was not recorded");
  }
};

// The last columns of both tables: the time if there is one, and the reason.
report::Table MakeTable(std::vector<std::string> titles, std::vector<Align> aligns, bool times) {
  if (times) {
    titles.emplace_back("GPU time");
    aligns.push_back(Align::kRight);
  }
  titles.emplace_back("why");
  report::Table table(std::move(titles));
  table.SetAlign(std::move(aligns));
  return table;
}

void PrintCalls(const journal::JournalContents& contents) {
  const Calls calls(contents);
  Marks marks;
  calls.ForEach(true, [&](const Shown& shown) { marks.Add(shown); });
  std::vector<std::string> titles{"comm",      "call", "collective",   "size",
                                  "asked for", "ran",  "library alone"};
  std::vector<Align> aligns{Align::kRight, Align::kRight, Align::kLeft, Align::kRight,
                            Align::kLeft,  Align::kLeft,  Align::kLeft};
  report::Table table = MakeTable(std::move(titles), std::move(aligns), marks.times);
  calls.ForEach(true, [&](const Shown& shown) {
    std::vector<std::string> row{Format("{}", shown.communicator),
                                 shown.call == 0 ? "" : Format("{}", shown.call),
                                 NameOf(shown.collective),
                                 FormatBytes(shown.bytes),
                                 shown.asked,
                                 shown.ran,
                                 shown.alone};
    if (marks.times) row.push_back(shown.seconds > 0 ? dataset::TimeText(shown.seconds) : "");
    row.push_back(shown.why + (shown.replay ? ", a replay" : ""));
    table.Add(std::move(row));
  });
  PrintOut("{}", table.Text());
  marks.Print(contents);
}

// Many calls are equal: one line each, with their number.
void PrintSummary(const journal::JournalContents& contents) {
  struct Key {
    uint32_t communicator;
    uint8_t collective;
    uint64_t bytes;
    std::string asked;
    std::string ran;
    std::string alone;
    std::string why;
    auto operator<=>(const Key&) const = default;
  };
  struct Group {
    size_t calls = 0;
    size_t replays = 0;
    std::vector<double> seconds;
  };
  std::map<Key, Group> groups;
  Marks marks;
  Calls(contents).ForEach(false, [&](const Shown& shown) {
    marks.Add(shown);
    Group& group = groups[{shown.communicator, shown.collective, shown.bytes, shown.asked,
                           shown.ran, shown.alone, shown.why}];
    ++(shown.replay ? group.replays : group.calls);
    if (shown.seconds > 0) group.seconds.push_back(shown.seconds);
  });
  std::vector<std::string> titles{"comm",      "collective", "size",         "calls",
                                  "asked for", "ran",        "library alone"};
  std::vector<Align> aligns{Align::kRight, Align::kLeft, Align::kRight, Align::kRight,
                            Align::kLeft,  Align::kLeft, Align::kLeft};
  report::Table table = MakeTable(std::move(titles), std::move(aligns), marks.times);
  for (const auto& [key, group] : groups) {
    std::vector<std::string> row{Format("{}", key.communicator),
                                 NameOf(key.collective),
                                 FormatBytes(key.bytes),
                                 Format("{}", group.calls),
                                 key.asked,
                                 key.ran,
                                 key.alone};
    if (marks.times) {
      row.push_back(group.seconds.empty() ? "" : dataset::TimeText(Median(group.seconds)));
    }
    row.push_back(key.why +
                  (group.replays > 0 ? ", " + Count(group.replays, "replay") : std::string()));
    table.Add(std::move(row));
  }
  PrintOut("{}", table.Text());
  marks.Print(contents);
}

// A journal is untrusted input.
size_t Natural(int64_t number) { return number < 0 ? 0 : static_cast<size_t>(number); }

void PrintHead(const std::string& file, const journal::JournalContents& contents) {
  std::map<RecordKind, size_t> counts;
  for (const JournalRecord& record : contents.records) ++counts[record.kind];
  std::string what = Count(counts[RecordKind::kDecision], "decision");
  for (const auto& [kind, noun] :
       {std::pair{RecordKind::kRan, "run"}, std::pair{RecordKind::kReward, "reward"}}) {
    if (counts[kind] > 0) what += ", " + Count(counts[kind], noun);
  }
  if (counts[RecordKind::kBypassed] > 0) {
    what += Format(", {} bypassed", counts[RecordKind::kBypassed]);
  }
  PrintOut("{}: host {}, process {}, {}\n", file, Printable(contents.host), contents.pid, what);
  for (const journal::JournalComm& communicator : contents.communicators) {
    const std::string version = LibraryVersionText(communicator.library_version);
    std::string text = Format("communicator {}", communicator.number);
    if (!communicator.name.empty()) text += " (" + Printable(communicator.name) + ")";
    if (communicator.rank >= 0) text += Format(", rank {}", communicator.rank);
    text += Format(": {} {}, tuner API v{}, {}, {}, mode {}, policy {}",
                   std::string(LibraryTitle(communicator.library)),
                   version.empty() ? "(unknown version)" : version, communicator.api,
                   Count(Natural(communicator.shape.nodes), "node"),
                   Count(Natural(communicator.shape.ranks), "rank"), Printable(communicator.mode),
                   communicator.policy.empty() ? "none in use" : Printable(communicator.policy));
    if (!communicator.chain.empty()) text += ", chained to " + Printable(communicator.chain);
    if (!communicator.store.empty()) text += ", store " + Printable(communicator.store);
    if (!communicator.agreed.empty()) text += ", agreed: " + Printable(communicator.agreed);
    PrintOut("{}\n", text);
  }
}

}  // namespace

Result<int> RunJournalShow(const JournalShow& asked) {
  if (asked.json) return ShowJournalsAsJson(asked.files);
  for (const std::string& file : asked.files) {
    ASSIGN_OR_RETURN(const journal::JournalContents read, ReadWithWarnings(file));
    const journal::JournalContents& contents = read;
    if (asked.tables) {
      const std::vector<client::RecordedTable> tables = client::TablesOf(contents);
      if (tables.empty()) {
        return Invalid("'" + file +
                       "' contains no cost tables: record it with DIAPASON_JOURNAL_TABLES=1");
      }
      PrintOut("{}", client::TablesText(tables, contents.communicators.front().library));
      continue;
    }
    if (&file != &asked.files.front()) PrintOut("\n");
    PrintHead(file, contents);
    PrintOut("\n");
    if (asked.learning) {
      PrintOut("{}", LearningText(contents, asked.calls));
    } else if (asked.calls) {
      PrintCalls(contents);
    } else {
      PrintSummary(contents);
    }
  }
  return kExitFine;
}

}  // namespace diapason::cli
