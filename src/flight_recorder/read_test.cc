// Dumps as files: JSON, pickles, hostile input, ranks from names and contents.
#include "flight_recorder/read.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "flight_recorder/pickle.h"

namespace diapason::flight_recorder {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Pieces of pickles.
std::string Short(const std::string& text) {
  return std::string("\x8c") + static_cast<char>(text.size()) + text;
}
std::string Small(int number) { return std::string("K") + static_cast<char>(number); }

TEST(ReadDump, Pickles) {
  std::string text = "\x80\x02}(";
  text += Short("version") + Short("2.10");
  text += Short("pg_config") + "}(" + Short("7") + "q\x01}(" + Short("desc") + Short("dp") +
          Short("ranks") + Short("[0, 3]") + "uu";
  text += Short("entries") + "](}(";
  text += Short("record_id") + Small(5) + Short("process_group") + "h\x01" + Short("dp") + "\x86";
  text += Short("collective_seq_id") + "M" + std::string("\x01\x02", 2);
  text += Short("profiling_name") + Short("nccl:all_reduce");
  text += Short("input_sizes") + "](](" + Small(4) + Small(8) + "ee";
  text += Short("input_dtypes") + "](" + Short("Float") + "e";
  text += Short("time_created_ns") + "\x8a\x04" + std::string("\x00\x00\x00\x40", 4);
  text += Short("state") + Short("started") + Short("is_p2p") + "\x89" + Short("duration_ms") +
          "G" + std::string("\x3f\xf0\0\0\0\0\0\0", 8);
  text += Short("frames") + "](}(" + Short("name") + Short("step") + Short("filename") +
          Short("train.py") + Short("line") + Small(88) + "ue" + Short("retired") + "Nu";
  text += "eu.";
  FlightRecord record;
  const Status status = ReadDump(-1, text, "nccl_trace_rank_3", &record);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(record.dumps.size(), 1U);
  const Dump& dump = record.dumps[0];
  EXPECT_EQ(dump.rank, 3);
  EXPECT_EQ(dump.version, "2.10");
  ASSERT_EQ(dump.entries.size(), 1U);
  const Entry& entry = dump.entries[0];
  EXPECT_EQ(entry.record, 5);
  EXPECT_EQ(entry.sequence, 513);
  EXPECT_EQ(entry.created_ns, 1 << 30);
  EXPECT_EQ(entry.state, State::kStarted);
  EXPECT_FALSE(entry.p2p);
  EXPECT_EQ(record.CallText(entry), "all_reduce [4,8] Float");
  EXPECT_EQ(record.calls[entry.call].input_elements, 32);
  EXPECT_EQ(record.frames[entry.frames], "train.py:88 step");
  EXPECT_EQ(record.groups[entry.group].Text(), "group 7 (dp)");
  EXPECT_EQ(record.groups[entry.group].ranks, (std::vector<int64_t>{0, 3}));
}

TEST(ReadDump, CodeInPicklesIsRefusedByName) {
  const std::pair<std::string, std::string> cases[] = {
      {"cos\nsystem\n(S'x'\ntR.", "GLOBAL"},
      {"\x8c\x02os\x8c\x06system\x93.", "STACK_GLOBAL"},
      {"(S'x'\nios\nsystem\n.", "INST"},
      {"(o.", "OBJ"},
      {"NNR.", "REDUCE"},
      {"NNb.", "BUILD"},
      {"NN\x81.", "NEWOBJ"},
      {"NNN\x92.", "NEWOBJ_EX"},
      {"Px\n.", "PERSID"},
      {"NQ.", "BINPERSID"},
      {"\x82\x01.", "EXT1"},
      {"\x8f.", "EMPTY_SET"},
  };
  for (const auto& [body, name] : cases) {
    FlightRecord record;
    const Status status = ReadDump(-1, "\x80\x04" + body, "x", &record);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_TRUE(Contains(status.message(), "opcode " + name + " at byte")) << status.message();
    EXPECT_TRUE(record.dumps.empty());
  }
}

TEST(ReadDump, DamagedPickles) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "breaks off at byte 2"},
      {".", "the end comes before a value"},
      {"]", "breaks off"},
      {"X\xff\xff\xff\xff", "breaks off"},
      {"a.", "values are missing"},
      {"e.", "a mark is missing"},
      {"u.", "a mark is missing"},
      {"}(Nu.", "a key has no value"},
      {"NNa.", "something else than a list"},
      {"NNNs.", "something else than a dict"},
      {"h\x05.", "used before it is stored"},
      {"Nr\xff\xff\xff\xff.", "too large"},
      {"(((0.", "no value to remove"},
      {std::string("\0.", 2), "there is no opcode 0x00"},
      {"\xfe.", "there is no opcode 0xfe"},
      {std::string(1000, '('), "nested too deep"},
      {"N.", "not a dump of PyTorch's flight recorder"},
      {"}.", "not a dump of PyTorch's flight recorder"},
  };
  for (const auto& [body, why] : cases) {
    FlightRecord record;
    const Status status = ReadDump(-1, "\x80\x02" + body, "x", &record);
    ASSERT_FALSE(status.ok()) << why;
    EXPECT_TRUE(Contains(status.message(), why)) << status.message() << " for " << why;
  }
}

TEST(ReadDump, PicklesHaveLimits) {
  Pickle pickle;
  const Status many = pickle.Parse(-1, "\x80\x02" + std::string(Pickle::kMostValues + 2, 'N'));
  ASSERT_FALSE(many.ok());
  EXPECT_TRUE(Contains(many.message(), "more than 4194304 values")) << many.message();
  // A list that contains itself, and one that is shared by all entries.
  FlightRecord record;
  std::string text = "\x80\x02}(" + Short("entries") + "]q\x01(h\x01}(" + Short("frames") +
                     "h\x01" + Short("input_sizes") + "h\x01ueu.";
  EXPECT_TRUE(ReadDump(-1, text, "x", &record).ok());
  ASSERT_EQ(record.dumps.size(), 1U);
  EXPECT_EQ(record.dumps[0].entries.size(), 1U);
}

TEST(ReadDump, NumbersOfPickles) {
  Pickle pickle;
  const std::string text =
      "\x80\x02(J\xff\xff\xff\xff\x8a\x01\xfe"
      "I42\nL-7L\nF1.5\nI01\n\x8a\x0a" +
      std::string("\0\0\0\0\0\0\0\0\0\x01", 10) + std::string("\x8a\0l.", 4);
  const Status status = pickle.Parse(-1, text.substr(0, text.size()));
  ASSERT_TRUE(status.ok()) << status.message();
  const std::vector<PickleValue>& items = pickle.Items(pickle.root());
  ASSERT_EQ(items.size(), 8U);
  EXPECT_EQ(items[0].number, -1);
  EXPECT_EQ(items[1].number, -2);
  EXPECT_EQ(items[2].number, 42);
  EXPECT_EQ(items[3].number, -7);
  EXPECT_DOUBLE_EQ(items[4].real, 1.5);
  EXPECT_EQ(items[5].kind, PickleValue::Kind::kBool);
  EXPECT_EQ(items[6].number, INT64_MAX);
  EXPECT_EQ(items[7].number, 0);
}

std::string Json(const std::string& config, const std::string& entries) {
  return "{\"version\":\"2.5\",\"entries\":[" + entries + "],\"pg_config\":{" + config + "}}";
}
std::string Config(const std::string& name, const std::string& ranks) {
  return "\"" + name + "\":{\"name\":\"" + name + "\",\"desc\":\"d\",\"ranks\":" + ranks + "}";
}

TEST(ReadDump, BrokenAndHostileJson) {
  FlightRecord record;
  const std::string whole = Json(Config("0", "\"[0, 1]\""),
                                 "{\"record_id\":1,\"process_group\":[\"0\",\"d\"],\"collective_"
                                 "seq_id\":1,\"profiling_name\":\"nccl:all_reduce\"}");
  // Truncated: an error, but the existing part has been read, and counts as incomplete.
  EXPECT_FALSE(ReadDump(-1, whole.substr(0, whole.size() - 20), "r0", &record).ok());
  ASSERT_EQ(record.dumps.size(), 1U);
  EXPECT_TRUE(record.dumps[0].truncated);
  EXPECT_EQ(record.dumps[0].entries.size(), 1U);
  const Status deep = ReadDump(-1, "{\"entries\":" + std::string(100000, '['), "deep", &record);
  ASSERT_FALSE(deep.ok());
  EXPECT_TRUE(Contains(deep.message(), "deeper than 64")) << deep.message();
  // A string of a megabyte is cut; the rest of the dump is read.
  std::string text = whole;
  text.replace(text.find("all_reduce"), 10, std::string(1 << 20, 'a') + "\\\"\\u00e4");
  EXPECT_TRUE(ReadDump(-1, text, "r1", &record).ok());
  EXPECT_FALSE(ReadDump(-1, "{\"a\":1}", "r2", &record).ok());
}

TEST(ReadDump, RankFromContents) {
  FlightRecord record;
  // A group of one member; then the members that all groups have in common; then a send.
  ASSERT_TRUE(ReadDump(-1, Json(Config("0", "\"[0, 1, 2, 3]\"") + "," + Config("5", "[2]"), ""),
                       "dump", &record)
                  .ok());
  EXPECT_EQ(record.dumps.back().rank, 2);
  ASSERT_TRUE(
      ReadDump(-1, Json(Config("0", "[0, 1, 3]") + "," + Config("6", "[3, 2]"), ""), "d", &record)
          .ok());
  EXPECT_EQ(record.dumps.back().rank, 3);
  ASSERT_TRUE(ReadDump(-1,
                       Json(Config("0", "[0, 1]"),
                            "{\"process_group\":[\"0\",\"\"],\"profiling_name\":\"nccl:send "
                            "1->0\",\"p2p_seq_id\":1,\"is_p2p\":true}"),
                       "e", &record)
                  .ok());
  EXPECT_EQ(record.dumps.back().rank, 1);
  // A number in the name that is no member is not the rank.
  ASSERT_TRUE(
      ReadDump(-1, Json(Config("0", "[0, 7]") + "," + Config("8", "[7]"), ""), "2024", &record)
          .ok());
  EXPECT_EQ(record.dumps.back().rank, 7);
  EXPECT_EQ(record.dumps.size(), 4U);
  // The second dump of a rank is not counted.
  ASSERT_TRUE(ReadDump(-1, Json(Config("8", "[7]"), ""), "rank_7.json", &record).ok());
  EXPECT_EQ(record.dumps.size(), 4U);
  EXPECT_EQ(record.twice, std::vector<std::string>{"rank_7.json"});
}

TEST(ReadDump, RanksFromNames) {
  EXPECT_EQ(RankInName("/tmp/nccl_trace_rank_12.json"), 12);
  EXPECT_EQ(RankInName("comm_lib_trace_rank_3"), 3);
  EXPECT_EQ(RankInName("nccl_trace_rank_3.pkl"), 3);
  EXPECT_EQ(RankInName("rank4_20241231"), 4);
  EXPECT_EQ(RankInName("_dump_10"), 10);
  EXPECT_EQ(RankInName("trace_7"), 7);
  EXPECT_EQ(RankInName("2024/dump.json"), -1);
  EXPECT_EQ(RankInName("99999999999999999999"), -1);
}

TEST(ReadDump, Versions) {
  EXPECT_EQ(VersionRemark("2.1"), "");
  EXPECT_EQ(VersionRemark("2.10"), "");
  EXPECT_TRUE(Contains(VersionRemark("2.11"), "2.1 to 2.10"));
  EXPECT_TRUE(Contains(VersionRemark("3.0"), "3.0"));
}

TEST(ReadDump, FieldsOfEarlyVersions) {
  FlightRecord record;
  ASSERT_TRUE(
      ReadDump(-1,
               "{\"version\":\"2.1\",\"entries\":[{\"record_id\":0,\"pg_id\":4,\"seq_id\":9,"
               "\"profiling_name\":\"nccl:all_reduce\",\"input_sizes\":[[2,3]],"
               "\"output_sizes\":[[2,3]],\"state\":\"completed\"}]}",
               "r1", &record)
          .ok());
  const Entry& entry = record.dumps.at(0).entries.at(0);
  EXPECT_EQ(entry.sequence, 9);
  EXPECT_EQ(record.groups[entry.group].name, "4");
  EXPECT_EQ(record.CallText(entry), "all_reduce [2,3]");
}

TEST(ReadDump, WhatLooksLikeOne) {
  EXPECT_TRUE(LooksLikeDump("\x80\x02}."));
  EXPECT_TRUE(LooksLikeDump(" {\"pg_config\":{}}"));
  EXPECT_FALSE(LooksLikeDump("\x1f\x8b\x08"));
  EXPECT_FALSE(LooksLikeDump("{\"a\":1}"));
  EXPECT_FALSE(LooksLikeDump(""));
}

}  // namespace
}  // namespace diapason::flight_recorder
