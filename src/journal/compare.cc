#include "journal/compare.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/schedule.h"
#include "journal/joined.h"

namespace diapason::journal {
namespace {

// Further differences are only counted.
constexpr size_t kMostDifferences = 10000;

// Questions of one kind, which a program asks one after the other.
using QuestionKind = std::tuple<uint32_t, uint8_t, bool, uint64_t>;
QuestionKind KindOf(const JournalRecord& record) {
  return {record.communicator, record.collective, record.captured, record.bytes};
}

size_t PlaceOf(const JournalContents& contents, const JournalRecord& record) {
  return contents.by_number.find(record.communicator)->second;
}

// From the end: a question that did not run, although a later one of its kind did, is not a call.
std::vector<bool> OnlyAsked(const JournalContents& contents, const std::vector<uint32_t>& partners,
                            const std::vector<bool>& sees_runs) {
  std::vector<bool> only_asked(contents.records.size(), false);
  std::map<QuestionKind, bool> later_ran;
  for (size_t i = contents.records.size(); i-- > 0;) {
    const JournalRecord& record = contents.records[i];
    if (record.kind != RecordKind::kDecision || record.learning ||
        !sees_runs[PlaceOf(contents, record)]) {
      continue;
    }
    bool& later = later_ran[KindOf(record)];
    if (partners[i] != kNoPartner) later = true;
    only_asked[i] = later && partners[i] == kNoPartner;
  }
  return only_asked;
}

}  // namespace

bool JournalComparison::Entry::SameCall(const Entry& other) const {
  return group == other.group && stream == other.stream && collective == other.collective &&
         captured == other.captured && context == other.context && number == other.number;
}

bool JournalComparison::Entry::Before(const Entry& other) const {
  return std::tie(group, stream, collective, captured, context, number, member) <
         std::tie(other.group, other.stream, other.collective, other.captured, other.context,
                  other.number, other.member);
}

void JournalComparison::Add(const std::string& name, const JournalContents& contents) {
  const std::vector<Matcher::Place> places = matcher_.Add(name, contents);
  report_.dropped += contents.dropped;
  report_.bad_lines += contents.bad_lines;
  if (!contents.ended) {
    report_.notes.push_back(name + ": the process did not end it in order, the end may be missing");
  }
  const std::vector<uint32_t> partners = JoinRuns(contents);
  const std::vector<bool> sees_runs = SeesRuns(contents);
  const std::vector<bool> only_asked = OnlyAsked(contents, partners, sees_runs);
  std::map<QuestionKind, uint64_t> questions;
  for (size_t i = 0; i < contents.records.size(); ++i) {
    const JournalRecord& record = contents.records[i];
    if (record.kind == RecordKind::kBypassed) ++report_.bypassed;
    if (record.kind == RecordKind::kBypassed || record.kind == RecordKind::kReward) continue;
    const bool decision = record.kind != RecordKind::kRan;
    const size_t at = PlaceOf(contents, record);
    Entry entry;
    entry.group = static_cast<uint32_t>(places[at].group);
    entry.member = static_cast<uint32_t>(places[at].member);
    entry.time_ns = record.time_ns;
    entry.bytes = record.bytes;
    entry.call = record.call;
    entry.collective = record.collective;
    entry.captured = record.captured;
    if (decision) {
      CountDecision(record, partners[i] == kNoPartner ? nullptr : &contents.records[partners[i]]);
      entry.ran = partners[i] != kNoPartner || !sees_runs[at];
      if (only_asked[i]) {
        ++report_.only_asked;
        continue;
      }
      entry.stream = record.learning ? kLearning : kQuestions;
      entry.context =
          record.learning ? static_cast<uint64_t>(SizeBand(record.bytes)) : record.bytes;
      entry.number = record.learning ? record.index : ++questions[KindOf(record)];
    } else {
      entry.stream = kRuns;
      entry.number = record.sequence;
      entry.start_ns = record.gpu_start_ns;
      entry.seconds = record.seconds;
    }
    const Config config = decision ? AskedOf(record) : ConfigOf(record);
    entry.algorithm = static_cast<int16_t>(config.algorithm);
    entry.protocol = static_cast<int16_t>(config.protocol);
    entry.channels = static_cast<int16_t>(config.channels);
    entries_.push_back(entry);
  }
}

void JournalComparison::CountDecision(const JournalRecord& decision, const JournalRecord* run) {
  report_.unavailable += decision.reason == Reason::kUnavailable ? 1 : 0;
  if (run == nullptr) return;
  const Obeyed obeyed = CompareRun(decision, *run);
  report_.other_pair += obeyed == Obeyed::kOtherPair ? 1 : 0;
  report_.other_channels += obeyed == Obeyed::kOtherChannels ? 1 : 0;
}

// Visits every call once and collects the results.
class JournalComparison::Findings {
 public:
  Findings(const std::vector<Matcher::Group>& groups, Report* report)
      : groups_(groups), report_(*report) {}

  // One call: one entry for each rank that has it.
  void See(const std::vector<Entry>& call) {
    const Matcher::Group& group = groups_[call[0].group];
    if (group.members.size() < 2) return;
    if (call.size() >= 2) Compare(group, call);
    if (call[0].stream == kRuns) {
      if (call.size() >= 2) Measure(group, call);
    } else if (call.size() < group.members.size()) {
      Missing(group, call);
    }
  }

  void Finish(size_t shown);

 private:
  void Compare(const Matcher::Group& group, const std::vector<Entry>& call);
  void Missing(const Matcher::Group& group, const std::vector<Entry>& call);
  void Measure(const Matcher::Group& group, const std::vector<Entry>& call);
  static bool SameConfigs(const std::vector<Entry>& call);
  static std::string Which(const Entry& entry);

  struct Times {
    std::vector<double> slowest;
    std::vector<double> spreads;
    std::vector<double> starts;
  };
  const std::vector<Matcher::Group>& groups_;
  Report& report_;
  std::vector<Difference> differences_;
  std::string first_lonely_;
  std::map<std::tuple<uint32_t, uint8_t, uint64_t>, Times> times_;
};

std::string JournalComparison::Findings::Which(const Entry& entry) {
  const auto number = static_cast<unsigned long long>(entry.number);
  if (entry.stream == kRuns) return Format("run {}", number);
  if (entry.stream == kLearning) return Format("number {} of its size band", number);
  return Format("{}number {} of its size", entry.captured ? "captured, " : "", number);
}

bool JournalComparison::Findings::SameConfigs(const std::vector<Entry>& call) {
  const bool ran = call[0].stream == kRuns;
  // A run with an unknown name matches any other.
  const auto all_same = [&](int16_t Entry::*field, int unknown) {
    const Entry* first = nullptr;
    for (const Entry& entry : call) {
      if (ran && entry.*field == unknown) continue;
      if (first == nullptr) first = &entry;
      if (entry.*field != first->*field) return false;
    }
    return true;
  };
  return all_same(&Entry::algorithm, kKeep) && all_same(&Entry::protocol, kKeep) &&
         all_same(&Entry::channels, 0);
}

void JournalComparison::Findings::Compare(const Matcher::Group& group,
                                          const std::vector<Entry>& call) {
  const bool ran = call[0].stream == kRuns;
  ++(ran ? report_.runs : report_.calls);
  if (SameConfigs(call)) return;
  ++(ran ? report_.different_runs : report_.different_calls);
  if (differences_.size() == kMostDifferences) return;
  // In the order of the ranks.
  std::vector<std::vector<const Entry*>> sides;
  for (const Entry& entry : call) {
    const auto found = std::find_if(sides.begin(), sides.end(), [&](const auto& side) {
      return side[0]->algorithm == entry.algorithm && side[0]->protocol == entry.protocol &&
             side[0]->channels == entry.channels;
    });
    (found == sides.end() ? sides.emplace_back() : *found).push_back(&entry);
  }
  Difference difference;
  difference.communicator = group.Text();
  difference.library = group.library;
  difference.collective = static_cast<Collective>(call[0].collective);
  difference.bytes = call[0].bytes;
  difference.ran = ran;
  difference.which = Which(call[0]);
  difference.time_ns = call[0].time_ns;
  for (const std::vector<const Entry*>& entries : sides) {
    Side side;
    std::vector<const Matcher::Member*> members;
    for (const Entry* entry : entries) {
      members.push_back(&group.members[entry->member]);
      side.labels.push_back(members.back()->label);
    }
    side.ranks = MembersText(members);
    side.config = {entries[0]->algorithm, entries[0]->protocol, entries[0]->channels};
    side.call = entries[0]->call;
    difference.sides.push_back(std::move(side));
  }
  std::stable_sort(difference.sides.begin(), difference.sides.end(),
                   [](const Side& a, const Side& b) { return a.labels.size() > b.labels.size(); });
  differences_.push_back(std::move(difference));
}

void JournalComparison::Findings::Missing(const Matcher::Group& group,
                                          const std::vector<Entry>& call) {
  bool certain =
      std::any_of(call.begin(), call.end(), [](const Entry& entry) { return entry.ran; });
  std::vector<bool> has(group.members.size(), false);
  for (const Entry& entry : call) has[entry.member] = true;
  std::vector<const Matcher::Member*> missing;
  for (size_t i = 0; i < has.size(); ++i) {
    if (has[i]) continue;
    missing.push_back(&group.members[i]);
    certain = certain && group.members[i].complete;
  }
  if (!certain) {
    ++report_.cut_off;
    return;
  }
  if (report_.lonely++ == 0) {
    first_lonely_ = Format(
        "{} {}, {}, {}", std::string(CollectiveName(static_cast<Collective>(call[0].collective))),
        FormatBytes(call[0].bytes), Which(call[0]), ("not on " + MembersText(missing)));
  }
}

void JournalComparison::Findings::Measure(const Matcher::Group& group,
                                          const std::vector<Entry>& call) {
  if (std::any_of(call.begin(), call.end(),
                  [](const Entry& entry) { return entry.seconds <= 0; })) {
    return;
  }
  const auto [fastest, slowest] =
      std::minmax_element(call.begin(), call.end(),
                          [](const Entry& a, const Entry& b) { return a.seconds < b.seconds; });
  Times& times = times_[{call[0].group, call[0].collective, call[0].bytes}];
  times.slowest.push_back(slowest->seconds);
  times.spreads.push_back(slowest->seconds - fastest->seconds);
  const std::string& host = group.members[call[0].member].host;
  if (!std::all_of(call.begin(), call.end(),
                   [&](const Entry& entry) { return group.members[entry.member].host == host; })) {
    return;
  }
  const auto [first, last] =
      std::minmax_element(call.begin(), call.end(),
                          [](const Entry& a, const Entry& b) { return a.start_ns < b.start_ns; });
  times.starts.push_back(static_cast<double>(last->start_ns - first->start_ns) * 1e-9);
}

void JournalComparison::Findings::Finish(size_t shown) {
  std::stable_sort(differences_.begin(), differences_.end(),
                   [](const Difference& a, const Difference& b) { return a.time_ns < b.time_ns; });
  if (differences_.size() > shown) differences_.resize(shown);
  report_.first = std::move(differences_);
  for (const auto& [key, times] : times_) {
    Spread spread;
    spread.communicator = groups_[std::get<0>(key)].Text();
    spread.collective = static_cast<Collective>(std::get<1>(key));
    spread.bytes = std::get<2>(key);
    spread.runs = times.slowest.size();
    spread.seconds = Median(times.slowest);
    spread.spread = Median(times.spreads);
    if (!times.starts.empty()) spread.starts = Median(times.starts);
    report_.spreads.push_back(std::move(spread));
  }
  if (report_.lonely > 0) {
    report_.problems.push_back(Format(
        "{} only on some ranks, though the journals of the others are complete; the first: {}",
        Count(report_.lonely, "call"), first_lonely_));
  }
}

JournalComparison::Report JournalComparison::Finish(size_t shown) {
  // Stable: two entries of one rank for one call keep their order.
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.Before(b); });
  report_.journals = matcher_.journals();
  report_.communicators = matcher_.groups().size();
  for (const Matcher::Group& group : matcher_.groups()) {
    report_.ranks = std::max(report_.ranks, group.members.size());
    report_.compared += group.members.size() > 1 ? 1 : 0;
  }
  Findings findings(matcher_.groups(), &report_);
  std::vector<Entry> call;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!call.empty() && !call[0].SameCall(entries_[i])) {
      findings.See(call);
      call.clear();
    }
    if (!call.empty() && call.back().member == entries_[i].member) {
      call.back() = entries_[i];
    } else {
      call.push_back(entries_[i]);
    }
  }
  if (!call.empty()) findings.See(call);
  findings.Finish(shown);
  report_.Explain(matcher_.groups());
  entries_.clear();
  return std::move(report_);
}

}  // namespace diapason::journal
