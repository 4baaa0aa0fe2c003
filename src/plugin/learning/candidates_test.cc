#include "plugin/learning/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace diapason::plugin {
namespace {

class MapStore : public agree::CellStore {
 public:
  using agree::CellStore::Forget;
  using agree::CellStore::Propose;
  using agree::CellStore::Read;
  Result<std::string> Propose(std::string_view key, std::string_view value, Deadline) override {
    return cells_.emplace(key, value).first->second;
  }
  Result<std::optional<std::string>> Read(std::string_view key, Deadline) override {
    const auto found = cells_.find(std::string(key));
    if (found == cells_.end()) return std::optional<std::string>();
    return std::optional<std::string>(found->second);
  }
  void Forget(std::string_view, Deadline) override {}
  void Done(std::string_view, int, Deadline) override {}
  double Fullness() override { return 0; }
  std::string Describe() const override { return "a map"; }
  bool Mine() const override { return true; }

 private:
  std::map<std::string, std::string> cells_;
};

constexpr Config kTreeSimple{kTree, kSimple, 0};
constexpr Config kRingSimple{kRing, kSimple, 0};

// One rank that offers tree/simple and ring/simple at equal costs, beside a policy.
class CandidatesTest : public testing::Test {
 protected:
  void Prepare(bool is_2_31, int min_ctas, const std::vector<Config>& rows) {
    LearningOptions options;
    options.store = options.calls_store = &cells_;
    options.shape = {1, 1};
    options.host.version = is_2_31 ? 23102 : 22809;
    options.is_2_31 = is_2_31;
    options.min_ctas = min_ctas;
    options.arms = rows.empty() ? "offered" : "policy";
    policy::Policy policy;
    for (const Config& row : rows) {
      policy::Rule rule;
      rule.collective = Collective::kAllReduce;
      rule.max_bytes = UINT64_MAX;
      rule.config = row;
      policy.rules.push_back(rule);
    }
    learning_.emplace(options, policy, HostLog(nullptr, options.host), nullptr);
    uint64_t offer = 0;
    context_.costs.assign(kPairs, -1.0f);
    for (const Config& pair : {kTreeSimple, kRingSimple}) {
      offer |= uint64_t{1} << PairNumber(pair.algorithm, pair.protocol);
      context_.costs[PairNumber(pair.algorithm, pair.protocol)] = 10.0f;
    }
    ASSERT_TRUE(cells_.Propose("c.o.0", Format("{:x}", offer)).ok());
    candidates_.emplace(&*learning_, &context_, &store_);
    ASSERT_TRUE(candidates_->GatherOffers(1.0));
  }
  std::vector<Config> Initial(const Config& incumbent) {
    std::vector<Config> configs;
    for (const learn::ArmConfig& arm : candidates_->Initial(incumbent))
      configs.push_back(arm.config);
    return configs;
  }

  MapStore cells_;
  BackgroundStore store_{&cells_};
  ContextHandover context_{Collective::kAllReduce, 20, "c."};
  std::optional<LearningHandover> learning_;
  std::optional<Candidates> candidates_;
};

TEST_F(CandidatesTest, TheLibrarysChoiceAmongEqualCostsIsNoCandidate) {
  Prepare(false, 0, {});
  EXPECT_EQ(Initial({}), std::vector<Config>{kRingSimple});
}

TEST_F(CandidatesTest, From231OnThatIsTheLastOfThem) {
  Prepare(true, 0, {});
  EXPECT_EQ(Initial({}), std::vector<Config>{kTreeSimple});
}

TEST_F(CandidatesTest, From231OnACountThatTheLibraryDoesNotRaiseToIsNotTried) {
  const Config more{kTree, kSimple, 16};
  const Config fewer{kTree, kSimple, 4};
  Prepare(true, 0, {more, fewer});
  context_.default_algorithm = kRing;
  context_.default_protocol = kSimple;
  EXPECT_EQ(Initial({}), (std::vector<Config>{more, fewer})) << "its own count is not known yet";
  context_.ran_channels[kTree][kSimple] = 8;
  EXPECT_EQ(Initial({}), (std::vector<Config>{kTreeSimple, fewer}));
  EXPECT_EQ(Initial(more), (std::vector<Config>{more, fewer})) << "what runs stays an arm";
}

TEST_F(CandidatesTest, UpTo230MoreChannelsAreTried) {
  const Config more{kTree, kSimple, 16};
  Prepare(false, 0, {more});
  context_.default_algorithm = kRing;
  context_.default_protocol = kSimple;
  context_.ran_channels[kTree][kSimple] = 8;
  EXPECT_EQ(Initial({}), std::vector<Config>{more});
}

TEST_F(CandidatesTest, FewerChannelsThanTheLibraryGivesAreNotTried) {
  for (const int min_ctas : {0, 4}) {
    Prepare(true, min_ctas, {});
    context_.default_algorithm = kRing;
    context_.default_protocol = kSimple;
    context_.ran_channels[kRing][kSimple] = 16;
    const auto learner = learn::MakeLearner({}, {}, candidates_->Initial({}));
    candidates_->AddFewerChannels(learner.get());
    int fewest = 16;
    for (const learn::ArmSummary& arm : learner->Summary()) {
      if (arm.config.channels > 0) fewest = std::min(fewest, arm.config.channels);
    }
    EXPECT_EQ(fewest, min_ctas == 0 ? 1 : 4);
  }
}

// While other candidates are still tried: as soon as a pair is known to be near the best one.
TEST_F(CandidatesTest, FewerChannelsAreAddedWhenAPairHasBeenTried) {
  Prepare(false, 0, {});
  context_.default_algorithm = kRing;
  context_.default_protocol = kSimple;
  context_.ran_channels[kTree][kSimple] = 4;
  const auto learner = learn::MakeLearner({}, {}, candidates_->Initial({}));
  const auto counts = [&] {
    std::vector<int> channels;
    for (const learn::ArmSummary& arm : learner->Summary()) {
      if (arm.config.algorithm == kTree) channels.push_back(arm.config.channels);
    }
    std::sort(channels.begin(), channels.end());
    return channels;
  };
  candidates_->AddFewerChannels(learner.get());
  EXPECT_EQ(counts(), std::vector<int>{0}) << "not before it has run";
  for (uint32_t epoch = 2; epoch < 4; ++epoch) {
    const Schedule schedule = learner->Next(epoch);
    std::vector<learn::SegmentResult> results;
    for (const Segment& segment : schedule.segments) {
      results.push_back({segment.config.IsDefault() ? 1e-3 : 1.3e-3, 2});
    }
    learner->Learn(epoch, results);
  }
  EXPECT_FALSE(learner->settled());
  candidates_->AddFewerChannels(learner.get());
  EXPECT_EQ(counts(), (std::vector<int>{0, 1, 2})) << "slower than the default, and near it";
}

}  // namespace
}  // namespace diapason::plugin
