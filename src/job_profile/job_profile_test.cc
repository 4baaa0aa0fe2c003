#include "job_profile/job_profile.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "journal/record.h"

namespace diapason::job_profile {
namespace {

using journal::JournalComm;
using journal::JournalRecord;
using journal::RecordKind;

constexpr uint64_t kMs = 1000000;
constexpr uint64_t kStart = 1000 * kMs;

struct NamedJournal {
  std::string name;
  journal::JournalContents contents;
};

Result<JobProfile> MakeProfile(const std::vector<NamedJournal>& journals) {
  ProfileMaker maker;
  for (const NamedJournal& journal : journals) maker.Add(journal.name, journal.contents);
  return maker.Finish();
}

// Builds the text of a journal, call by call.
class Writer {
 public:
  explicit Writer(int pid = 7) {
    text_ = Format("{{\"type\":\"journal\",\"version\":1,\"host\":\"h\",\"pid\":{}}}\n", pid);
  }

  Writer& Comm(uint32_t number, int rank, int64_t ranks, const std::string& name = "",
               uint64_t id = 42, uint64_t created = 0, uint64_t ended = 0) {
    JournalComm comm;
    comm.number = number;
    comm.id = id;
    comm.api = 5;
    comm.library_version = 22809;
    comm.shape = {1, ranks};
    comm.rank = rank;
    comm.name = name;
    comm.created_ns = created;
    comm.ended_ns = ended;
    return Line(journal::CommunicatorLine(comm));
  }

  // A call and its run; 0 seconds: not timed.
  Writer& Call(uint32_t comm, uint64_t bytes, uint64_t host_ns, uint64_t gpu_ns = 0,
               double seconds = 0, uint16_t group_calls = 1) {
    JournalRecord record;
    record.kind = RecordKind::kDecision;
    record.communicator = comm;
    record.call = ++calls_;
    record.collective = static_cast<uint8_t>(Collective::kAllReduce);
    record.bytes = bytes;
    record.time_ns = host_ns;
    record.group_calls = group_calls;
    Line(journal::RecordLine(record, Library::kNccl));
    record.kind = RecordKind::kRan;
    record.sequence = calls_;
    record.gpu_start_ns = gpu_ns;
    record.seconds = seconds;
    return Line(journal::RecordLine(record, Library::kNccl));
  }

  // A question about a call that becomes part of a graph.
  Writer& Capture(uint32_t comm, uint64_t host_ns) {
    JournalRecord record;
    record.kind = RecordKind::kDecision;
    record.communicator = comm;
    record.call = ++calls_;
    record.collective = static_cast<uint8_t>(Collective::kAllReduce);
    record.bytes = 4096;
    record.time_ns = host_ns;
    record.captured = true;
    return Line(journal::RecordLine(record, Library::kNccl));
  }

  Writer& Step(uint64_t time_ns) {
    JournalRecord record;
    record.kind = RecordKind::kStep;
    record.time_ns = time_ns;
    return Line(journal::RecordLine(record, Library::kNccl));
  }
  Writer& Line(const std::string& line) {
    text_ += line + "\n";
    return *this;
  }
  Writer& End() { return Line("{\"type\":\"end\",\"dropped\":0}"); }

  NamedJournal Read(const std::string& name = "j") const {
    Result<journal::JournalContents> read = journal::ParseJournal(text_, name);
    EXPECT_TRUE(read.ok());
    return {name, std::move(read).value()};
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  uint32_t calls_ = 0;
};

// Iterations of 10 ms with two calls of 1 ms each, after three calls of start-up.
void WriteJob(Writer* writer, uint32_t comm, int iterations, bool timed = true,
              bool steps = false) {
  for (uint64_t i = 0; i < 3; ++i) writer->Call(comm, 8 + i, kStart + i, 5 * kMs + i, 1e-6);
  for (int n = 0; n < iterations; ++n) {
    const uint64_t now = kStart + 50 * kMs + 10 * kMs * static_cast<uint64_t>(n);
    writer->Call(comm, 4096, now, timed ? now + kMs : 0, timed ? 1e-3 : 0);
    writer->Call(comm, 65536, now + 3 * kMs, timed ? now + 4 * kMs : 0, timed ? 1e-3 : 0);
    if (steps) writer->Step(now + 9 * kMs);
  }
}

JobProfile Profile(const std::vector<NamedJournal>& journals) {
  Result<JobProfile> made = MakeProfile(journals);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

bool HasNote(const JobProfile& profile, const std::string& part) {
  for (const std::string& note : profile.notes) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(JobProfile, RanksWithoutIterationsCountForNothing) {
  Writer first(7);
  first.Comm(1, 0, 2);
  WriteJob(&first, 1, 20);
  first.End();
  Writer second(8);
  second.Comm(1, 1, 2);
  for (uint64_t i = 0; i < 4; ++i) second.Call(1, 4096 + i * 512, kStart + i * kMs, kMs, 1e-3);
  second.End();
  const JobProfile profile = Profile({first.Read(), second.Read()});
  EXPECT_EQ(profile.source, Source::kOrder);
  EXPECT_NEAR(profile.times.total, 2e-3, 1e-6);
  EXPECT_NEAR(profile.classes[0].calls_per_iteration, 1, 1e-9);
  EXPECT_NEAR(profile.classes[0].times.total, 1e-3, 1e-6);
  EXPECT_TRUE(HasNote(profile, "no iterations were found on 1 rank"));
}

TEST(JobProfile, EqualCallsWithoutPausesAreCounted) {
  Writer writer;
  writer.Comm(1, 0, 1);
  writer.Call(1, 8, kStart, kStart + 1, 1e-6);
  for (uint64_t i = 0; i < 330; ++i) {
    const uint64_t now = kStart + (i + 1) * kMs;
    writer.Call(1, 4096, now, now + 1000, 0.5e-3);
  }
  writer.End();
  const JobProfile profile = Profile({writer.Read()});
  EXPECT_EQ(profile.source, Source::kCalls);
  EXPECT_EQ(profile.iterations, 10u);
  EXPECT_EQ(profile.ranks[0].calls_per_iteration, 32);
  EXPECT_EQ(profile.ranks[0].startup_calls, 1u);
  EXPECT_EQ(profile.ranks[0].other_calls, 10u);
  EXPECT_NEAR(profile.iteration, 32e-3, 1e-6);
  EXPECT_EQ(profile.Headline().find("32 calls take 32.0 ms; collectives 16.0 ms of it"), 0u)
      << profile.Headline();
  EXPECT_TRUE(HasNote(profile, "not of an iteration"));
}

TEST(JobProfile, CountedCallsAreNotMixedWithIterationsOfOtherRanks) {
  std::vector<NamedJournal> journals;
  for (const int rank : {0, 1}) {
    Writer writer(7 + rank);
    writer.Comm(1, rank, 2);
    uint64_t now = kStart;
    for (uint64_t i = 0; i < 400; ++i) {
      now += (rank == 0 && i % 8 == 0 ? 5 : 1) * kMs;
      writer.Call(1, 4096, now, now + 1000, 0.5e-3);
    }
    writer.End();
    journals.push_back(writer.Read());
  }
  const JobProfile profile = Profile(journals);
  EXPECT_EQ(profile.source, Source::kOrder);
  EXPECT_NEAR(profile.iteration, 12e-3, 1e-6);
  EXPECT_NEAR(profile.times.total, 4e-3, 1e-6);
  EXPECT_EQ(profile.ranks[1].iterations, 0u);
  EXPECT_TRUE(HasNote(profile, "no iterations were found on 1 rank"));
}

TEST(JobProfile, IterationsFromTheOrderOfCalls) {
  Writer writer;
  writer.Comm(1, 0, 1, "dp");
  WriteJob(&writer, 1, 20);
  writer.End();
  const JobProfile profile = Profile({writer.Read()});
  EXPECT_EQ(profile.source, Source::kOrder);
  EXPECT_NEAR(profile.iteration, 0.01, 1e-6);
  EXPECT_EQ(profile.ranks[0].startup_calls, 3u);
  EXPECT_EQ(profile.ranks[0].calls_per_iteration, 2);
  EXPECT_EQ(profile.iterations, 19u);
  EXPECT_NEAR(profile.times.total, 2e-3, 1e-6);
  EXPECT_EQ(profile.roles[0].Text(), "dp, 1 rank");
  EXPECT_TRUE(profile.ranks[0].complete);
  EXPECT_EQ(profile.Headline().find("an iteration takes 10.0 ms; collectives 2.0 ms of it, "), 0u)
      << profile.Headline();
  EXPECT_NE(profile.Headline().find("(estimate); 100 % allreduce of 4 KiB to 64 KiB"),
            std::string::npos)
      << profile.Headline();
  EXPECT_TRUE(profile.notes.empty()) << profile.notes[0];
}

TEST(JobProfile, StepsWinOverTheOrderOfCalls) {
  Writer writer;
  writer.Comm(1, 0, 1);
  WriteJob(&writer, 1, 20, true, true);
  const JobProfile profile = Profile({writer.Read()});
  EXPECT_EQ(profile.source, Source::kSteps);
  EXPECT_NEAR(profile.iteration, 0.01, 1e-6);
  EXPECT_EQ(profile.ranks[0].calls_per_iteration, 2);
}

TEST(JobProfile, WithoutGpuTimesTheHostsClockIsUsed) {
  Writer writer;
  writer.Comm(1, 0, 1);
  WriteJob(&writer, 1, 20, false);
  const JobProfile profile = Profile({writer.Read()});
  EXPECT_NEAR(profile.iteration, 0.01, 1e-6);
  EXPECT_FALSE(profile.ranks[0].gpu_clock);
  EXPECT_EQ(profile.times.total, 0);
  EXPECT_NE(
      profile.Headline().find("is not known; 100 % of the calls allreduce of 4 KiB to 64 KiB"),
      std::string::npos)
      << profile.Headline();
}

TEST(JobProfile, WaitingIsTheTimeBeyondTheQuickestRank) {
  std::vector<NamedJournal> journals;
  for (int rank = 0; rank < 2; ++rank) {
    Writer writer(100 + rank);
    writer.Comm(1, rank, 2);
    for (uint64_t n = 0; n < 20; ++n) {
      const uint64_t now = kStart + 10 * kMs * n;
      // Rank 1 comes half a millisecond later to the second call.
      writer.Call(1, 4096, now, now + kMs, 1e-3);
      writer.Call(1, 65536, now + 3 * kMs, now + 4 * kMs + (rank == 1 ? kMs / 2 : 0),
                  rank == 1 ? 1e-3 : 1.5e-3);
    }
    journals.push_back(writer.End().Read());
  }
  const JobProfile profile = Profile(journals);
  EXPECT_NEAR(profile.ranks[0].times.waiting, 0.5e-3, 1e-6);
  EXPECT_NEAR(profile.ranks[1].times.waiting, 0, 1e-6);
  EXPECT_EQ(profile.missing_ranks, 0u);
}

TEST(JobProfile, CommunicatorsThatFollowEachOtherHaveOneRole) {
  Writer writer;
  for (uint32_t i = 0; i < 6; ++i) {
    writer.Comm(i + 1, 0, 2, "ep", 100 + i, kStart + 100 * i * kMs, kStart + (100 * i + 99) * kMs);
    for (uint64_t n = 0; n < 10; ++n) {
      const uint64_t now = kStart + (100 * i + 10 * n) * kMs;
      writer.Call(i + 1, 4096, now, now + kMs, 1e-3)
          .Call(i + 1, 8192, now + kMs, now + 2 * kMs, 1e-4);
    }
  }
  const JobProfile profile = Profile({writer.Read()});
  ASSERT_EQ(profile.roles.size(), 1u);
  EXPECT_EQ(profile.roles[0].communicators, 6u);
  EXPECT_EQ(profile.roles[0].ended, 6u);
  EXPECT_EQ(profile.iterations, 59u);
  EXPECT_EQ(profile.missing_ranks, 1u);
}

TEST(JobProfile, CommunicatorsAtOnceHaveTheirOwnRoles) {
  Writer writer;
  writer.Comm(1, 0, 2, "", 11, kStart).Comm(2, 0, 2, "", 12, kStart + 1);
  for (uint64_t n = 0; n < 10; ++n) {
    const uint64_t now = kStart + 10 * n * kMs;
    writer.Call(1, 4096, now, now + kMs, 1e-3).Call(2, 4096, now + kMs, now + 2 * kMs, 1e-4);
  }
  const JobProfile profile = Profile({writer.Read()});
  ASSERT_EQ(profile.roles.size(), 2u);
  EXPECT_EQ(profile.roles[1].Text(), "2 ranks, number 2 of its kind");
  EXPECT_EQ(profile.ranks[0].calls_per_iteration, 2);
}

TEST(JobProfile, RanksOfOneProcessAreToldApart) {
  Writer writer;
  writer.Comm(1, 0, 2, "", 11).Comm(2, 1, 2, "", 11);
  for (uint64_t n = 0; n < 10; ++n) {
    const uint64_t now = kStart + 10 * n * kMs;
    for (const uint32_t comm : {1u, 2u}) {
      writer.Call(comm, 4096, now + comm, now + kMs, 1e-3);
      writer.Call(comm, 8192, now + kMs + comm, now + 3 * kMs, 1e-3);
    }
  }
  const JobProfile profile = Profile({writer.Read()});
  ASSERT_EQ(profile.ranks.size(), 2u);
  EXPECT_EQ(profile.ranks[0].calls_per_iteration, 2);
  EXPECT_TRUE(HasNote(profile, "several ranks"));
}

TEST(JobProfile, CallsThatCannotBeTried) {
  Writer writer;
  JournalComm comm;
  comm.number = 1;
  comm.library_version = 22903;
  comm.shape = {1, 2};
  writer.Line(journal::CommunicatorLine(comm));
  for (uint64_t n = 0; n < 10; ++n) {
    const uint64_t now = kStart + 10 * n * kMs;
    writer.Call(1, 4096, now, now + kMs, 1e-3, 2).Call(1, 65536, now + kMs, now + 3 * kMs, 3e-3);
    writer.Line(
        Format("{{\"type\":\"bypassed\",\"time_ns\":{},\"comm\":1,\"collective\":\"allreduce\","
               "\"bytes\":128}}",
               now + 2 * kMs));
  }
  const JobProfile profile = Profile({writer.Read()});
  EXPECT_EQ(profile.untried_calls, 20u);
  EXPECT_NEAR(profile.untried_seconds, 1e-3, 1e-6);
  EXPECT_EQ(profile.ranks[0].calls_per_iteration, 3);
  EXPECT_TRUE(HasNote(profile, "10 of 30 calls have no GPU time"));
}

TEST(JobProfile, NothingToProfile) {
  EXPECT_FALSE(MakeProfile({}).ok());
  const Result<JobProfile> made = MakeProfile({Writer().Comm(1, 0, 2).Read()});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("no call of a collective"), std::string::npos);
}

TEST(JobProfile, DamagedJournalsAreCountedAndUsed) {
  Writer writer;
  writer.Comm(1, 0, 4);
  WriteJob(&writer, 1, 20);
  writer.Line("{\"type\":\"dropped\",\"count\":18446744073709551615}");
  std::string text = writer.text();
  text += "{\"type\":\"run\",\"time_ns\":18446744073709551615,\"comm\":1,\"call\":4294967295,";
  Result<journal::JournalContents> read = journal::ParseJournal(text, "cut");
  ASSERT_TRUE(read.ok());
  const JobProfile profile = Profile({{"cut", std::move(read).value()}});
  EXPECT_EQ(profile.bad_lines, 1u);
  EXPECT_NEAR(profile.iteration, 0.01, 1e-6);
  EXPECT_TRUE(HasNote(profile, "1 line could not be read"));
  EXPECT_TRUE(HasNote(profile, "1 journal is not complete"));
  EXPECT_TRUE(HasNote(profile, "3 ranks of the largest communicator have no journal"));
}

TEST(JobProfile, TimesOutOfOrderOrOutOfRangeDoNoHarm) {
  Writer writer;
  writer.Comm(1, 0, 2);
  for (uint64_t n = 0; n < 30; ++n) {
    const uint64_t host = n % 3 == 0 ? UINT64_MAX - n : n % 3 == 1 ? n : kStart - n;
    writer.Call(1, n % 2 == 0 ? 4096 : UINT64_MAX, host,
                n % 5 == 0 ? UINT64_MAX - 5 : n * 7919 % 13 * kMs, n % 7 == 0 ? 1e6 : 1e-3);
  }
  writer.Step(UINT64_MAX).Step(0).Step(5).Step(6).Step(7);
  const JobProfile profile = Profile({writer.Read()});
  EXPECT_EQ(profile.calls, 30u);
  EXPECT_FALSE(profile.Headline().empty());
}

// A graph that runs within a node reports none of its calls.
TEST(JobProfile, StepsAloneAreIterationsWhereGraphsAreReplayed) {
  Writer writer;
  writer.Comm(1, 0, 4);
  WriteJob(&writer, 1, 4, true, true);
  uint64_t now = kStart + 200 * kMs;
  for (int i = 0; i < 32; ++i) writer.Capture(1, now);
  for (uint64_t n = 1; n <= 40; ++n) writer.Step(now + n * 7 * kMs);
  const JobProfile profile = Profile({writer.Read()});
  EXPECT_EQ(profile.source, Source::kSteps);
  EXPECT_NEAR(profile.iteration, 0.007, 1e-9);
  EXPECT_EQ(profile.iterations, 43u);
  EXPECT_TRUE(profile.captures);
  EXPECT_EQ(profile.after_capture, 39u);
}

TEST(JobProfile, IterationsBeforeACaptureAreNotThoseAfterIt) {
  Writer writer;
  writer.Comm(1, 0, 4);
  WriteJob(&writer, 1, 12);
  writer.Capture(1, kStart + 10000 * kMs);
  const JobProfile profile = Profile({writer.Read()});
  EXPECT_EQ(profile.source, Source::kOrder);
  EXPECT_GT(profile.iterations, 9u);
  EXPECT_TRUE(profile.captures);
  EXPECT_EQ(profile.after_capture, 0u);
}

}  // namespace
}  // namespace diapason::job_profile
