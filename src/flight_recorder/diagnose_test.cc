// What the dumps of a few ranks lead to.
#include "flight_recorder/diagnose.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "flight_recorder/read.h"

namespace diapason::flight_recorder {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Fields {
  std::string name;  // "all_reduce", "send 0->1"
  int sequence = 1;
  std::string state = "completed";
  std::string inputs = "[8]";
  std::string outputs = "[8]";
  std::string type = "Float";
  std::string group = "0";
  bool p2p = false;
};

// A rank that is written call by call.
class Rank {
 public:
  explicit Rank(std::string config) : config_(std::move(config)) {}
  Rank& Add(const Fields& fields) {
    const bool p2p =
        fields.p2p || fields.name.starts_with("send") || fields.name.starts_with("recv");
    entries_ += Format(
        "{}{{\"record_id\":{},\"pg_id\":{},\"process_group\":[\"{}\",\"\"],"
        "\"collective_seq_id\":{},\"p2p_seq_id\":{},\"profiling_name\":\"nccl:{}\","
        "\"input_sizes\":[{}],\"output_sizes\":[{}],\"input_dtypes\":[\"{}\"],"
        "\"output_dtypes\":[\"{}\"],\"state\":\"{}\",\"is_p2p\":{},\"time_created_ns\":{},"
        "\"frames\":[{{\"name\":\"all_reduce\",\"filename\":\"/torch/distributed/c10d.py\","
        "\"line\":1}},{{\"name\":\"step\",\"filename\":\"train.py\",\"line\":{}}}]}}",
        entries_.empty() ? "" : ",", record_, fields.group, fields.group, p2p ? 0 : fields.sequence,
        p2p ? fields.sequence : 0, fields.name, fields.inputs, fields.outputs, fields.type,
        fields.type, fields.state, p2p ? "true" : "false", 1700000000000000000 + record_,
        10 + record_);
    ++record_;
    return *this;
  }
  // The buffer has lost what came before.
  Rank& From(int record) {
    record_ = record;
    return *this;
  }
  std::string Text() const {
    return Format("{{\"version\":\"2.9\",\"pg_config\":{{{}}},\"entries\":[{}]}}", config_,
                  entries_);
  }

 private:
  std::string config_;
  std::string entries_;
  int record_ = 0;
};

std::string Group(const std::string& name, const std::string& description,
                  const std::string& ranks) {
  return Format("\"{}\":{{\"desc\":\"{}\",\"ranks\":\"[{}]\"}}", name, description, ranks);
}

std::vector<Finding> Find(const std::vector<Rank>& ranks) {
  FlightRecord record;
  for (size_t i = 0; i < ranks.size(); ++i) {
    EXPECT_TRUE(ReadDump(-1, ranks[i].Text(), "rank" + std::to_string(i), &record).ok());
  }
  return Diagnose(record);
}

std::vector<Rank> World(int ranks) {
  std::vector<std::string> numbers;
  for (int i = 0; i < ranks; ++i) numbers.push_back(std::to_string(i));
  return std::vector<Rank>(static_cast<size_t>(ranks),
                           Rank(Group("0", "default_pg", Join(numbers, ", "))));
}

// One call of each rank as collective 1, all open.
std::vector<Finding> Called(const std::vector<Fields>& calls) {
  std::vector<Rank> ranks = World(static_cast<int>(calls.size()));
  for (size_t i = 0; i < calls.size(); ++i) {
    Fields call = calls[i];
    call.state = "started";
    ranks[i].Add(call);
  }
  return Find(ranks);
}

std::string Title(const std::vector<Finding>& findings, const std::string& id) {
  return findings.empty() || findings[0].id != id ? "none" : findings[0].title;
}

TEST(FlightMismatch, NamesTheOddRank) {
  EXPECT_EQ(Title(Called({{"all_reduce", 1, "", "[4096]"},
                          {"_all_gather_base", 1, "", "[2048]"},
                          {"_all_gather_base", 1, "", "[2048]"},
                          {"_all_gather_base", 1, "", "[2048]"}}),
                  "flight.mismatch"),
            "Rank 0 differs from ranks 1 to 3 in collective 1 of group 0 (default_pg): the "
            "operation differs, it calls all_reduce [4096] Float where the others call "
            "_all_gather_base [2048] Float");
  EXPECT_TRUE(Contains(
      Title(
          Called({{"all_reduce"}, {"all_reduce"}, {"all_reduce", 1, "", "[8]", "[8]", "BFloat16"}}),
          "flight.mismatch"),
      "Rank 2 differs from ranks 0 and 1 in collective 1 of group 0 "
      "(default_pg): the type differs"));
}

TEST(FlightMismatch, TiesNameBoth) {
  EXPECT_EQ(Title(Called({{"all_reduce", 1, "", "[8]"}, {"all_reduce", 1, "", "[9]"}}),
                  "flight.mismatch"),
            "Rank 0 and rank 1 differ in collective 1 of group 0 (default_pg): all_reduce [8] "
            "Float and all_reduce [9] Float");
}

TEST(FlightMismatch, WhatMayDiffer) {
  // All of these are open on all ranks, so that only the network is left.
  const std::vector<std::vector<Fields>> cases = {
      {{"all_to_all", 1, "", "[10]", "[20]"}, {"all_to_all", 1, "", "[20]", "[10]"}},
      {{"gather", 1, "", "[8]", "[8], [8]"}, {"gather", 1, "", "[8]", ""}},
      {{"scatter", 1, "", "[8], [8]", "[8]"}, {"scatter", 1, "", "", "[8]"}},
      {{"all_gather", 1, "", "[3]", "[3], [5]"}, {"all_gather", 1, "", "[5]", "[3], [5]"}},
      {{"reduce_scatter", 1, "", "[3], [5]", "[3]"}, {"reduce_scatter", 1, "", "[3], [5]", "[5]"}},
      {{"all_reduce", 1, "", "[2,12]"}, {"all_reduce", 1, "", "[24]"}},
      {{"_broadcast_oop", 1, "", "[2]"}, {"_broadcast_oop", 1, "", "[24]"}},
  };
  for (const std::vector<Fields>& calls : cases) {
    const std::vector<Finding> findings = Called(calls);
    ASSERT_EQ(findings.size(), 1U) << calls[0].name;
    EXPECT_EQ(findings[0].id, "flight.network") << findings[0].title;
  }
  EXPECT_TRUE(Contains(
      Title(Called({{"all_to_all", 1, "", "[10]", "[20]"}, {"all_to_all", 1, "", "[20]", "[11]"}}),
            "flight.mismatch"),
      "together they send 30 elements and expect 31"));
}

TEST(FlightMismatch, OrderOfCalls) {
  std::vector<Rank> ranks = World(3);
  for (int i = 0; i < 3; ++i) {
    const bool odd = i == 1;
    ranks[static_cast<size_t>(i)].Add({odd ? "all_reduce" : "broadcast", 1, "scheduled"});
    ranks[static_cast<size_t>(i)].Add({odd ? "broadcast" : "all_reduce", 2, "scheduled"});
  }
  EXPECT_TRUE(Contains(Title(Find(ranks), "flight.mismatch"), "Rank 1 differs from ranks 0 and 2"));
  EXPECT_TRUE(Contains(Title(Find(ranks), "flight.mismatch"),
                       "they make the same two calls in another order"));
}

TEST(FlightMismatch, DroppedEntriesAreNone) {
  // Rank 1 has lost its first two entries.
  std::vector<Rank> ranks = World(2);
  ranks[0].Add({"broadcast", 1}).Add({"all_reduce", 2}).Add({"all_reduce", 3});
  ranks[1].From(2).Add({"all_reduce", 3});
  EXPECT_TRUE(Find(ranks).empty());
}

TEST(FlightWaits, ChainOverTwoGroups) {
  std::vector<Rank> ranks = {Rank(Group("1", "tp", "0, 1")),
                             Rank(Group("1", "tp", "0, 1") + "," + Group("4", "pp", "1, 2")),
                             Rank(Group("4", "pp", "1, 2"))};
  ranks[0].Add({"all_reduce", 1, "started", "[64]", "[64]", "Float", "1"});
  ranks[1].Add({"recv 0<-1", 1, "started", "[64]", "[64]", "Float", "4"});
  const std::vector<Finding> findings = Find(ranks);
  EXPECT_EQ(
      Title(findings, "flight.behind"),
      "Rank 2 is the root of the wait: it did not send to rank 1 in group 4 (pp); all other ranks "
      "wait for it");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].evidence[1],
            "rank 1 waits for rank 2 to send in group 4 (pp): recv [64] Float, called from "
            "train.py:10 step");
  EXPECT_EQ(findings[0].evidence[2],
            "rank 0 waits for rank 1 in collective 1 of group 1 (tp), all_reduce [64] Float, "
            "called from train.py:10 step");
}

TEST(FlightWaits, SendsThatMatchAreNotMissing) {
  std::vector<Rank> ranks = World(2);
  ranks[0].Add({"send 0->1", 1, "started"});
  ranks[1].Add({"recv 1<-0", 1, "started"});
  EXPECT_EQ(Find(ranks)[0].id, "flight.network");
  ranks[1].Add({"recv 1<-0", 2, "scheduled"});
  EXPECT_TRUE(Contains(Title(Find(ranks), "flight.network"), "The send to rank 1"));
}

TEST(FlightWaits, SendAndReceiveThatDiffer) {
  std::vector<Rank> ranks = World(2);
  ranks[0].Add({"send 0->1", 1, "started", "[8]"});
  ranks[1].Add({"recv 1<-0", 1, "started", "[16]", "[16]"});
  EXPECT_EQ(Title(Find(ranks), "flight.mismatch"),
            "The send of rank 0 and the receive of rank 1 in group 0 (default_pg) differ: send [8] "
            "Float and recv [16] Float");
}

TEST(FlightWaits, BatchesTakeTheStateOfTheirEnd) {
  // The recorder leaves the operations of a batch as scheduled.
  std::vector<Rank> ranks = World(2);
  Fields end{"coalesced", 1, "completed", "", "", "", "0", true};
  ranks[0].Add({"send 0->1", 1, "scheduled"}).Add({"recv 0<-1", 1, "scheduled"}).Add(end);
  ranks[1].Add({"recv 1<-0", 1, "scheduled"}).Add({"send 1->0", 1, "scheduled"}).Add(end);
  EXPECT_TRUE(Find(ranks).empty());
  // In a batch the order does not matter.
  end.state = "started";
  end.sequence = 2;
  ranks[0].Add({"send 0->1", 2, "scheduled"}).Add({"recv 0<-1", 2, "scheduled"}).Add(end);
  ranks[1].Add({"send 1->0", 2, "scheduled"}).Add({"recv 1<-0", 2, "scheduled"}).Add(end);
  EXPECT_EQ(Find(ranks)[0].id, "flight.network");
}

TEST(FlightWaits, CrossedSends) {
  // Both send first, one by one.
  std::vector<Rank> ranks = World(2);
  ranks[0].Add({"send 0->1", 1, "started"}).Add({"recv 0<-1", 2, "scheduled"});
  ranks[1].Add({"send 1->0", 1, "started"}).Add({"recv 1<-0", 2, "scheduled"});
  EXPECT_TRUE(Contains(Title(Find(ranks), "flight.deadlock"),
                       "Ranks 0 and 1 wait for each other (deadlock)"));
  // The same where the receives were not posted.
  ranks = World(2);
  ranks[0].Add({"send 0->1", 1, "started"});
  ranks[1].Add({"send 1->0", 1, "started"});
  EXPECT_TRUE(Contains(Title(Find(ranks), "flight.deadlock"), "Ranks 0 and 1"));
}

TEST(FlightWaits, MissingDumpIsNotAMissingGroup) {
  // Rank 2 is not a member of group 1, rank 3 has no dump.
  std::vector<Rank> ranks = World(4);
  ranks.pop_back();
  const std::string world = Group("0", "default_pg", "0, 1, 2, 3");
  ranks[0] = ranks[1] = Rank(world + "," + Group("1", "tp", "0, 1"));
  for (Rank& rank : ranks) rank.Add({"all_reduce", 1});
  ranks[0].Add({"all_reduce", 1, "completed", "[8]", "[8]", "Float", "1"});
  ranks[1].Add({"all_reduce", 1, "completed", "[8]", "[8]", "Float", "1"});
  std::vector<Finding> findings = Find(ranks);
  EXPECT_EQ(Title(findings, "flight.missing-dump"), "No dump of rank 3");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  for (Rank& rank : ranks) rank.Add({"all_reduce", 2, "scheduled"});
  findings = Find(ranks);
  EXPECT_TRUE(Contains(Title(findings, "flight.missing-dump"), "others wait in operations"));
  EXPECT_EQ(findings[0].severity, Severity::kError);
}

TEST(FlightWaits, EarlierOperationsOfTheGroupAreDone) {
  // An entry that stayed open although a later collective of the group completed.
  std::vector<Rank> ranks = World(2);
  ranks[0].Add({"all_reduce", 1, "scheduled"}).Add({"all_reduce", 2});
  ranks[1].Add({"all_reduce", 1}).Add({"all_reduce", 2});
  EXPECT_TRUE(Find(ranks).empty());
}

TEST(FlightWaits, DumpsThatBreakOffAccuseNoRank) {
  std::vector<Rank> ranks = World(2);
  ranks[0].Add({"all_reduce", 1}).Add({"all_reduce", 2, "started"});
  ranks[1].Add({"all_reduce", 1}).Add({"all_reduce", 2, "started"});
  FlightRecord record;
  ASSERT_TRUE(ReadDump(-1, ranks[0].Text(), "rank0", &record).ok());
  const std::string whole = ranks[1].Text();
  ASSERT_FALSE(ReadDump(-1, whole.substr(0, whole.size() - 60), "rank1", &record).ok());
  for (const Finding& finding : Diagnose(record)) EXPECT_NE(finding.severity, Severity::kError);
}

TEST(FlightRemarks, NewerVersionsAndSecondDumps) {
  FlightRecord record;
  std::string text = World(1)[0].Add({"all_reduce", 1}).Text();
  text.replace(text.find("2.9"), 3, "2.99");
  ASSERT_TRUE(ReadDump(-1, text, "rank0", &record).ok());
  ASSERT_TRUE(ReadDump(-1, text, "rank0.json", &record).ok());
  const std::vector<Finding> findings = Diagnose(record);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].id, "flight.twice");
  EXPECT_EQ(findings[1].id, "flight.version");
}

TEST(FlightOverview, RanksAtTheSamePlaceShareALine) {
  FlightRecord record;
  std::vector<Rank> ranks = World(3);
  for (size_t i = 0; i < 3; ++i) {
    ranks[i].Add({"all_reduce", 1});
    if (i < 2) ranks[i].Add({"all_reduce", 2, "started"});
    ASSERT_TRUE(ReadDump(-1, ranks[i].Text(), "rank" + std::to_string(i), &record).ok());
  }
  const std::vector<GroupLine> lines = Overview(record, false);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].ranks, std::vector<int64_t>{2});
  EXPECT_EQ(lines[1].ranks, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(lines[1].open, "all_reduce [8] Float, started");
  EXPECT_EQ(lines[1].frame, "train.py:11 step");
  EXPECT_EQ(lines[1].entered, 2);
  EXPECT_EQ(lines[1].completed, 1);
}

}  // namespace
}  // namespace diapason::flight_recorder
