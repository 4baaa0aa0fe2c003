#include "search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/random.h"
#include "base/stats.h"

namespace diapason::search {
namespace {

using dataset::Outcome;

// Times from a function, with noise by a counter; remembers what it was asked.
class FakeInstrument : public measure::Instrument {
 public:
  using Times = std::function<double(const measure::Trial&)>;
  explicit FakeInstrument(Times times, double noise = 0) : times_(std::move(times)), noise_(noise) {
    subject_.ranks = 8;
  }

  Result<measure::Reading> Measure(const measure::Trial& trial) override {
    asked.push_back(trial);
    if (stuck && stuck(trial)) return NotFound("no more");
    if (broken && broken(trial)) return Unavailable("the cluster is gone");
    measure::Reading reading;
    reading.iterations = 1;
    reading.seconds = times_(trial) * std::exp(noise_ * random_.Normal(asked.size()));
    if (fails && fails(trial)) {
      reading.outcome = Outcome::kHang;
      reading.seconds = 1e-9;  // a liar
    }
    if (disturbed && disturbed(trial, asked.size())) reading.seconds *= 4;
    now_ += reading.seconds;
    return reading;
  }
  const measure::Subject& subject() const override { return subject_; }
  double Now() const override { return now_; }

  std::vector<measure::Trial> asked;
  std::function<bool(const measure::Trial&)> stuck, broken, fails;
  std::function<bool(const measure::Trial&, size_t)> disturbed;

 private:
  measure::Subject subject_;
  Times times_;
  double noise_;
  CounterRandom random_{42, 0};
  double now_ = 100;
};

Contender Of(int algorithm, int protocol, int channels, std::string environment = "") {
  return {{algorithm, protocol, channels, 0}, std::move(environment)};
}

// The default, and two pairs with five channel counts each, for sizes from 1 KiB on.
std::vector<Contest> Grid(int sizes) {
  std::vector<Contest> contests;
  for (int i = 0; i < sizes; ++i) {
    Contest contest;
    contest.trial.bytes = uint64_t{1024} << i;
    contest.contenders.push_back({});
    for (const int algorithm : {kTree, kRing}) {
      for (const int channels : {1, 2, 4, 8, 16}) {
        contest.contenders.push_back(Of(algorithm, kSimple, channels));
      }
    }
    contests.push_back(contest);
  }
  return contests;
}

// Latency and bandwidth; trees start sooner, rings carry more; the default is a tree of 4 channels.
double Modelled(const measure::Trial& trial) {
  const bool ring = trial.config.algorithm == kRing;
  const int channels = trial.config.channels > 0 ? trial.config.channels : 4;
  const double start = (ring ? 30e-6 : 8e-6) * (1 + 0.02 * channels);
  return start + static_cast<double>(trial.bytes) / (channels * (ring ? 4e9 : 2e9));
}

double TimeOf(const Contest& contest, size_t contender) {
  measure::Trial trial = contest.trial;
  trial.config = contest.contenders[contender].config;
  trial.environment = contest.contenders[contender].environment;
  return Modelled(trial);
}

double BestTime(const Contest& contest) {
  double best = INFINITY;
  for (size_t i = 0; i < contest.contenders.size(); ++i) {
    best = std::min(best, TimeOf(contest, i));
  }
  return best;
}

size_t SamplesIn(const Knowledge& known) {
  size_t sum = 0;
  for (const auto& contest : known) {
    for (const Evidence& evidence : contest) sum += evidence.seconds.size();
  }
  return sum;
}

Knowledge Nothing(const std::vector<Contest>& contests) {
  Knowledge known;
  for (const Contest& contest : contests) known.emplace_back(contest.contenders.size());
  return known;
}

using Search = Status (*)(measure::Instrument*, const std::vector<Contest>&, const SearchOptions&,
                          const Observer&, Knowledge*);

class EverySearch : public testing::TestWithParam<Search> {};

TEST_P(EverySearch, KeepsToABudgetOfSamples) {
  for (const int64_t budget : {1, 2, 7, 40, 300}) {
    FakeInstrument instrument(Modelled, 0.05);
    const std::vector<Contest> contests = Grid(8);
    SearchOptions options;
    options.samples = budget;
    Knowledge known;
    ASSERT_TRUE(GetParam()(&instrument, contests, options, {}, &known).ok());
    EXPECT_EQ(static_cast<int64_t>(instrument.asked.size()), budget);
    EXPECT_EQ(static_cast<int64_t>(SamplesIn(known)), budget);
  }
}

TEST_P(EverySearch, BeginsNoSampleAfterItsSeconds) {
  FakeInstrument instrument(Modelled, 0.05);
  SearchOptions options;
  options.seconds = 3e-3;
  Knowledge known;
  const double begin = instrument.Now();
  double last_begin = begin;
  double now = begin;
  const Observer observer = [&](size_t, size_t, const measure::Reading&) {
    last_begin = now;
    now = instrument.Now();
    return true;
  };
  ASSERT_TRUE(GetParam()(&instrument, Grid(8), options, observer, &known).ok());
  EXPECT_GT(SamplesIn(known), 8u);
  EXPECT_LT(last_begin - begin, options.seconds);
  EXPECT_GE(now - begin, options.seconds);
}

TEST_P(EverySearch, StopsWhenTold) {
  FakeInstrument instrument(Modelled, 0.05);
  int seen = 0;
  const Observer observer = [&](size_t, size_t, const measure::Reading&) { return ++seen < 13; };
  Knowledge known;
  ASSERT_TRUE(GetParam()(&instrument, Grid(8), {}, observer, &known).ok());
  EXPECT_EQ(instrument.asked.size(), 13u);
  EXPECT_EQ(SamplesIn(known), 13u);
}

TEST_P(EverySearch, AsksWhoFailsOnceAndNeverChoosesIt) {
  FakeInstrument instrument(Modelled, 0.02);
  // By its times, the best of the larger sizes.
  instrument.fails = [](const measure::Trial& trial) {
    return trial.config.algorithm == kRing && trial.config.channels == 16;
  };
  const std::vector<Contest> contests = Grid(8);
  Knowledge known;
  SearchOptions options;
  options.samples = 400;
  ASSERT_TRUE(GetParam()(&instrument, contests, options, {}, &known).ok());
  std::map<uint64_t, int> asked;
  for (const measure::Trial& trial : instrument.asked) {
    if (instrument.fails(trial)) ++asked[trial.bytes];
  }
  EXPECT_FALSE(asked.empty());
  for (const auto& [bytes, times] : asked) EXPECT_EQ(times, 1) << bytes;
  const std::vector<Verdict> verdicts = Judge(contests, known);
  for (size_t i = 0; i < contests.size(); ++i) EXPECT_NE(verdicts[i].best, 10u);
}

TEST_P(EverySearch, SurvivesADefaultThatFails) {
  FakeInstrument instrument(Modelled, 0.02);
  instrument.fails = [](const measure::Trial& trial) { return trial.config.IsDefault(); };
  const std::vector<Contest> contests = Grid(4);
  Knowledge known;
  SearchOptions options;
  options.samples = 120;
  ASSERT_TRUE(GetParam()(&instrument, contests, options, {}, &known).ok());
  for (const Verdict& verdict : Judge(contests, known)) {
    EXPECT_NE(verdict.best, 0u);
    EXPECT_TRUE(verdict.decided);
  }
}

TEST_P(EverySearch, RepeatsItselfForASeed) {
  const auto run = [](uint64_t seed) {
    FakeInstrument instrument(Modelled, 0.05);
    SearchOptions options;
    options.samples = 60;
    options.seed = seed;
    Knowledge known;
    EXPECT_TRUE(GetParam()(&instrument, Grid(6), options, {}, &known).ok());
    return instrument.asked;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

TEST_P(EverySearch, GoesOnWhereThereIsNothingMoreOfSomeone) {
  FakeInstrument instrument(Modelled, 0.05);
  instrument.stuck = [](const measure::Trial& trial) { return trial.config.channels == 2; };
  Knowledge known;
  SearchOptions options;
  options.samples = 200;
  ASSERT_TRUE(GetParam()(&instrument, Grid(5), options, {}, &known).ok());
  EXPECT_EQ(SamplesIn(known), 200u);
}

TEST_P(EverySearch, EndsWithAnErrorAndKeepsWhatItHas) {
  FakeInstrument instrument(Modelled, 0.05);
  instrument.broken = [&](const measure::Trial&) { return instrument.asked.size() > 20; };
  Knowledge known;
  const Status status = GetParam()(&instrument, Grid(5), {}, {}, &known);
  EXPECT_EQ(status.message(), "the cluster is gone");
  EXPECT_EQ(SamplesIn(known), 20u);
}

TEST_P(EverySearch, EndsByItself) {
  FakeInstrument instrument(Modelled, 0.01);
  const std::vector<Contest> contests = Grid(5);
  Knowledge known;
  ASSERT_TRUE(GetParam()(&instrument, contests, {}, {}, &known).ok());
  EXPECT_LT(SamplesIn(known), 5u * 11 * 20);
  const std::vector<Verdict> verdicts = Judge(contests, known);
  for (size_t i = 0; i < contests.size(); ++i) {
    EXPECT_LT(TimeOf(contests[i], verdicts[i].best), 1.03 * BestTime(contests[i])) << i;
  }
}

TEST_P(EverySearch, RefusesWhatDoesNotFit) {
  FakeInstrument instrument(Modelled);
  Knowledge known(3);
  EXPECT_FALSE(GetParam()(&instrument, Grid(5), {}, {}, &known).ok());
  known = Nothing(Grid(5));
  known[2][1].seconds.push_back(0);
  EXPECT_FALSE(GetParam()(&instrument, Grid(5), {}, {}, &known).ok());
  std::vector<Contest> contests = Grid(5);
  contests[1].contenders.clear();
  known.clear();
  EXPECT_FALSE(GetParam()(&instrument, contests, {}, {}, &known).ok());
  known.clear();
  SearchOptions options;
  options.samples = -1;
  EXPECT_FALSE(GetParam()(&instrument, Grid(5), options, {}, &known).ok());
  EXPECT_TRUE(instrument.asked.empty());
  known.clear();
  EXPECT_TRUE(GetParam()(&instrument, {}, {}, {}, &known).ok());
}

INSTANTIATE_TEST_SUITE_P(Searches, EverySearch,
                         testing::Values(&SearchExhaustively, &SearchAdaptively),
                         [](const auto& search) {
                           return search.param == &SearchExhaustively ? "Exhaustive" : "Adaptive";
                         });

TEST(ExhaustiveTest, InterleavesInRoundsWhoseOrderDiffers) {
  FakeInstrument instrument(Modelled, 0.2);
  const std::vector<Contest> contests = Grid(3);
  SearchOptions options;
  options.samples = 3 * 33;
  Knowledge known;
  ASSERT_TRUE(SearchExhaustively(&instrument, contests, options, {}, &known).ok());
  std::vector<std::vector<measure::Trial>> rounds;
  for (size_t round = 0; round < 3; ++round) {
    rounds.emplace_back(instrument.asked.begin() + static_cast<ptrdiff_t>(33 * round),
                        instrument.asked.begin() + static_cast<ptrdiff_t>(33 * round + 33));
  }
  EXPECT_NE(rounds[0], rounds[1]);
  EXPECT_NE(rounds[1], rounds[2]);
  for (const auto& contest : known) {
    for (const Evidence& evidence : contest) EXPECT_EQ(evidence.seconds.size(), 3u);
  }
  for (const std::vector<measure::Trial>& round : rounds) {
    for (size_t i = 0; i < round.size(); ++i) {
      EXPECT_EQ(std::count(round.begin(), round.end(), round[i]), 1);
    }
  }
}

TEST(ExhaustiveTest, SamplesTheNoisyLonger) {
  FakeInstrument instrument([&](const measure::Trial& trial) {
    // Rings are fast and slow in turn.
    const auto times = std::count(instrument.asked.begin(), instrument.asked.end(), trial);
    return trial.config.algorithm == kRing && times % 2 == 0 ? 1.3e-3 : 1e-3;
  });
  const std::vector<Contest> contests = Grid(2);
  SearchOptions options;
  options.least_samples = 4;
  options.most_samples = 9;
  Knowledge known;
  ASSERT_TRUE(SearchExhaustively(&instrument, contests, options, {}, &known).ok());
  for (const auto& contest : known) {
    for (size_t i = 0; i < contest.size(); ++i) {
      EXPECT_EQ(contest[i].seconds.size(), i >= 6 ? 9u : 4u) << i;
    }
  }
}

TEST(ExhaustiveTest, ChangesTheEnvironmentOnceARound) {
  FakeInstrument instrument([](const measure::Trial&) { return 1e-3; });
  std::vector<Contest> contests = Grid(3);
  for (Contest& contest : contests) {
    contest.contenders.push_back(Of(kKeep, kKeep, 0, "NCCL_NTHREADS=256"));
    contest.contenders.push_back(Of(kKeep, kKeep, 0, "NCCL_BUFFSIZE=1048576"));
  }
  SearchOptions options;
  options.least_samples = 1;
  Knowledge known;
  ASSERT_TRUE(SearchExhaustively(&instrument, contests, options, {}, &known).ok());
  int changes = 0;
  for (size_t i = 1; i < instrument.asked.size(); ++i) {
    changes += instrument.asked[i].environment != instrument.asked[i - 1].environment ? 1 : 0;
  }
  EXPECT_EQ(changes, 2);
}

TEST(ExhaustiveTest, VisitsAConfigurationWhereEachCostsALaunch) {
  FakeInstrument instrument([](const measure::Trial&) { return 1e-3; }, 0.1);
  SearchOptions options;
  options.by_configuration = true;
  options.visit = 4;
  options.most_samples = 4;
  Knowledge known;
  ASSERT_TRUE(SearchExhaustively(&instrument, Grid(3), options, {}, &known).ok());
  int changes = 0;
  for (size_t i = 1; i < instrument.asked.size(); ++i) {
    changes += instrument.asked[i].config == instrument.asked[i - 1].config ? 0 : 1;
  }
  EXPECT_EQ(changes, 10);
}

TEST(AdaptiveTest, GoesOnFromWhatIsKnown) {
  const std::vector<Contest> contests = Grid(6);
  FakeInstrument instrument(Modelled, 0.03);
  SearchOptions options;
  options.samples = 60;
  Knowledge known;
  ASSERT_TRUE(SearchAdaptively(&instrument, contests, options, {}, &known).ok());
  const Knowledge before = known;
  options.samples = 10;
  ASSERT_TRUE(SearchAdaptively(&instrument, contests, options, {}, &known).ok());
  EXPECT_EQ(SamplesIn(known), 70u);
  for (size_t i = 0; i < known.size(); ++i) {
    for (size_t j = 0; j < known[i].size(); ++j) {
      const std::vector<double>& old = before[i][j].seconds;
      EXPECT_TRUE(std::equal(old.begin(), old.end(), known[i][j].seconds.begin()));
    }
  }
}

TEST(AdaptiveTest, FindsWinnersWithAFewSamples) {
  const std::vector<Contest> contests = Grid(16);
  FakeInstrument instrument(Modelled, 0.03);
  SearchOptions options;
  options.samples = 16 * 11 * 45 / 100;
  Knowledge known;
  ASSERT_TRUE(SearchAdaptively(&instrument, contests, options, {}, &known).ok());
  const std::vector<Verdict> verdicts = Judge(contests, known);
  double sum = 0;
  for (size_t i = 0; i < contests.size(); ++i) {
    const double share = BestTime(contests[i]) / TimeOf(contests[i], verdicts[i].best);
    EXPECT_GT(share, 0.85) << contests[i].trial.bytes;
    sum += std::log(share);
  }
  EXPECT_GT(std::exp(sum / 16), 0.97);
}

TEST(AdaptiveTest, SamplesEveryDefault) {
  const std::vector<Contest> contests = Grid(10);
  FakeInstrument instrument(Modelled, 0.03);
  SearchOptions options;
  options.samples = 40;
  Knowledge known;
  ASSERT_TRUE(SearchAdaptively(&instrument, contests, options, {}, &known).ok());
  for (const auto& contest : known) EXPECT_FALSE(contest[0].seconds.empty());
}

TEST(AdaptiveTest, OneContestOfStrangersIsDecidedToo) {
  // Nothing to share: one size, and contenders that have nothing in common.
  Contest contest;
  contest.trial.bytes = 1 << 20;
  contest.contenders.push_back({});
  for (int i = 1; i < 12; ++i) {
    contest.contenders.push_back(Of(kKeep, kKeep, 0, "NAME=" + std::to_string(i)));
  }
  FakeInstrument instrument(
      [](const measure::Trial& trial) { return trial.environment == "NAME=7" ? 0.8e-3 : 1e-3; }, 0.03);
  SearchOptions options;
  options.samples = 40;
  Knowledge known;
  ASSERT_TRUE(SearchAdaptively(&instrument, {contest}, options, {}, &known).ok());
  const Verdict verdict = Judge({contest}, known)[0];
  EXPECT_EQ(verdict.best, 7u);
  EXPECT_TRUE(verdict.decided);
  EXPECT_NEAR(verdict.seconds, 0.8e-3, 0.04e-3);
  EXPECT_NEAR(verdict.against, 1e-3, 0.05e-3);
  EXPECT_GE(known[0][7].seconds.size(), 3u);
}

TEST(JudgeTest, OneSampleOfEachDecidesNothing) {
  Contest contest;
  contest.trial.bytes = 1 << 10;
  contest.contenders = {{}, Of(kKeep, kKeep, 0, "NAME=1")};
  Knowledge known(1, std::vector<Evidence>(2));
  known[0][0].seconds = {2.1e-3};
  known[0][1].seconds = {0.05e-3};
  EXPECT_FALSE(Judge({contest}, known)[0].decided);
  known[0][0].seconds = {2.1e-3, 2.2e-3, 2.1e-3};
  known[0][1].seconds = {0.05e-3, 0.05e-3, 0.051e-3};
  EXPECT_TRUE(Judge({contest}, known)[0].decided);
  EXPECT_EQ(Judge({contest}, known)[0].best, 1u);
}

TEST(AdaptiveTest, GetsOverDisturbedSamples) {
  const std::vector<Contest> contests = Grid(12);
  FakeInstrument instrument(Modelled, 0.01);
  instrument.disturbed = [](const measure::Trial&, size_t index) { return MixBits(index) % 20 == 0; };
  SearchOptions options;
  options.samples = 130;
  Knowledge known;
  ASSERT_TRUE(SearchAdaptively(&instrument, contests, options, {}, &known).ok());
  const std::vector<Verdict> verdicts = Judge(contests, known);
  for (size_t i = 0; i < contests.size(); ++i) {
    EXPECT_GT(BestTime(contests[i]) / TimeOf(contests[i], verdicts[i].best), 0.8) << i;
  }
}

TEST(AdaptiveTest, SpendsSecondsWhereTheyBuyMost) {
  // The last size takes as long as all others together, thrice.
  const std::vector<Contest> contests = Grid(14);
  FakeInstrument by_samples(Modelled, 0.03);
  FakeInstrument by_seconds(Modelled, 0.03);
  Knowledge known;
  SearchOptions options;
  options.samples = 80;
  ASSERT_TRUE(SearchAdaptively(&by_samples, contests, options, {}, &known).ok());
  known.clear();
  options.samples = 0;
  options.seconds = by_samples.Now() - 100;
  ASSERT_TRUE(SearchAdaptively(&by_seconds, contests, options, {}, &known).ok());
  EXPECT_GT(by_seconds.asked.size(), by_samples.asked.size());
}

// Every contender of a grid with one sample that is exactly what the model says.
Knowledge AsModelled(const std::vector<Contest>& contests, size_t samples) {
  Knowledge known = Nothing(contests);
  for (size_t i = 0; i < contests.size(); ++i) {
    for (size_t j = 0; j < known[i].size(); ++j) {
      known[i][j].seconds.assign(samples, TimeOf(contests[i], j));
    }
  }
  return known;
}

TEST(JudgeTest, CallsATieATie) {
  const std::vector<Contest> contests = Grid(6);
  Knowledge known = Nothing(contests);
  const CounterRandom random(5, 5);
  uint64_t draw = 0;
  for (size_t i = 0; i < contests.size(); ++i) {
    for (Evidence& evidence : known[i]) {
      for (int k = 0; k < 5; ++k) {
        evidence.seconds.push_back(1e-3 * std::exp(0.02 * random.Normal(draw++)));
      }
    }
  }
  int decided = 0;
  for (const Verdict& verdict : Judge(contests, known)) {
    decided += verdict.decided ? 1 : 0;
    // A false winner, if any, is one by a hair.
    EXPECT_GT(verdict.seconds, 0.97e-3);
  }
  EXPECT_LE(decided, 1);
}

TEST(JudgeTest, KeepsTheDefaultWhereNothingElseWasSampled) {
  const std::vector<Contest> contests = Grid(4);
  Knowledge known = Nothing(contests);
  for (size_t i = 0; i < contests.size(); ++i) {
    known[i][0].seconds.push_back(TimeOf(contests[i], 0));
  }
  for (const Verdict& verdict : Judge(contests, known)) {
    EXPECT_EQ(verdict.best, 0u);
    EXPECT_FALSE(verdict.decided);
  }
  for (const Verdict& verdict : Judge(contests, Nothing(contests))) {
    EXPECT_EQ(verdict.best, 0u);
    EXPECT_FALSE(verdict.decided);
  }
}

TEST(JudgeTest, FindsWhatIsClear) {
  const std::vector<Contest> contests = Grid(12);
  const std::vector<Verdict> verdicts = Judge(contests, AsModelled(contests, 3));
  for (size_t i = 0; i < contests.size(); ++i) {
    EXPECT_LT(TimeOf(contests[i], verdicts[i].best), 1.01 * BestTime(contests[i])) << i;
    EXPECT_NEAR(verdicts[i].against / TimeOf(contests[i], 0), 1, 0.02) << i;
  }
}

TEST(JudgeTest, OneLuckySampleDoesNotWin) {
  const std::vector<Contest> contests = Grid(12);
  Knowledge known = AsModelled(contests, 1);
  const size_t before = Judge(contests, known)[6].best;
  for (size_t j = 1; j < known[6].size(); ++j) {
    if (TimeOf(contests[6], j) < 1.3 * BestTime(contests[6])) continue;
    Knowledge lucky = known;
    lucky[6][j].seconds[0] = 0.5 * BestTime(contests[6]);
    EXPECT_EQ(Judge(contests, lucky)[6].best, before) << j;
    // Confirmed, it is no luck.
    lucky[6][j].seconds.assign(3, 0.5 * BestTime(contests[6]));
    EXPECT_EQ(Judge(contests, lucky)[6].best, j);
  }
}

TEST(JudgeTest, WhoFailedAfterFineSamplesDoesNotWin) {
  const std::vector<Contest> contests = Grid(3);
  Knowledge known = AsModelled(contests, 3);
  for (auto& contest : known) {
    contest[5].seconds.assign(3, 1e-7);
    contest[5].outcome = Outcome::kWrong;
  }
  for (const Verdict& verdict : Judge(contests, known)) EXPECT_NE(verdict.best, 5u);
}

TEST(JudgeTest, OneDisturbedSampleDoesNotLose) {
  const std::vector<Contest> contests = Grid(12);
  Knowledge known = AsModelled(contests, 3);
  for (auto& contest : known) {
    for (Evidence& evidence : contest) evidence.seconds[1] *= 5;
  }
  const std::vector<Verdict> verdicts = Judge(contests, known);
  for (size_t i = 0; i < contests.size(); ++i) {
    EXPECT_LT(TimeOf(contests[i], verdicts[i].best), 1.05 * BestTime(contests[i])) << i;
  }
}

TEST(JudgeTest, SaysNothingAboutWhatDoesNotFit) {
  const std::vector<Verdict> verdicts = Judge(Grid(3), Knowledge(1));
  ASSERT_EQ(verdicts.size(), 3u);
  for (const Verdict& verdict : verdicts) {
    EXPECT_EQ(verdict.best, 0u);
    EXPECT_FALSE(verdict.decided);
  }
}

TEST(JudgeTest, TakesManyContenders) {
  // More than one block holds, in one contest and over all.
  std::vector<Contest> contests(2);
  for (size_t i = 0; i < contests.size(); ++i) {
    contests[i].trial.bytes = uint64_t{1} << (10 + i);
    contests[i].contenders.push_back({});
    for (int j = 1; j < 3000; ++j) {
      contests[i].contenders.push_back(Of(kRing, kSimple, 1, "NAME=" + std::to_string(j)));
    }
  }
  Knowledge known = Nothing(contests);
  for (auto& contest : known) {
    for (size_t j = 0; j < contest.size(); j += 50) contest[j].seconds = {1e-3, 1.01e-3, 0.99e-3};
    contest[2500].seconds = {0.5e-3, 0.51e-3, 0.5e-3};
  }
  for (const Verdict& verdict : Judge(contests, known)) {
    EXPECT_EQ(verdict.best, 2500u);
    EXPECT_TRUE(verdict.decided);
  }
}

}  // namespace
}  // namespace diapason::search
