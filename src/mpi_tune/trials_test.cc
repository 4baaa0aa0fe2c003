#include "mpi_tune/trials.h"

#include <gtest/gtest.h>

namespace diapason::mpi_tune {
namespace {

Config Algorithm(int number) { return {number, kKeep, 0, 0}; }

TEST(Trials, RatiosAreByTheLastDefault) {
  Trials trials(1);
  trials.Add({{}}, {2});
  trials.Add({Algorithm(1)}, {1});
  trials.Add({{}}, {8});  // the machine is busy now
  trials.Add({Algorithm(1)}, {4});
  const std::vector<InProgram>& tried = trials.tried()[0];
  ASSERT_EQ(tried.size(), 2U);
  EXPECT_TRUE(tried[0].config.IsDefault());
  EXPECT_EQ(tried[1].launches, 2);
  EXPECT_NEAR(tried[1].ratio, 0.5, 1e-12);
  EXPECT_NEAR(tried[1].seconds, 2.5, 1e-12);
}

TEST(Trials, EveryContextHasABestOfItsOwn) {
  Trials trials(2);
  trials.Add({{}, {}}, {1, 1});
  trials.Add({Algorithm(1), Algorithm(4)}, {0.5, 1.2});
  trials.Add({Algorithm(2), Algorithm(5)}, {0.7, 0.99});
  EXPECT_EQ(trials.Best(0, 0.98), (std::vector<Config>{Algorithm(1), {}}));
  EXPECT_EQ(trials.Best(1, 0.98), (std::vector<Config>{Algorithm(2), {}}));
  EXPECT_EQ(trials.Best(0, 1), (std::vector<Config>{Algorithm(1), Algorithm(5)}));
  EXPECT_TRUE(AllDefault(trials.Best(2, 2)));
}

TEST(Trials, ALaunchWithoutTheCallSaysNothing) {
  Trials trials(1);
  trials.Add({{}}, {1});
  trials.Add({Algorithm(1)}, {0});
  EXPECT_TRUE(AllDefault(trials.Best(0, 10)));
}

TEST(Trials, FinalsReplaceTheScreeningOfWhatTheyTried) {
  Trials screening(1);
  screening.Add({{}}, {1});
  screening.Add({Algorithm(1)}, {0.5});  // luck
  screening.Add({Algorithm(2)}, {1.3});
  Trials finals(1);
  finals.Add({{}}, {1});
  finals.Add({Algorithm(1)}, {1.1});
  EXPECT_TRUE(AllDefault(finals.Best(0, 0.98)));
  const std::vector<InProgram> all = FinalsFirst(finals, screening)[0];
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(all[0].config.IsDefault());
  EXPECT_NEAR(all[1].ratio, 1.1, 1e-12);
  EXPECT_NEAR(all[2].ratio, 1.3, 1e-12);
}

}  // namespace
}  // namespace diapason::mpi_tune
