#include "watch/journal_tail.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "host/fake_process.h"
#include "journal/record.h"

namespace diapason::watch {
namespace {

constexpr char kHead[] = "{\"type\":\"journal\",\"version\":1,\"host\":\"h\",\"pid\":7}\n";

std::string CommLine(uint32_t number) {
  journal::JournalComm communicator;
  communicator.number = number;
  return journal::CommunicatorLine(communicator) + "\n";
}

journal::JournalRecord SomeRecord(journal::RecordKind kind, uint32_t call) {
  journal::JournalRecord record;
  record.kind = kind;
  record.communicator = 1;
  record.call = call;
  record.collective = static_cast<uint8_t>(Collective::kAllReduce);
  record.bytes = 1 << 20;
  record.algorithm = 1;
  record.protocol = 2;
  record.applied = true;
  record.reason = Reason::kLearned;
  record.learning = true;
  record.index = call;
  record.seconds = 1e-4;
  record.samples = 8;
  record.skew = 1;
  return record;
}

std::string Line(journal::RecordKind kind, uint32_t call) {
  return journal::RecordLine(SomeRecord(kind, call), Library::kNccl) + "\n";
}

class JournalTailTest : public ::testing::Test {
 protected:
  std::string path() const { return fake_.root() + "/j.jsonl"; }
  void Append(const std::string& text) const {
    std::ofstream(path(), std::ios::app | std::ios::binary) << text;
  }
  host::FakeRoot fake_;
};

TEST_F(JournalTailTest, OnlyWhatIsNewAndHalfLinesWait) {
  JournalTail tail(path());
  EXPECT_FALSE(tail.Poll());
  EXPECT_NE(tail.problem(), "");
  Append(kHead + CommLine(1) + Line(journal::RecordKind::kDecision, 1));
  ASSERT_TRUE(tail.Poll()) << tail.problem();
  EXPECT_EQ(tail.counts().decisions, 1u);
  const std::string line = Line(journal::RecordKind::kDecision, 2);
  Append(line.substr(0, 20));
  EXPECT_TRUE(tail.Poll());
  EXPECT_EQ(tail.counts().decisions, 1u);
  Append(line.substr(20) + Line(journal::RecordKind::kRan, 2) +
         Line(journal::RecordKind::kReward, 2));
  EXPECT_TRUE(tail.Poll());
  EXPECT_EQ(tail.counts().decisions, 2u);
  EXPECT_EQ(tail.counts().runs, 1u);
  EXPECT_EQ(tail.counts().rewards, 1u);
  EXPECT_EQ(tail.counts().operations(), 2u);
  EXPECT_EQ(tail.counts().unknown, 0u);
  const auto contexts = tail.Contexts();
  ASSERT_EQ(contexts.size(), 1u);
  EXPECT_EQ(contexts[0].collective, "allreduce");
  EXPECT_EQ(contexts[0].calls, 2u);
  EXPECT_EQ(contexts[0].asked, "ring/simple");
  EXPECT_EQ(contexts[0].ran, "ring/simple");
  EXPECT_DOUBLE_EQ(contexts[0].seconds, 1e-4);
  const auto learning = tail.Learning();
  ASSERT_EQ(learning.size(), 1u);
  ASSERT_EQ(learning[0].arms.size(), 1u);
  EXPECT_EQ(learning[0].arms[0].state, journal::LearningArm::State::kInUse);
  EXPECT_EQ(learning[0].arms[0].blocks, 1u);
}

TEST_F(JournalTailTest, ReplacedAndCutShort) {
  Append(kHead + CommLine(1) + Line(journal::RecordKind::kDecision, 1) +
         Line(journal::RecordKind::kDecision, 2));
  JournalTail tail(path());
  ASSERT_TRUE(tail.Poll());
  EXPECT_EQ(tail.counts().decisions, 2u);
  // Another file with the same name.
  std::filesystem::remove(path());
  EXPECT_TRUE(tail.Poll());  // the old one is still open
  std::string longer = kHead + CommLine(1);
  for (uint32_t call = 1; call <= 5; ++call) longer += Line(journal::RecordKind::kDecision, call);
  Append(longer);
  EXPECT_TRUE(tail.Poll());
  EXPECT_EQ(tail.counts().decisions, 5u);
  EXPECT_EQ(tail.counts().restarts, 1u);
  // The same, shorter.
  ASSERT_EQ(truncate(path().c_str(), 0), 0);
  EXPECT_FALSE(tail.Poll());
  Append(kHead);
  EXPECT_TRUE(tail.Poll());
  EXPECT_EQ(tail.counts().decisions, 0u);
  EXPECT_EQ(tail.counts().restarts, 2u);
}

TEST_F(JournalTailTest, HostileLinesAreCounted) {
  Append(kHead + CommLine(1) + "no json\n" + "{\"type\":\"decision\",\"comm\":9}\n" +
         "{\"type\":\"communicator\",\"comm\":2}\n" + std::string(100000, 'x') + "\n" +
         std::string("\0\0\n", 3) + Line(journal::RecordKind::kDecision, 1) +
         "{\"type\":\"dropped\",\"count\":5}\n{\"type\":\"end\",\"dropped\":5}\n");
  JournalTail tail(path());
  ASSERT_TRUE(tail.Poll());
  EXPECT_EQ(tail.counts().unknown, 5u);
  EXPECT_EQ(tail.counts().dropped, 5u);
  EXPECT_TRUE(tail.counts().ended);
  EXPECT_EQ(tail.Contexts().size(), 1u);
}

TEST_F(JournalTailTest, NoJournalIsSaid) {
  Append("hello\nworld\n");
  JournalTail tail(path());
  EXPECT_FALSE(tail.Poll());
  EXPECT_NE(tail.problem().find("not a journal"), std::string::npos);
  EXPECT_EQ(tail.counts().unknown, 0u);
}

TEST_F(JournalTailTest, OfALargeFileTheEndInFullAndTheRestCounted) {
  std::string text = kHead + CommLine(1) + Line(journal::RecordKind::kReward, 1);
  const std::string line = Line(journal::RecordKind::kDecision, 3);
  size_t lines = 0;
  while (text.size() < (size_t{6} << 20)) {
    text += line;
    ++lines;
    // A communicator in the part that is only counted.
    if (lines == 10) text += CommLine(2);
  }
  auto record = SomeRecord(journal::RecordKind::kDecision, 1);
  record.communicator = 2;
  text += journal::RecordLine(record, Library::kNccl) + "\n";
  Append(text);
  JournalTail tail(path());
  ASSERT_TRUE(tail.Poll());
  EXPECT_EQ(tail.counts().decisions, lines + 1);
  EXPECT_EQ(tail.counts().unknown, 0u);
  const auto contexts = tail.Contexts();
  ASSERT_EQ(contexts.size(), 2u);
  EXPECT_LT(contexts[0].calls, lines);
  EXPECT_EQ(contexts[1].communicator, 2u);
}

TEST(JournalOf, ExpandsAsThePluginDoes) {
  const host::FakeRoot fake;
  const auto with = [](const std::string& value) {
    return MapEnvironment(std::map<std::string, std::string>{{"DIAPASON_JOURNAL", value}});
  };
  EXPECT_EQ(JournalOf(fake.tree(), 42, MapEnvironment(std::map<std::string, std::string>())), "");
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  EXPECT_EQ(JournalOf(fake.tree(), 42, with("/j/%h.%p.%%x%")),
            fake.root() + "/j/" + host + ".42.%x%");
  // In a container it has another number, and it counts from its folder.
  fake.Write("/proc/42/status", "Name:\tx\nNSpid:\t42\t7\n");
  fake.Link("/proc/42/cwd", "/home/u");
  EXPECT_EQ(JournalOf(fake.tree(), 42, with("j.%p")), fake.root() + "/home/u/j.7");
  // Another process had the file first.
  fake.Write("/home/u/j.7", "");
  fake.Write("/home/u/j.7.7", "");
  EXPECT_EQ(JournalOf(fake.tree(), 42, with("j.%p")), fake.root() + "/home/u/j.7.7");
  fake.Link("/proc/42/fd/5", "/home/u/j.7");
  EXPECT_EQ(JournalOf(fake.tree(), 42, with("j.%p")), fake.root() + "/home/u/j.7");
  // A file that has no name out here.
  fake.Link("/proc/42/fd/5", "/inside/j.7");
  EXPECT_EQ(JournalOf(fake.tree(), 42, with("/inside/j.%p")), fake.root() + "/proc/42/fd/5");
}

}  // namespace
}  // namespace diapason::watch
