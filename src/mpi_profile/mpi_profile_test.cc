#include "mpi_profile/mpi_profile.h"

#include <gtest/gtest.h>

#include "mpi_record/testing.h"

namespace diapason::mpi_profile {
namespace {

using mpi_record::Recorded;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kMs = 1'000'000;

// Two ranks, 40 iterations of 10 ms: an allreduce of 64 KiB (rank 1 comes 1 ms later), a broadcast
// of 1 MiB and a non-blocking barrier.
mpi_record::Recording Iterations(int rank, const std::string& library = "Open MPI v4.1.4") {
  mpi_record::FileHead head = mpi_record::Head();
  std::string calls;
  uint32_t sequence = 0;
  const uint64_t late = rank == 1 ? kMs : 0;
  uint64_t ns = 0;
  for (uint64_t i = 0; i < 40; ++i) {
    const uint64_t at = 3 * kSecond + i * 10 * kMs;
    for (const mpi_record::CallRecord& one :
         {Recorded(MpiCall::kAllreduce, 65536, at + late, 3 * kMs - late, ++sequence),
          Recorded(MpiCall::kBcast, 1 << 20, at + 6 * kMs, kMs, ++sequence),
          Recorded(MpiCall::kIbarrier, 0, at + 8 * kMs, kMs / 10, ++sequence)}) {
      calls += mpi_record::Bytes(one);
      ns += one.duration_ns;
    }
  }
  head.totals[0] = {120, ns};
  const std::string text = mpi_record::Bytes(head) + mpi_record::Process(rank, 2, library) +
                           mpi_record::CommText(mpi_record::World(rank, 2)) +
                           mpi_record::Block(mpi_record::BlockKind::kSite,
                                             mpi_record::Bytes(uint64_t{0x1234}) + "solver+0x34") +
                           mpi_record::Block(mpi_record::BlockKind::kCalls, calls);
  return mpi_record::ParseRecording(text, "rec").value();
}

MpiProfile Made(const std::string& library = "Open MPI v4.1.4") {
  ProfileMaker maker;
  for (const int rank : {0, 1}) maker.Add("rec", Iterations(rank, library));
  Result<MpiProfile> made = maker.Finish();
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

TEST(MpiProfile, FindsIterationsAndTheShareOfCollectives) {
  const MpiProfile profile = Made();
  EXPECT_NEAR(profile.job.iteration, 0.010, 1e-6);
  // Rank 0: 4.1 ms, rank 1: 3.1 ms.
  EXPECT_NEAR(profile.job.times.total, 0.0036, 1e-5);
  EXPECT_NEAR(profile.job.times.waiting, 0.0005, 1e-5);
  EXPECT_DOUBLE_EQ(profile.program_seconds, 4);
  EXPECT_NEAR(profile.CollectiveShare(), 40 * 0.0036 / 4, 1e-6);
  EXPECT_EQ(profile.Headline(),
            "an iteration takes 10.0 ms; collectives 3.6 ms of it (36 %), 0.500 ms of that waiting "
            "for slower ranks; 69 % allreduce of 64 KiB");
  EXPECT_EQ(profile.ShareText(), "collectives take 4 % of the program's time (0.14 s of 4.00 s)");
}

TEST(MpiProfile, SaysWhatRulesCanChange) {
  const MpiProfile profile = Made();
  EXPECT_NEAR(profile.ChangeableShare(), 3.5 / 3.6, 1e-6);
  EXPECT_EQ(profile.RulesText(),
            "Open MPI's rules can change 97 % of the collective time; not: 3 % non-blocking calls");
  ASSERT_EQ(profile.classes.size(), 3u);
  EXPECT_EQ(profile.classes[0].call, MpiCall::kAllreduce);
  EXPECT_EQ(profile.classes[0].ranks, 2u);
  EXPECT_EQ(profile.classes[0].calls, 80u);
  EXPECT_NEAR(profile.classes[0].seconds, 0.1, 1e-6);
  EXPECT_NEAR(profile.classes[0].quickest, 0.08, 1e-6);
  EXPECT_NEAR(profile.classes[1].median, 0.001, 1e-6);
  EXPECT_EQ(profile.classes[0].sites.at("solver+0x34"), 80u);
}

TEST(MpiProfile, OtherLibrariesAreRecordedOnly) {
  const MpiProfile profile = Made("MPICH Version: 4.0.2");
  EXPECT_EQ(profile.ChangeableShare(), 0);
  ASSERT_EQ(profile.notes.size(), 2u);
  EXPECT_NE(profile.notes[1].find("only Open MPI's can be tuned"), std::string::npos);
}

TEST(MpiProfile, IterationsThatAreLittleOfTheProgramAreTold) {
  const MpiProfile profile = Made();
  EXPECT_NEAR(profile.IterationShare(), 40 * 0.010 / 4, 0.006);
  ASSERT_EQ(profile.notes.size(), 1u);
  EXPECT_EQ(profile.notes[0],
            "the iterations are 10 % of the program's time: it is the whole program that counts");
}

TEST(MpiProfile, CallsAreFixedForTheirFirstReason) {
  mpi_record::CommBlock alone = mpi_record::World(0, 1);
  alone.number = 2;
  mpi_record::CommBlock inter = mpi_record::World(0, 2);
  inter.number = 3;
  inter.flags = mpi_record::kInter;
  inter.remote_ranks = 2;
  mpi_record::CallRecord strange = Recorded(MpiCall::kReduce, 8, 1, 10, 1);
  strange.flags = mpi_record::kNotCommutative;
  std::string calls = mpi_record::Bytes(strange);
  for (const mpi_record::CallRecord& one :
       {Recorded(MpiCall::kAllreduce, 8, 1, 20, 1, 2), Recorded(MpiCall::kBcast, 8, 1, 30, 1, 3),
        Recorded(MpiCall::kBarrier, 0, 1, 40, 1), Recorded(MpiCall::kAlltoallw, 8, 1, 50, 1),
        Recorded(MpiCall::kIallreduce, 8, 1, 60, 1), Recorded(MpiCall::kAllreduce, 0, 1, 70, 1)}) {
    calls += mpi_record::Bytes(one);
  }
  const std::string text = mpi_record::Bytes(mpi_record::Head()) + mpi_record::Process(0, 2) +
                           mpi_record::CommText(mpi_record::World(0, 2)) +
                           mpi_record::CommText(alone) + mpi_record::CommText(inter) +
                           mpi_record::Block(mpi_record::BlockKind::kCalls, calls);
  ProfileMaker maker;
  maker.Add("rec", mpi_record::ParseRecording(text, "rec").value());
  const MpiProfile profile = maker.Finish().value();
  std::vector<Fixed> fixed;
  for (const MpiCallClass& one : profile.classes) fixed.push_back(one.fixed);
  EXPECT_EQ(fixed,
            (std::vector{Fixed::kAlone, Fixed::kNonBlocking, Fixed::kNoRules, Fixed::kNotSearched,
                         Fixed::kInter, Fixed::kAlone, Fixed::kNotCommutative}));
  EXPECT_EQ(profile.missing, 1u);
  EXPECT_EQ(profile.job.iteration, 0);
}

TEST(MpiProfile, WithoutCallsThereIsNone) {
  ProfileMaker maker;
  maker.Add("rec",
            mpi_record::ParseRecording(mpi_record::Bytes(mpi_record::Head()), "rec").value());
  EXPECT_FALSE(maker.Finish().ok());
  EXPECT_FALSE(ReadProfile({}).ok());
  EXPECT_FALSE(ReadProfile({"/no/such/file"}).ok());
}

}  // namespace
}  // namespace diapason::mpi_profile
