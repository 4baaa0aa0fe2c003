#include "learn/iterations.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace diapason::learn {
namespace {

// A program: letters are kinds of calls, 1 ms apart; a blank is a pause of 10 ms.
class Program {
 public:
  explicit Program(size_t longest = 1024) : finder_(longest) {}

  // The calls that were said to begin an iteration, as indices from the start of this text.
  std::vector<size_t> Run(const std::string& text) {
    std::vector<size_t> begins;
    size_t index = 0;
    for (const char letter : text) {
      if (letter == ' ') {
        time_ += 10e-3;
        continue;
      }
      if (finder_.Call(static_cast<uint64_t>(letter), time_)) begins.push_back(index);
      time_ += 1e-3;
      ++index;
    }
    return begins;
  }
  size_t period() const { return finder_.period(); }

 private:
  IterationFinder finder_;
  double time_ = 0;
};

std::string Times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// Every iteration of `text` is found from the fourth at the latest, at its first call.
void ExpectBegins(const std::vector<size_t>& begins, size_t period, size_t iterations) {
  ASSERT_GE(begins.size() + 1, iterations / 2);
  for (const size_t begin : begins) EXPECT_EQ(begin % period, 0u);
}

TEST(IterationFinder, FindsAPeriodAndItsBeginning) {
  Program program;
  ExpectBegins(program.Run(Times(20, " abcab")), 5, 20);
  EXPECT_EQ(program.period(), 5u);
}

TEST(IterationFinder, TheBeginningIsWhereTheProgramPauses) {
  Program program;
  for (const size_t begin : program.Run(Times(20, "ab cde"))) EXPECT_EQ(begin % 5, 2u);
}

TEST(IterationFinder, NeedsThreeRepetitions) {
  Program program;
  program.Run(Times(2, " abcdefghijkl"));
  EXPECT_EQ(program.period(), 0u);
  program.Run(Times(2, " abcdefghijkl"));
  EXPECT_EQ(program.period(), 12u);
}

TEST(IterationFinder, PrefersTheSmallestPeriod) {
  Program program;
  program.Run(Times(200, " ab"));
  EXPECT_EQ(program.period(), 2u);
  Program one;
  one.Run(Times(50, "a"));
  EXPECT_EQ(one.period(), 1u);
}

TEST(IterationFinder, RunsOfOneKindAreNoPeriodOfOne) {
  Program program;
  const std::string step = " " + Times(50, "a") + "b";
  program.Run(Times(12, step));
  EXPECT_EQ(program.period(), 51u);
  const auto begins = program.Run(Times(10, step));
  EXPECT_EQ(begins.size(), 10u);
  ExpectBegins(begins, 51, 10);
}

TEST(IterationFinder, SurvivesAWarmUp) {
  Program program;
  program.Run("qwertyqqqqzzuiopab");
  program.Run(Times(30, " abc"));
  EXPECT_EQ(program.period(), 3u);
  EXPECT_EQ(program.Run(Times(4, " abc")), (std::vector<size_t>{0, 3, 6, 9}));
}

TEST(IterationFinder, SurvivesAnEvaluation) {
  Program program;
  program.Run(Times(60, " abcd"));
  ASSERT_EQ(program.period(), 4u);
  program.Run("xyxyz");
  // One iteration to find back.
  EXPECT_EQ(program.Run(Times(4, " abcd")), (std::vector<size_t>{4, 8, 12}));
  EXPECT_EQ(program.period(), 4u);
  // Again and again, every 60 iterations.
  size_t found = 0;
  for (int i = 0; i < 20; ++i) {
    program.Run("xyxyz");
    for (const size_t begin : program.Run(Times(60, " abcd"))) {
      EXPECT_EQ(begin % 4, 0u);
      ++found;
    }
  }
  EXPECT_GE(found, 20u * 58);
  EXPECT_EQ(program.period(), 4u);
}

TEST(IterationFinder, FollowsAChangeOfThePeriod) {
  Program program;
  program.Run(Times(50, " abcd"));
  program.Run(Times(60, " abcdef"));
  EXPECT_EQ(program.period(), 6u);
  ExpectBegins(program.Run(Times(10, " abcdef")), 6, 10);
  program.Run(Times(60, " ab"));
  EXPECT_EQ(program.period(), 2u);
}

TEST(IterationFinder, NoPeriodInNoise) {
  IterationFinder finder(64);
  const CounterRandom random(1, 1);
  for (uint64_t i = 0; i < 20000; ++i) {
    EXPECT_FALSE(finder.Call(random.Bits(i) % 5, static_cast<double>(i)));
  }
  EXPECT_EQ(finder.period(), 0u);
}

TEST(IterationFinder, ALongIterationIsFoundUpToTheLimit) {
  const CounterRandom random(2, 2);
  for (const size_t period : {1000, 1500}) {
    IterationFinder finder(1024);
    size_t begins = 0;
    double time = 0;
    for (size_t i = 0; i < 8 * period; ++i) {
      time += i % period == 0 ? 1 : 1e-3;
      if (!finder.Call(random.Bits(i % period) % 3, time)) continue;
      EXPECT_EQ(i % period, 0u);
      ++begins;
    }
    EXPECT_EQ(finder.period(), period <= 1024 ? period : 0);
    EXPECT_EQ(begins >= 3, period <= 1024);
  }
}

TEST(IterationFinder, StrangeTimesDoNoHarm) {
  IterationFinder finder(16);
  for (int i = 0; i < 200; ++i)
    finder.Call(static_cast<uint64_t>(i % 3), i % 2 == 0 ? -1e300 : NAN);
  EXPECT_EQ(finder.period(), 3u);
}

}  // namespace
}  // namespace diapason::learn
