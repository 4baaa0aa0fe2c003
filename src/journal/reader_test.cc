#include "journal/reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/text.h"

namespace diapason::journal {
namespace {

constexpr char kFirstLine[] = "{\"type\":\"journal\",\"version\":1,\"host\":\"h\",\"pid\":7}\n";

Communicator RcclCommunicator(uint32_t number) {
  Communicator communicator;
  communicator.number = number;
  communicator.library = Library::kRccl;
  return communicator;
}

// A journal with communicator 1 (NCCL) and 2 (RCCL), and these lines.
std::string JournalWith(const std::string& lines) {
  Communicator nccl;
  nccl.number = 1;
  return kFirstLine + CommunicatorLine(nccl) + "\n" + CommunicatorLine(RcclCommunicator(2)) + "\n" +
         lines;
}

Record SomeRecord() {
  Record record;
  record.communicator = 1;
  record.collective = static_cast<uint8_t>(Collective::kAllReduce);
  return record;
}

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(JsonTextTest, EveryTextIsValidJson) {
  EXPECT_EQ(JsonText(""), "\"\"");
  EXPECT_EQ(JsonText("plain /path.conf"), "\"plain /path.conf\"");
  EXPECT_EQ(JsonText("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(JsonText("\n\t\x01\x7f"), "\"\\u000a\\u0009\\u0001\\u007f\"");
  EXPECT_EQ(JsonText(std::string(1, '\0')), "\"\\u0000\"");
  EXPECT_EQ(JsonText("\xff\x80"), "\"\\u00ff\\u0080\"") << "a byte that is no UTF-8";
}

TEST(JsonTextTest, EveryByteGoesThroughAJournalAndStaysOneCharacter) {
  for (int byte = 0; byte < 256; ++byte) {
    Communicator communicator = RcclCommunicator(3);
    communicator.policy = std::string(1, static_cast<char>(byte));
    const std::string text = JournalWith(CommunicatorLine(communicator) + "\n");
    const Contents contents = ParseJournal(text, "j").value();
    ASSERT_EQ(contents.bad_lines, 0u) << byte << ": " << contents.first_bad_why;
    const std::string& back = contents.Find(3)->policy;
    if (byte < 128) {
      EXPECT_EQ(back, communicator.policy) << byte;
    } else {
      EXPECT_EQ(back.size(), 2u) << byte;  // U+0080 to U+00FF in UTF-8
    }
  }
}

TEST(ReaderTest, EveryFieldOfARecordComesBack) {
  Record record;
  record.time_ns = UINT64_MAX;
  record.bytes = UINT64_MAX - 1;
  record.communicator = 2;
  record.call = UINT32_MAX;
  record.line = INT32_MAX;
  record.pipe_ops = INT32_MIN;
  record.collective = static_cast<uint8_t>(Collective::kReduceScatter);
  record.reason = Reason::kTreeTooSmall;
  record.applied = true;
  record.reg_buff = -1;
  record.algorithm = kNvlsTree;
  record.protocol = kSimple;
  record.channels = 127;
  record.default_algorithm = kRing;
  record.default_protocol = kLl128;
  record.table_algorithms = 7;
  record.table_protocols = 4;
  for (int i = 0; i < 28; ++i) record.table[i] = 0.1f * static_cast<float>(i);
  record.table[0] = -1.0f;
  record.table[1] = std::numeric_limits<float>::max();
  record.table[2] = std::numeric_limits<float>::denorm_min();
  record.table[3] = std::nanf("");

  const std::string text = JournalWith(RecordLine(record, Library::kRccl) + "\n");
  const Contents contents = ParseJournal(text, "j").value();
  ASSERT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
  ASSERT_EQ(contents.records.size(), 1u);
  const Record& back = contents.records[0];
  EXPECT_EQ(back.time_ns, record.time_ns);
  EXPECT_EQ(back.bytes, record.bytes);
  EXPECT_EQ(back.communicator, record.communicator);
  EXPECT_EQ(back.call, record.call);
  EXPECT_EQ(back.line, record.line);
  EXPECT_EQ(back.pipe_ops, record.pipe_ops);
  EXPECT_EQ(back.collective, record.collective);
  EXPECT_EQ(back.reason, record.reason);
  EXPECT_EQ(back.applied, record.applied);
  EXPECT_EQ(back.reg_buff, record.reg_buff);
  EXPECT_EQ(back.algorithm, record.algorithm);
  EXPECT_EQ(back.protocol, record.protocol);
  EXPECT_EQ(back.channels, record.channels);
  EXPECT_EQ(back.default_algorithm, record.default_algorithm);
  EXPECT_EQ(back.default_protocol, record.default_protocol);
  EXPECT_EQ(back.table_algorithms, record.table_algorithms);
  EXPECT_EQ(back.table_protocols, record.table_protocols);
  EXPECT_TRUE(std::isnan(back.table[3])) << "JSON has no such number";
  for (int i = 0; i < 28; ++i) {
    if (i == 3) continue;
    EXPECT_EQ(back.table[i], record.table[i]) << i;
  }
}

TEST(ReaderTest, EveryWordOfEveryLibraryComesBack) {
  for (const Library library : {Library::kNccl, Library::kRccl}) {
    std::string lines;
    std::vector<Record> records;
    for (int collective = 0; collective < kAskedCollectiveCount; ++collective) {
      for (int reason = 0; reason <= static_cast<int>(Reason::kLibraryRule); ++reason) {
        for (int algorithm = kKeep; algorithm <= kPat; ++algorithm) {
          Record record = SomeRecord();
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
    const Contents contents = ParseJournal(JournalWith(lines), "j").value();
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
  // RCCL's tables have a fourth protocol, newer libraries more algorithms: no word for them here.
  Record record = SomeRecord();
  record.communicator = 2;
  record.bytes = 4096;
  record.default_algorithm = kRing;
  record.default_protocol = 3;
  const std::string text = JournalWith(RecordLine(record, Library::kRccl) + "\n");
  const Contents contents = ParseJournal(text, "j").value();
  EXPECT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
  ASSERT_EQ(contents.records.size(), 1u);
  EXPECT_EQ(contents.records[0].bytes, 4096u);
}

TEST(ReaderTest, EveryFieldOfACommunicatorComesBack) {
  Communicator communicator;
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
  const Contents contents = ParseJournal(kFirstLine + CommunicatorLine(communicator), "j").value();
  ASSERT_EQ(contents.bad_lines, 0u) << contents.first_bad_why;
  ASSERT_EQ(contents.communicators.size(), 1u);
  const Communicator& back = contents.communicators[0];
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
}

TEST(ReaderTest, GarbageIsCountedAndTheFirstIsReported) {
  const std::string good = RecordLine(SomeRecord(), Library::kNccl) + "\n";
  const Contents contents =
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
      {"\"comm\":9", "\"comm\":-9"},
      {"\"nodes\":0", "\"nodes\":9223372036854775808"},
      {"\"rows\":0", "\"rows\":-1"},
      {"\"rccl\"", "\"xccl\""},
      {"\"mode\":\"\"", "\"mode\":null"},
      {"\"id\":\"0x0\"", "\"id\":0"},
      {"\"id\":\"0x0\"", "\"id\":\"nonsense\""},
      {"\"id\":\"0x0\"", "\"id\":\"0x10000000000000000\""},
  };
  ASSERT_EQ(ParseJournal(JournalWith(decision + "\n" + communicator), "j").value().bad_lines, 0u);
  for (const auto& [from, to] : changes) {
    std::string line = Holds(decision, from) ? decision : communicator;
    ASSERT_TRUE(Holds(line, from)) << from;
    line.replace(line.find(from), from.size(), to);
    const Contents contents = ParseJournal(JournalWith(line + "\n"), "j").value();
    EXPECT_EQ(contents.bad_lines, 1u) << line;
    EXPECT_EQ(contents.records.size(), 0u) << line;
    EXPECT_EQ(contents.communicators.size(), 2u) << line;
    EXPECT_FALSE(contents.first_bad_why.empty()) << line;
  }
}

TEST(ReaderTest, ATableLargerThanARecordIsRefused) {
  Record record = SomeRecord();
  record.table_algorithms = 10;
  record.table_protocols = 4;
  const std::string full = RecordLine(record, Library::kNccl);
  EXPECT_EQ(ParseJournal(JournalWith(full), "j").value().records.size(), 1u);
  const std::string larger = full.substr(0, full.size() - 2) + ",[0,0,0,0]]}";
  EXPECT_EQ(ParseJournal(JournalWith(larger), "j").value().bad_lines, 1u);
}

TEST(ReaderTest, ADecisionOfAnUnknownCommunicatorIsNotGuessed) {
  Record record = SomeRecord();
  record.communicator = 3;
  const std::string line = RecordLine(record, Library::kNccl) + "\n";
  const Contents contents =
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
    const Contents contents =
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
    const Result<Contents> contents = ParseJournal(text, "x.journal");
    EXPECT_FALSE(contents.ok()) << text;
    EXPECT_TRUE(Holds(contents.status().message(), "'x.journal'")) << text;
  }
  const Result<Contents> newer =
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
  const Contents contents =
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
