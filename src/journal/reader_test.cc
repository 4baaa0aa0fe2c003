#include "journal/reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "base/temporary_file.h"
#include "base/text.h"
#include "journal/testing.h"

namespace diapason::journal {
namespace {

TEST(ReaderTest, ACommunicatorsLaterLineAddsToItAndCannotMakeItAnother) {
  JournalComm communicator = RcclCommunicator(2);
  communicator.rank = 3;
  communicator.name = "dp";
  const std::string known = CommunicatorLine(communicator) + "\n";
  JournalContents contents = ParseJournal(JournalWith(known), "j").value();
  EXPECT_EQ(contents.bad_lines, 0u);
  EXPECT_EQ(contents.communicators.size(), 2u);
  EXPECT_EQ(contents.Find(2)->rank, 3);
  communicator.library = Library::kOpenMpi;
  contents = ParseJournal(JournalWith(CommunicatorLine(communicator)), "j").value();
  EXPECT_EQ(contents.bad_lines, 1u);
  EXPECT_EQ(contents.Find(2)->library, Library::kRccl);
}

TEST(ReaderTest, TheBeginningOfAFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/j";
  const std::string line = RecordLine(SomeRecord(), Library::kNccl) + "\n";
  const std::string text = JournalWith(line + line);
  std::ofstream(path) << text;
  EXPECT_EQ(ReadJournalHead(path, text.size() + 1).value().records.size(), 2u);
  const JournalContents cut = ReadJournalHead(path, text.size() - 1).value();
  EXPECT_EQ(cut.records.size(), 1u);
  EXPECT_EQ(cut.bad_lines, 0u);
  EXPECT_FALSE(ReadJournalHead(path, 10).ok());
  EXPECT_FALSE(ReadJournalHead(path + ".none", 10).ok());
}

TEST(ReaderTest, EveryWordOfEveryLibraryComesBack) {
  for (const Library library : {Library::kNccl, Library::kRccl}) {
    std::string lines;
    std::vector<JournalRecord> records;
    for (int collective = 0; collective < kAskedCollectiveCount; ++collective) {
      for (int reason = 0; reason <= static_cast<int>(Reason::kNumerics); ++reason) {
        for (int algorithm = kKeep; algorithm <= kPat; ++algorithm) {
          JournalRecord record = SomeRecord();
          record.communicator = library == Library::kNccl ? 1 : 2;
          record.collective = static_cast<uint8_t>(collective);
          record.reason = static_cast<Reason>(reason);
          record.algorithm = static_cast<int8_t>(algorithm);
          record.protocol = static_cast<int8_t>((algorithm + 1) % 4 - 1);
          record.default_algorithm = record.algorithm;
          record.default_protocol = static_cast<int8_t>(algorithm == kKeep ? kKeep : kLl);
          records.push_back(record);
          lines += RecordLine(record, library) + "\n";
        }
      }
    }
    const JournalContents contents = ParseJournal(JournalWith(lines), "j").value();
    EXPECT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
    ASSERT_EQ(contents.records.size(), records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(contents.records[i].collective, records[i].collective);
      EXPECT_EQ(contents.records[i].reason, records[i].reason);
      EXPECT_EQ(contents.records[i].algorithm, records[i].algorithm);
      EXPECT_EQ(contents.records[i].protocol, records[i].protocol);
      EXPECT_EQ(contents.records[i].default_algorithm, records[i].default_algorithm);
    }
  }
}

TEST(ReaderTest, ADecisionWhoseDefaultHasNoNameIsStillADecision) {
  // RCCL's tables have a fourth protocol, newer libraries more algorithms, without names here.
  JournalRecord record = SomeRecord();
  record.communicator = 2;
  record.bytes = 4096;
  record.default_algorithm = kRing;
  record.default_protocol = 3;
  const std::string text = JournalWith(RecordLine(record, Library::kRccl) + "\n");
  const JournalContents contents = ParseJournal(text, "j").value();
  EXPECT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
  ASSERT_EQ(contents.records.size(), 1u);
  EXPECT_EQ(contents.records[0].bytes, 4096u);
}

TEST(ReaderTest, EveryFieldOfACommunicatorComesBack) {
  JournalComm communicator;
  communicator.number = UINT32_MAX;
  communicator.id = 0xfedcba9876543210ull;
  communicator.api = 5;
  communicator.library = Library::kRccl;
  communicator.library_version = 22803;
  communicator.shape = {INT64_MAX, 16};
  communicator.mode = "observe";
  communicator.policy = "/a \"b\"\n.conf";
  communicator.digest = "fnv1a64:0123456789abcdef";
  communicator.rows = 12;
  communicator.chain = "libx.so (v4)";
  communicator.rank = INT32_MAX;
  communicator.name = "tp \"0\"";
  communicator.store = "shm:/dev/shm/diapason-1000";
  communicator.agreed = "learn";
  const JournalContents contents =
      ParseJournal(kFirstLine + CommunicatorLine(communicator), "j").value();
  ASSERT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
  ASSERT_EQ(contents.communicators.size(), 1u);
  const JournalComm& back = contents.communicators[0];
  EXPECT_EQ(contents.Find(UINT32_MAX), &back);
  EXPECT_EQ(contents.Find(1), nullptr);
  EXPECT_EQ(back.number, communicator.number);
  EXPECT_EQ(back.id, communicator.id);
  EXPECT_EQ(back.api, communicator.api);
  EXPECT_EQ(back.library, communicator.library);
  EXPECT_EQ(back.library_version, communicator.library_version);
  EXPECT_EQ(back.shape, communicator.shape);
  EXPECT_EQ(back.mode, communicator.mode);
  EXPECT_EQ(back.policy, communicator.policy);
  EXPECT_EQ(back.digest, communicator.digest);
  EXPECT_EQ(back.rows, communicator.rows);
  EXPECT_EQ(back.chain, communicator.chain);
  EXPECT_EQ(back.rank, communicator.rank);
  EXPECT_EQ(back.name, communicator.name);
  EXPECT_EQ(back.store, communicator.store);
  EXPECT_EQ(back.agreed, communicator.agreed);
}

TEST(ReaderTest, GarbageIsCountedAndTheFirstIsReported) {
  const std::string good = RecordLine(SomeRecord(), Library::kNccl) + "\n";
  const JournalContents contents =
      ParseJournal(
          JournalWith(good + "\n" + "rubbish\n" + good + "[1,2]\n" + "{}\n" + "{\"type\":7}\n" +
                      "{\"type\":\"news\"}\n" + "\xff\xfe\n" + std::string(3, '\0') + "\n" + good +
                      "{\"type\":\"dropped\",\"count\":5}\n{\"type\":\"end\",\"dropped\":5}\n"),
          "j")
          .value();
  EXPECT_EQ(contents.records.size(), 3u);
  EXPECT_EQ(contents.bad_lines, 7u);
  EXPECT_EQ(contents.first_bad_line, 6) << "after the head, a record and a blank line";
  EXPECT_TRUE(Holds(contents.first_bad_why, "no JSON object"));
  EXPECT_EQ(contents.dropped, 5u);
  EXPECT_TRUE(contents.ended);
}

TEST(ReaderTest, AFieldThatIsMissingOrOfAnotherKindMakesALineBad) {
  const std::string decision = RecordLine(SomeRecord(), Library::kNccl);
  const std::string communicator = CommunicatorLine(RcclCommunicator(9));
  JournalRecord ran = SomeRecord();
  ran.kind = RecordKind::kRan;
  ran.seconds = 1;
  JournalRecord reward = SomeRecord();
  reward.kind = RecordKind::kReward;
  const std::vector<std::pair<std::string, std::string>> changes{
      {"\"bytes\":0", "\"bytes\":-1"},
      {"\"bytes\":0", "\"bytes\":1.5"},
      {"\"bytes\":0", "\"bytes\":18446744073709551616"},
      {"\"bytes\":0", "\"bytes\":\"0\""},
      {"\"bytes\":0", "\"other\":0"},
      {"\"comm\":1", "\"comm\":4294967296"},
      {"\"reg_buff\":0", "\"reg_buff\":128"},
      {"\"reg_buff\":0", "\"reg_buff\":-129"},
      {"\"channels\":0", "\"channels\":32768"},
      {"\"pipe_ops\":0", "\"pipe_ops\":2147483648"},
      {"\"applied\":false", "\"applied\":0"},
      {"\"allreduce\"", "\"allgossip\""},
      {"\"allreduce\"", "\"alltoall\""},
      {"\"no-row\"", "\"because\""},
      {"\"algorithm\":\"-1\"", "\"algorithm\":\"rign\""},
      {"\"algorithm\":\"-1\"", "\"algorithm\":-1"},
      {"\"protocol\":\"-1\"", "\"protocol\":\"ll64\""},
      {"\"applied\":false", "\"applied\":false,\"default_algorithm\":\"ring\""},
      {"\"applied\":false", "\"applied\":false,\"table\":7"},
      {"\"applied\":false", "\"applied\":false,\"table\":[]"},
      {"\"applied\":false", "\"applied\":false,\"table\":[[]]"},
      {"\"applied\":false", "\"applied\":false,\"table\":[[1,2],[3]]"},
      {"\"applied\":false", "\"applied\":false,\"table\":[[1,\"x\"]]"},
      {"\"applied\":false", "\"applied\":false,\"epoch\":1"},
      {"\"applied\":false", "\"applied\":false,\"epoch\":-1,\"index\":0"},
      {"\"applied\":false", "\"applied\":false,\"captured\":1"},
      {"\"us\":1000000", "\"us\":-1"},
      {"\"us\":1000000", "\"us\":1e300"},
      {"\"us\":1000000", "\"us\":null"},
      {"\"sequence\":0", "\"sequence\":-1"},
      {"\"sequence\":0", "\"other\":0"},
      {"\"skew\":0", "\"skew\":-1"},
      {"\"skew\":0", "\"skew\":1e39"},
      {"\"samples\":0", "\"samples\":\"0\""},
      {"\"samples\":0", "\"samples\":0,\"iteration\":1"},
      {"\"comm\":9", "\"comm\":-9"},
      {"\"comm\":9", "\"comm\":9,\"rank\":-2"},
      {"\"comm\":9", "\"comm\":9,\"rank\":\"1\""},
      {"\"comm\":9", "\"comm\":9,\"name\":1"},
      {"\"nodes\":0", "\"nodes\":9223372036854775808"},
      {"\"rows\":0", "\"rows\":-1"},
      {"\"rccl\"", "\"xccl\""},
      {"\"mode\":\"\"", "\"mode\":null"},
      {"\"id\":\"0x0\"", "\"id\":0"},
      {"\"id\":\"0x0\"", "\"id\":\"nonsense\""},
      {"\"id\":\"0x0\"", "\"id\":\"0x10000000000000000\""},
  };
  const std::vector<std::string> lines{decision, RecordLine(ran, Library::kNccl),
                                       RecordLine(reward, Library::kNccl), communicator};
  ASSERT_EQ(ParseJournal(JournalWith(Join(lines, "\n")), "j").value().bad_lines, 0u);
  for (const auto& [from, to] : changes) {
    std::string line = *std::find_if(lines.begin(), lines.end() - 1,
                                     [&](const std::string& one) { return Holds(one, from); });
    ASSERT_TRUE(Holds(line, from)) << from;
    line.replace(line.find(from), from.size(), to);
    const JournalContents contents = ParseJournal(JournalWith(line + "\n"), "j").value();
    EXPECT_EQ(contents.bad_lines, 1u) << line;
    EXPECT_EQ(contents.records.size(), 0u) << line;
    EXPECT_EQ(contents.communicators.size(), 2u) << line;
    EXPECT_FALSE(contents.first_bad_why.empty()) << line;
  }
}

TEST(ReaderTest, ATableLargerThanARecordIsRefused) {
  JournalRecord record = SomeRecord();
  record.table_algorithms = 10;
  record.table_protocols = 4;
  const std::string full = RecordLine(record, Library::kNccl);
  EXPECT_EQ(ParseJournal(JournalWith(full), "j").value().records.size(), 1u);
  const std::string larger = full.substr(0, full.size() - 2) + ",[0,0,0,0]]}";
  EXPECT_EQ(ParseJournal(JournalWith(larger), "j").value().bad_lines, 1u);
}

TEST(ReaderTest, ADecisionOfAnUnknownCommunicatorIsNotGuessed) {
  JournalRecord record = SomeRecord();
  record.communicator = 3;
  const std::string line = RecordLine(record, Library::kNccl) + "\n";
  const JournalContents contents =
      ParseJournal(JournalWith(line + CommunicatorLine(RcclCommunicator(3)) + "\n" + line), "j")
          .value();
  EXPECT_EQ(contents.bad_lines, 1u);
  EXPECT_EQ(contents.first_bad_line, 4);
  EXPECT_TRUE(Holds(contents.first_bad_why, "communicator not seen before"));
  EXPECT_EQ(contents.records.size(), 1u) << "the one after its communicator";
}

TEST(ReaderTest, ALastLineCutShortIsOneBadLine) {
  const std::string line = RecordLine(SomeRecord(), Library::kNccl);
  for (size_t length = 1; length < line.size(); ++length) {
    const JournalContents contents =
        ParseJournal(JournalWith(line + "\n" + line.substr(0, length)), "j").value();
    ASSERT_EQ(contents.records.size(), 1u) << length;
    ASSERT_EQ(contents.bad_lines, 1u) << length;
    EXPECT_FALSE(contents.ended);
  }
}

TEST(ReaderTest, WhatIsNoJournalOfOursIsRefused) {
  for (const std::string text :
       {"", "\n\n", "rubbish\n", "{\"type\":\"end\"}\n", "{\"type\":\"journal\"}\n",
        "{\"type\":\"journal\",\"version\":\"1\",\"host\":\"h\",\"pid\":7}\n",
        "{\"type\":\"journal\",\"version\":0,\"host\":\"h\",\"pid\":7}\n",
        "{\"type\":\"journal\",\"version\":-1,\"host\":\"h\",\"pid\":7}\n"}) {
    const Result<JournalContents> contents = ParseJournal(text, "x.journal");
    EXPECT_FALSE(contents.ok()) << text;
    EXPECT_TRUE(Holds(contents.status().message(), "'x.journal'")) << text;
  }
  const Result<JournalContents> newer =
      ParseJournal("{\"type\":\"journal\",\"version\":2,\"host\":\"h\",\"pid\":7}\n", "x.journal");
  ASSERT_FALSE(newer.ok());
  EXPECT_TRUE(Holds(newer.status().message(), "version 2")) << newer.status().message();
  EXPECT_EQ(ReadJournal("/no/such/file").status().code(), ErrorCode::kNotFound);
}

TEST(ReaderTest, DeepNestingAndLongLinesDoNotCrash) {
  const std::string deep = std::string(50000, '[');
  const std::string closed = deep.substr(0, 25000) + std::string(25000, ']');
  std::string objects;
  for (int i = 0; i < 9000; ++i) objects += "{\"a\":";
  const std::string in_table = RecordLine(SomeRecord(), Library::kNccl);
  const JournalContents contents =
      ParseJournal(JournalWith(deep + "\n" + closed + "\n" + objects + "\n" +
                               in_table.substr(0, in_table.size() - 1) + ",\"table\":" + closed +
                               "}\n" + std::string(200000, '[') + "\n"),
                   "j")
          .value();
  EXPECT_EQ(contents.bad_lines, 5u);
  EXPECT_FALSE(ParseJournal(deep, "j").ok());
}

}  // namespace
}  // namespace diapason::journal
