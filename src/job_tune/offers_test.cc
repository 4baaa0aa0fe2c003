#include "job_tune/offers.h"

#include <gtest/gtest.h>

#include "domain/schedule.h"

namespace diapason::job_tune {
namespace {

constexpr int kAlgorithms = 2;
constexpr int kProtocols = 3;
constexpr uint64_t kBytes = 32768;

job_profile::CallClass Class(Collective collective, uint64_t bytes, double seconds) {
  job_profile::CallClass one;
  one.collective = static_cast<uint8_t>(collective);
  one.band = SizeBand(bytes);
  one.least_bytes = one.most_bytes = bytes;
  one.calls = 100;
  one.calls_per_iteration = 1;
  one.times.total = seconds;
  return one;
}

job_profile::JobProfile Profile(std::vector<job_profile::CallClass> classes) {
  job_profile::JobProfile profile;
  job_profile::Role role;
  role.shape = {1, 4};
  role.library_version = 22809;
  profile.roles.push_back(role);
  for (const job_profile::CallClass& one : classes) {
    profile.times.total += one.times.total;
    profile.iteration += one.times.total;
  }
  profile.classes = std::move(classes);
  return profile;
}

// A call of an allreduce with its table, and what ran.
journal::JournalContents Journal(const std::vector<float>& costs, int channels) {
  journal::JournalContents contents;
  journal::JournalComm comm;
  comm.number = 1;
  comm.shape = {1, 4};
  contents.communicators.push_back(comm);
  contents.by_number[1] = 0;
  journal::JournalRecord asked;
  asked.communicator = 1;
  asked.call = 1;
  asked.bytes = kBytes;
  asked.collective = static_cast<uint8_t>(Collective::kAllReduce);
  asked.table_algorithms = kAlgorithms;
  asked.table_protocols = kProtocols;
  std::copy(costs.begin(), costs.end(), asked.table);
  contents.records.push_back(asked);
  journal::JournalRecord ran = asked;
  ran.kind = journal::RecordKind::kRan;
  ran.table_algorithms = ran.table_protocols = 0;
  ran.algorithm = 1;
  ran.protocol = 2;
  ran.channels = static_cast<int16_t>(channels);
  contents.records.push_back(ran);
  return contents;
}

std::vector<std::pair<int, int>> Pairs(const SearchContext& context) {
  std::vector<std::pair<int, int>> pairs;
  for (const learn::ArmConfig& one : context.offered) {
    pairs.emplace_back(one.config.algorithm, one.config.protocol);
  }
  return pairs;
}

using PairList = std::vector<std::pair<int, int>>;

TEST(OffersTest, PairsThatAllRanksOffer) {
  // The second rank does not offer ring/LL; a cost of 1e9 is pushed away.
  const JobOffers offers =
      FindOffers(Profile({Class(Collective::kAllReduce, kBytes, 1e-3)}),
                 {Journal({5, -1, 4, 6, 1e9f, 2}, 8), Journal({5, -1, 4, -1, 1e9f, 2}, 8)});
  ASSERT_EQ(offers.contexts.size(), 1u);
  EXPECT_EQ(Pairs(offers.contexts[0]), (PairList{{0, 0}, {0, 2}, {1, 2}}));
  EXPECT_EQ(offers.contexts[0].by_default, (Config{1, 2, 8}));
  ASSERT_EQ(offers.all.size(), 1u);
  EXPECT_EQ(offers.all[0].untried, "");
}

TEST(OffersTest, AContextInWhichNothingElseIsOffered) {
  const auto profile = Profile({Class(Collective::kAllReduce, kBytes, 1e-3)});
  JobOffers offers = FindOffers(profile, {Journal({-1, -1, -1, -1, -1, 2}, 1)});
  EXPECT_TRUE(offers.contexts.empty());
  ASSERT_EQ(offers.all.size(), 1u);
  EXPECT_EQ(offers.all[0].untried, "the library offers nothing else");
  // Fewer channels are.
  offers = FindOffers(profile, {Journal({-1, -1, -1, -1, -1, 2}, 8)});
  EXPECT_EQ(offers.contexts.size(), 1u);
}

TEST(OffersTest, ThoseWithMostTimeFirstAndThoseThatCannotBeTriedLast) {
  job_profile::CallClass bypassed = Class(Collective::kAllReduce, 4 * kBytes, 9e-3);
  bypassed.bypassed = 90;
  job_profile::CallClass nameless = Class(Collective::kAllReduce, 8 * kBytes, 1e-3);
  nameless.collective = journal::kNamelessCollective;
  const JobOffers offers =
      FindOffers(Profile({Class(Collective::kAllReduce, 2 * kBytes, 1e-6), bypassed, nameless,
                          Class(Collective::kAllReduce, kBytes, 5e-3)}),
                 {Journal({5, 5, 4, 6, 7, 2}, 8)});
  ASSERT_EQ(offers.contexts.size(), 1u);
  ASSERT_EQ(offers.all.size(), 4u);
  EXPECT_EQ(offers.all[0].context.band, SizeBand(kBytes));
  EXPECT_EQ(offers.all[1].untried, "the library takes a path on which it asks no tuner");
  EXPECT_EQ(offers.all[2].untried, "the library asks no tuner about this collective");
  EXPECT_NE(offers.all[3].untried.find("less than"), std::string::npos);
  // 10 of 15 ms.
  EXPECT_NEAR(offers.shares.untried, 0.667, 0.001);
  EXPECT_EQ(offers.shares.reasons.size(), 2u);
  EXPECT_EQ(offers.shares.by_launches, 0);
  EXPECT_EQ(offers.shares.ByLaunchesText(), "");
  EXPECT_EQ(offers.shares.UntriedText(),
            "67 % of the collective time cannot be tried at all: the library takes a path on which "
            "it asks no tuner; the library asks no tuner about this collective");
}

// Replays that are reported: calls of iterations without a time.
TEST(OffersTest, CapturedCallsAreTriedByLaunches) {
  job_profile::CallClass captured = Class(Collective::kAllReduce, kBytes, 0);
  captured.calls_per_iteration = 3;
  captured.captured = 90;
  job_profile::CallClass eager = Class(Collective::kAllReduce, 4 * kBytes, 2e-6);
  journal::JournalContents journal = Journal({5, 5, 4, 6, 7, 2}, 8);
  journal.records[0].captured = true;
  journal.records[1].captured = true;
  journal.records[1].call = 0;
  journal::JournalContents other = Journal({5, 5, 4, 6, 7, 2}, 8);
  for (journal::JournalRecord& record : other.records) record.bytes = 4 * kBytes;
  const JobOffers offers = FindOffers(Profile({captured, eager}), {journal, other});
  ASSERT_EQ(offers.by_launches.size(), 1u);
  EXPECT_EQ(offers.by_launches[0].by_default, (Config{1, 2, 8}));
  EXPECT_EQ(offers.by_launches[0].offered.size(), 6u);
  ASSERT_EQ(offers.contexts.size(), 1u);
  ASSERT_EQ(offers.all.size(), 2u);
  EXPECT_TRUE(offers.all[1].by_launches);
  EXPECT_TRUE(offers.all[1].also_captured);
  EXPECT_FALSE(offers.all[1].unseen);
  EXPECT_FALSE(offers.all[0].by_launches);
  // Three calls of 2 us by the library's estimate, beside one that was timed.
  EXPECT_EQ(offers.shares.of, LookShares::Of::kEstimatedTime);
  EXPECT_NEAR(offers.shares.by_launches, 0.75, 1e-6);
  EXPECT_EQ(offers.shares.untried, 0);
}

// Replays that are not: there is the question alone.
TEST(OffersTest, GraphsWhoseReplaysAreNotReported) {
  journal::JournalContents journal = Journal({5, 5, 4, 6, 7, 2}, 8);
  journal.records.resize(1);
  journal.records[0].captured = true;
  journal.records[0].default_algorithm = 1;
  journal.records[0].default_protocol = 2;
  journal.records.push_back(journal.records[0]);
  const JobOffers offers = FindOffers(Profile({}), {journal, journal});
  EXPECT_TRUE(offers.contexts.empty());
  ASSERT_EQ(offers.by_launches.size(), 1u);
  EXPECT_EQ(offers.by_launches[0].by_default, (Config{1, 2, 0}));
  EXPECT_TRUE(offers.all[0].unseen);
  EXPECT_EQ(offers.all[0].calls_per_iteration, 2);
  EXPECT_EQ(offers.all[0].most_bytes, kBytes);
  EXPECT_NEAR(offers.shares.by_launches, 1, 1e-9);
}

// Some calls of a context are captured, and most are not: tried inside the job, not verified there.
TEST(OffersTest, ContextsThatAreAlsoCaptured) {
  journal::JournalContents journal = Journal({5, 5, 4, 6, 7, 2}, 8);
  journal.records[0].captured = true;
  const JobOffers offers =
      FindOffers(Profile({Class(Collective::kAllReduce, kBytes, 1e-3)}), {journal});
  ASSERT_EQ(offers.contexts.size(), 1u);
  EXPECT_TRUE(offers.by_launches.empty());
  EXPECT_TRUE(offers.all[0].also_captured);
}

TEST(OffersTest, LlIsLeftOutOfTheNewScheduler) {
  job_profile::JobProfile profile = Profile({Class(Collective::kAllReduce, kBytes, 1e-3)});
  profile.roles[0].library_version = 22901;
  const JobOffers offers = FindOffers(profile, {Journal({5, 5, 4, 6, 7, 2}, 8)});
  ASSERT_EQ(offers.contexts.size(), 1u);
  EXPECT_EQ(Pairs(offers.contexts[0]), (PairList{{0, 1}, {0, 2}, {1, 1}, {1, 2}}));
}

TEST(OffersTest, NotMoreContextsThanAreTried) {
  std::vector<job_profile::CallClass> classes;
  std::vector<journal::JournalContents> journals;
  for (size_t i = 0; i < kMostContexts + 1; ++i) {
    classes.push_back(Class(Collective::kAllReduce, uint64_t{1024} << i, 1e-3));
    journals.push_back(Journal({5, 5, 4, 6, 7, 2}, 8));
    for (journal::JournalRecord& record : journals.back().records) record.bytes = 1024ULL << i;
  }
  const JobOffers offers = FindOffers(Profile(std::move(classes)), journals);
  EXPECT_EQ(offers.contexts.size(), kMostContexts);
  ASSERT_EQ(offers.all.size(), kMostContexts + 1);
  EXPECT_NE(offers.all.back().untried, "");
}

}  // namespace
}  // namespace diapason::job_tune
