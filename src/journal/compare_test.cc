#include "journal/compare.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "journal/joined.h"

namespace diapason::journal {
namespace {

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool AnyHolds(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (Holds(text, part)) return true;
  }
  return false;
}

JournalRecord Decision(uint32_t call, uint64_t bytes, int algorithm, int protocol,
                       int channels = 0) {
  JournalRecord record;
  record.time_ns = uint64_t{1000} * call;
  record.communicator = 1;
  record.call = call;
  record.bytes = bytes;
  record.collective = static_cast<uint8_t>(Collective::kAllReduce);
  record.reason = Reason::kRow;
  record.applied = true;
  record.algorithm = static_cast<int8_t>(algorithm);
  record.protocol = static_cast<int8_t>(protocol);
  record.channels = static_cast<int16_t>(channels);
  return record;
}

JournalRecord Learning(uint32_t call, uint64_t bytes, uint64_t index, int algorithm, int protocol) {
  JournalRecord record = Decision(call, bytes, algorithm, protocol);
  record.learning = true;
  record.index = index;
  record.reason = Reason::kTrying;
  return record;
}

JournalRecord Ran(uint32_t call, uint64_t bytes, uint64_t sequence, int algorithm, int protocol,
                  double seconds = 0) {
  JournalRecord record = Decision(call, bytes, algorithm, protocol);
  record.kind = RecordKind::kRan;
  record.sequence = sequence;
  record.seconds = seconds;
  record.gpu_start_ns = 1000 * sequence;
  return record;
}

JournalContents Journal(int rank, std::vector<JournalRecord> records, int ranks = 2) {
  JournalContents contents;
  contents.version = 1;
  contents.host = "h";
  contents.ended = true;
  JournalComm communicator;
  communicator.number = 1;
  communicator.id = 42;
  communicator.shape = {1, ranks};
  communicator.rank = rank;
  communicator.digest = "d";
  contents.communicators.push_back(communicator);
  contents.by_number[1] = 0;
  contents.records = std::move(records);
  return contents;
}

JournalComparison::Report Compare(const std::vector<JournalContents>& journals) {
  JournalComparison comparison;
  for (size_t i = 0; i < journals.size(); ++i) comparison.Add(Format("j{}", i), journals[i]);
  return comparison.Finish();
}

TEST(JoinedTest, RunsFindTheirDecisionAndTheFirstRunIsTheDecisionsOwn) {
  const JournalContents contents =
      Journal(0, {Ran(2, 8, 1, kRing, kLl), Decision(1, 8, kRing, kLl), Decision(2, 8, kRing, kLl),
                  Ran(2, 8, 2, kRing, kLl), Ran(0, 8, 3, kRing, kLl), Ran(9, 8, 4, kRing, kLl)});
  EXPECT_EQ(JoinRuns(contents),
            (std::vector<uint32_t>{2, kNoPartner, 0, 2, kNoPartner, kNoPartner}));
  EXPECT_TRUE(SeesRuns(contents)[0]);
}

TEST(JoinedTest, WhatWasLeftToTheLibraryCannotBeDoneOtherwise) {
  const JournalRecord ran = Ran(1, 8, 1, kRing, kSimple);
  EXPECT_EQ(CompareRun(Decision(1, 8, kRing, kSimple), ran), Obeyed::kYes);
  EXPECT_EQ(CompareRun(Decision(1, 8, kTree, kSimple), ran), Obeyed::kOtherPair);
  EXPECT_EQ(CompareRun(Decision(1, 8, kKeep, kLl), ran), Obeyed::kOtherPair);
  EXPECT_EQ(CompareRun(Decision(1, 8, kKeep, kSimple), ran), Obeyed::kYes);
  EXPECT_EQ(CompareRun(Decision(1, 8, kKeep, kKeep), ran), Obeyed::kYes);
  JournalRecord observed = Decision(1, 8, kTree, kSimple);
  observed.applied = false;
  EXPECT_EQ(CompareRun(observed, ran), Obeyed::kYes);
  JournalRecord nameless = ran;
  nameless.algorithm = kKeep;
  EXPECT_EQ(CompareRun(Decision(1, 8, kTree, kSimple), nameless), Obeyed::kYes);
  JournalRecord narrow = ran;
  narrow.channels = 2;
  EXPECT_EQ(CompareRun(Decision(1, 8, kRing, kSimple, 4), narrow), Obeyed::kOtherChannels);
}

TEST(CompareTest, RanksThatChoseTheSameAgree) {
  const std::vector<JournalRecord> records{
      Decision(1, 1024, kRing, kLl), Decision(2, 4096, kTree, kLl), Decision(3, 1024, kRing, kLl)};
  const JournalComparison::Report report = Compare({Journal(0, records), Journal(1, records)});
  EXPECT_TRUE(report.agree()) << Join(report.problems, "; ");
  EXPECT_EQ(report.Verdict(), "2 ranks, 3 calls: all ranks chose the same for every call");
  EXPECT_TRUE(report.notes.empty()) << Join(report.notes, "; ");
}

TEST(CompareTest, TheOddRankIsNamedWithWhatBothAskedFor) {
  std::vector<JournalRecord> odd{Decision(1, 1024, kRing, kLl), Decision(2, 4096, kTree, kLl)};
  const std::vector<JournalRecord> usual = odd;
  odd[1].algorithm = kRing;
  const JournalComparison::Report report =
      Compare({Journal(0, usual, 3), Journal(1, odd, 3), Journal(2, usual, 3)});
  EXPECT_FALSE(report.agree());
  EXPECT_EQ(report.different_calls, 1u);
  EXPECT_EQ(report.Verdict(), "3 ranks, 2 calls: the ranks chose differently for 1 of them");
  ASSERT_EQ(report.first.size(), 1u);
  EXPECT_EQ(report.first[0].Text(),
            "communicator 0x2a, allreduce 4KiB, number 1 of its size: ranks 0, 2 asked for tree/ll "
            "(call 2); rank 1 asked for ring/ll (call 2)");
}

TEST(CompareTest, WhatWasNotAppliedWasNotAskedFor) {
  JournalRecord observed = Decision(1, 1024, kTree, kLl);
  observed.applied = false;
  const JournalRecord none = Decision(1, 1024, kKeep, kKeep);
  EXPECT_TRUE(Compare({Journal(0, {observed}), Journal(1, {none})}).agree());
  EXPECT_FALSE(Compare({Journal(0, {Decision(1, 1024, kTree, kLl)}), Journal(1, {none})}).agree());
}

TEST(CompareTest, WhileLearningTheIndexIsTheCallAndTheLastQuestionCounts) {
  // Rank 1 asked about number 1 twice (a simulated group), and made its calls in another order.
  const JournalContents first =
      Journal(0, {Learning(1, 1000, 0, kRing, kLl), Learning(2, 1024, 1, kTree, kLl),
                  Learning(3, 64, 0, kTree, kLl)});
  const JournalContents second =
      Journal(1, {Learning(1, 64, 0, kTree, kLl), Learning(2, 1000, 0, kRing, kLl),
                  Learning(3, 1024, 1, kRing, kLl), Learning(4, 1024, 1, kTree, kLl)});
  const JournalComparison::Report report = Compare({first, second});
  EXPECT_TRUE(report.agree()) << Join(report.problems, "; ");
  EXPECT_EQ(report.calls, 3u);
  JournalContents wrong = second;
  wrong.records.pop_back();
  const JournalComparison::Report different = Compare({first, wrong});
  EXPECT_EQ(different.different_calls, 1u);
  ASSERT_EQ(different.first.size(), 1u);
  EXPECT_EQ(different.first[0].which, "number 1 of its size band");
  // For any size: ranks agree on the number in the band.
  EXPECT_EQ(Compare({Journal(0, {Learning(1, 1000, 0, kRing, kLl)}),
                     Journal(1, {Learning(1, 1024, 0, kTree, kLl)})})
                .different_calls,
            1u);
}

TEST(CompareTest, AQuestionThatNeverRanDoesNotShiftThoseThatDid) {
  JournalContents simulated = Journal(
      1, {Decision(1, 64, kTree, kLl), Decision(2, 64, kRing, kLl), Ran(2, 64, 1, kRing, kLl)});
  const JournalContents plain =
      Journal(0, {Decision(1, 64, kRing, kLl), Ran(1, 64, 1, kRing, kLl)});
  const JournalComparison::Report report = Compare({plain, simulated});
  EXPECT_TRUE(report.agree()) << Join(report.problems, "; ");
  EXPECT_EQ(report.only_asked, 1u);
  // The last one may be what the job hangs in: it is compared.
  simulated.records.push_back(Decision(3, 64, kTree, kLl));
  JournalContents hanging = plain;
  hanging.records.push_back(Decision(2, 64, kRing, kLl));
  EXPECT_EQ(Compare({hanging, simulated}).different_calls, 1u);
}

TEST(CompareTest, RunsAreComparedByTheLibrarysNumber) {
  const JournalContents first = Journal(0, {Ran(0, 64, 7, kRing, kLl), Ran(0, 64, 8, kRing, kLl)});
  const JournalContents other = Journal(1, {Ran(0, 64, 8, kTree, kLl), Ran(0, 64, 7, kRing, kLl)});
  const JournalComparison::Report report = Compare({first, other});
  EXPECT_FALSE(report.agree());
  EXPECT_EQ(report.runs, 2u);
  EXPECT_EQ(report.different_runs, 1u);
  EXPECT_TRUE(Holds(report.first[0].Text(), "run 8: rank 0 ran ring/ll"));
  EXPECT_TRUE(Holds(report.Verdict(), "ran different things in 1 run"));
}

TEST(CompareTest, ANameWeDoNotKnowAgreesWithAnyButDoesNotHideOthers) {
  const JournalContents nameless = Journal(0, {Ran(0, 64, 1, kKeep, kKeep)}, 3);
  const JournalContents ring = Journal(1, {Ran(0, 64, 1, kRing, kLl)}, 3);
  const JournalContents tree = Journal(2, {Ran(0, 64, 1, kTree, kLl)}, 3);
  EXPECT_EQ(Compare({nameless, ring}).different_runs, 0u);
  EXPECT_EQ(Compare({ring, nameless}).different_runs, 0u);
  EXPECT_EQ(Compare({nameless, ring, tree}).different_runs, 1u);
  EXPECT_EQ(Compare({ring, nameless, tree}).different_runs, 1u);
}

TEST(CompareTest, AShorterJournalIsAProblemOnlyWhereItIsComplete) {
  const std::vector<JournalRecord> three{Decision(1, 64, kRing, kLl), Decision(2, 64, kRing, kLl),
                                         Decision(3, 64, kRing, kLl)};
  JournalContents longer = Journal(0, three);
  JournalContents shorter = Journal(1, {three[0], three[1]});
  const JournalComparison::Report report = Compare({longer, shorter});
  EXPECT_FALSE(report.agree());
  EXPECT_EQ(report.lonely, 1u);
  EXPECT_TRUE(AnyHolds(report.problems, "allreduce 64, number 3 of its size, not on rank 1"))
      << Join(report.problems, "; ");
  for (const int how : {0, 1, 2}) {
    JournalContents cut = shorter;
    if (how == 0) cut.ended = false;
    if (how == 1) cut.dropped = 1;
    if (how == 2) cut.bad_lines = 1;
    const JournalComparison::Report fine = Compare({longer, cut});
    EXPECT_TRUE(fine.agree()) << how;
    EXPECT_EQ(fine.cut_off, 1u) << how;
  }
}

TEST(CompareTest, MissingRanksAndDifferentPoliciesAreNotedAndTwinsAreAProblem) {
  const std::vector<JournalRecord> records{Decision(1, 64, kRing, kLl)};
  JournalContents other = Journal(3, records, 4);
  other.communicators[0].digest = "e";
  const JournalComparison::Report report = Compare({Journal(0, records, 4), other});
  EXPECT_TRUE(report.agree()) << Join(report.problems, "; ");
  EXPECT_TRUE(AnyHolds(report.notes, "has 4 ranks, and journals of 2; missing: ranks 1, 2"))
      << Join(report.notes, "; ");
  EXPECT_TRUE(AnyHolds(report.notes, "the policies differ: d on rank 0; e on rank 3"));
  const JournalComparison::Report twins = Compare({Journal(0, records), Journal(0, records)});
  EXPECT_TRUE(AnyHolds(twins.problems, "several journals claim to be rank 0"));
}

TEST(CompareTest, NothingToCompareIsNoAgreement) {
  const std::vector<JournalRecord> records{Decision(1, 64, kRing, kLl)};
  EXPECT_FALSE(Compare({Journal(0, records)}).agree());
  JournalContents other_job = Journal(1, records);
  other_job.communicators[0].id = 43;
  const JournalComparison::Report report = Compare({Journal(0, records), other_job});
  EXPECT_FALSE(report.agree());
  EXPECT_EQ(report.Verdict(), "2 journals: nothing could be compared");
  EXPECT_FALSE(Compare({Journal(0, {}), Journal(1, {})}).agree());
}

TEST(CompareTest, AnIdUsedAgainIsAnotherCommunicator) {
  const auto twice = [](int rank, int second) {
    JournalContents contents = Journal(rank, {Decision(1, 64, kRing, kLl)});
    JournalComm again = contents.communicators[0];
    again.number = 2;
    contents.by_number[2] = 1;
    contents.communicators.push_back(again);
    JournalRecord record = Decision(1, 64, second, kLl);
    record.communicator = 2;
    contents.records.push_back(record);
    return contents;
  };
  EXPECT_TRUE(Compare({twice(0, kTree), twice(1, kTree)}).agree());
  const JournalComparison::Report report = Compare({twice(0, kTree), twice(1, kRing)});
  EXPECT_EQ(report.different_calls, 1u);
  EXPECT_TRUE(Holds(report.first[0].Text(), "number 2 with this id")) << report.first[0].Text();
}

TEST(CompareTest, OneProcessMayHoldSeveralRanks) {
  JournalContents contents = Journal(0, {Decision(1, 64, kRing, kLl)});
  JournalComm second = contents.communicators[0];
  second.number = 2;
  second.rank = 1;
  contents.by_number[2] = 1;
  contents.communicators.push_back(second);
  JournalRecord record = Decision(1, 64, kTree, kLl);
  record.communicator = 2;
  contents.records.push_back(record);
  EXPECT_EQ(Compare({contents}).different_calls, 1u);
  contents.records[1].algorithm = kRing;
  EXPECT_TRUE(Compare({contents}).agree());
}

TEST(CompareTest, CountsWhatIsWorthKnowing) {
  JournalRecord unavailable = Decision(1, 64, kTree, kLl);
  unavailable.applied = false;
  unavailable.reason = Reason::kUnavailable;
  JournalRecord bypassed;
  bypassed.kind = RecordKind::kBypassed;
  bypassed.communicator = 1;
  const std::vector<JournalRecord> records{unavailable, Decision(2, 128, kTree, kLl),
                                           Ran(2, 128, 1, kRing, kLl), bypassed};
  const JournalComparison::Report report = Compare({Journal(0, records), Journal(1, records)});
  EXPECT_TRUE(report.agree());
  EXPECT_EQ(report.unavailable, 2u);
  EXPECT_EQ(report.other_pair, 2u);
  EXPECT_EQ(report.bypassed, 2u);
}

TEST(CompareTest, SpreadIsTheMedianOfSlowestMinusFastest) {
  std::vector<JournalRecord> fast;
  std::vector<JournalRecord> slow;
  for (uint64_t i = 1; i <= 3; ++i) {
    fast.push_back(Ran(0, 64, i, kRing, kLl, 10e-6));
    slow.push_back(Ran(0, 64, i, kRing, kLl, 10e-6 + 1e-6 * static_cast<double>(i)));
    slow.back().gpu_start_ns += 500;
  }
  JournalContents other = Journal(1, slow);
  const JournalComparison::Report report = Compare({Journal(0, fast), other});
  ASSERT_EQ(report.spreads.size(), 1u);
  EXPECT_EQ(report.spreads[0].runs, 3u);
  EXPECT_NEAR(report.spreads[0].seconds, 12e-6, 1e-12);
  EXPECT_NEAR(report.spreads[0].spread, 2e-6, 1e-12);
  EXPECT_NEAR(report.spreads[0].starts, 500e-9, 1e-12);
  other.host = "another";
  EXPECT_LT(Compare({Journal(0, fast), other}).spreads[0].starts, 0) << "no clock compares them";
}

TEST(RanksTextTest, ReadsWell) {
  EXPECT_EQ(RanksText({3}), "rank 3");
  EXPECT_EQ(RanksText({1, 0}), "ranks 0, 1");
  EXPECT_EQ(RanksText({5, 2, 1, 0, 2}), "ranks 0-2, 5");
}

}  // namespace
}  // namespace diapason::journal
