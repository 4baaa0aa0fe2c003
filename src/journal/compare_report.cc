#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "journal/compare.h"

namespace diapason::journal {
namespace {

void CheckMembers(const Matcher::Group& group, JournalComparison::Report* report) {
  std::map<int, size_t> ranks;
  std::map<std::string, std::vector<const Matcher::Member*>> digests;
  for (const Matcher::Member& member : group.members) {
    if (member.rank >= 0) ++ranks[member.rank];
    digests[member.digest].push_back(&member);
  }
  std::vector<int> twice;
  for (const auto& [rank, count] : ranks) {
    if (count > 1) twice.push_back(rank);
  }
  if (!twice.empty()) {
    report->problems.push_back(group.Text() + ": several journals claim to be " + RanksText(twice));
  }
  if (digests.size() > 1) {
    std::vector<std::string> sides;
    for (const auto& [digest, members] : digests) {
      sides.push_back((digest.empty() ? "none" : digest) + " on " + MembersText(members));
    }
    report->notes.push_back(group.Text() + ": the policies differ: " + Join(sides, "; "));
  }
  const auto wanted = static_cast<size_t>(std::max<int64_t>(group.shape.ranks, 0));
  if (group.members.size() >= wanted) return;
  std::string which;
  if (ranks.size() == group.members.size() && wanted <= 4096) {
    std::vector<int> missing;
    for (size_t rank = 0; rank < wanted; ++rank) {
      if (!ranks.contains(static_cast<int>(rank))) missing.push_back(static_cast<int>(rank));
    }
    if (!missing.empty()) which = "; missing: " + RanksText(missing);
  }
  report->notes.push_back(Format("{} has {} ranks, and journals of {}{}", group.Text(),
                                 group.shape.ranks, group.members.size(), which));
}

void AddCounts(JournalComparison::Report* report) {
  const auto note = [&](uint64_t count, const char* noun, const char* rest) {
    if (count > 0) report->notes.push_back(Count(count, noun) + rest);
  };
  note(report->cut_off, "call",
       " only on some ranks: a journal is not complete, or the question never ran");
  note(report->only_asked, "question", " without a run, as simulated groups ask them");
  // Counted once per rank.
  note(report->unavailable, "decision",
       " (all ranks together) asked for a pair that the library does not offer there");
  note(report->other_pair, "call",
       " (all ranks together) ran another algorithm or protocol than was asked for");
  note(report->other_channels, "call",
       " (all ranks together) ran with another number of channels than was asked for");
  note(report->bypassed, "call",
       " (all ranks together) took a path on which the library does not ask the tuner");
  note(report->dropped, "record", " dropped while the job ran");
  note(report->bad_lines, "line", " of the journals could not be read");
}

}  // namespace

void JournalComparison::Report::Explain(const std::vector<Matcher::Group>& groups) {
  const auto say = [this](uint64_t count, const char* noun, uint64_t of, const char* what) {
    if (count == 0) return;
    problems.push_back(Format("the ranks {} {} of {}", what, Count(count, noun), of));
  };
  say(different_calls, "call", calls, "chose differently for");
  say(different_runs, "run", runs, "ran different things in");
  if (compared == 0) {
    problems.emplace_back(
        journals < 2 ? "there is nothing to compare it with: name the journals of all ranks"
                     : "no communicator is in more than one of these journals: they are not of one "
                       "job");
  } else if (calls == 0 && runs == 0) {
    problems.emplace_back("no call is in more than one of these journals");
  }
  for (const Matcher::Group& group : groups) CheckMembers(group, this);
  AddCounts(this);
}

std::string JournalComparison::Difference::Text() const {
  std::string text = Format("{}, {} {}, {}: ", communicator,
                            std::string(CollectiveName(collective)), FormatBytes(bytes), which);
  for (size_t i = 0; i < sides.size(); ++i) {
    const Side& side = sides[i];
    if (i > 0) text += "; ";
    text +=
        side.ranks + (ran ? " ran " : " asked for ") + ConfigText(library, collective, side.config);
    if (side.call > 0) text += Format(" (call {})", side.call);
  }
  return text;
}

std::string JournalComparison::Report::Verdict() const {
  const std::string head = Count(ranks, "rank") + ", ";
  if (compared == 0) return Count(journals, "journal") + ": nothing could be compared";
  if (calls == 0 && runs == 0) return head + "no call that several of them made";
  const std::string what = calls > 0 ? Count(calls, "call") : Count(runs, "run");
  if (different_calls > 0) {
    return Format("{}{}: the ranks chose differently for {} of them", head, what, different_calls);
  }
  if (different_runs > 0) {
    return Format("{}{}: the ranks ran different things in {}", head, what,
                  Count(different_runs, "run"));
  }
  if (!problems.empty()) return head + what + ": the ranks do not agree, see below";
  return head + what + ": all ranks chose the same for every call";
}

}  // namespace diapason::journal
