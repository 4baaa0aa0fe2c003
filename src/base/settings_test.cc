#include "base/settings.h"

#include <gtest/gtest.h>

#include <set>

namespace diapason {
namespace {

Settings With(std::map<std::string, std::string> variables) {
  return Settings::Read(MapEnvironment(std::move(variables)));
}

TEST(SettingsTest, TableIsInOrderAndNamesAreUnique) {
  std::set<std::string> names;
  for (size_t i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = SettingTable()[i];
    EXPECT_EQ(static_cast<size_t>(info.id), i) << info.name;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    if (*info.other_name != '\0') {
      EXPECT_TRUE(names.insert(info.other_name).second);
    }
  }
}

TEST(SettingsTest, DefaultsWithoutAnyVariable) {
  const Settings settings = With({});
  EXPECT_TRUE(settings.problems().empty());
  EXPECT_EQ(settings.Text(Setting::kMode), "static");
  EXPECT_EQ(settings.Number(Setting::kJournalLimit), int64_t{1} << 30);
  EXPECT_FALSE(settings.IsSet(Setting::kPolicy));
  EXPECT_EQ(settings.Source(Setting::kPolicy), "default");
}

TEST(SettingsTest, SecondNameWorksAndFirstNameWins) {
  EXPECT_EQ(With({{"NCCL_TUNER_CONFIG_FILE", "a"}}).Text(Setting::kPolicy), "a");
  const Settings both = With({{"NCCL_TUNER_CONFIG_FILE", "a"}, {"DIAPASON_POLICY", "b"}});
  EXPECT_EQ(both.Text(Setting::kPolicy), "b");
  EXPECT_EQ(both.Source(Setting::kPolicy), "DIAPASON_POLICY");
  EXPECT_TRUE(With({{"NCCL_WORKLOAD_OVERLAP", "1"}}).Flag(Setting::kOverlap));
}

TEST(SettingsTest, AWrongValueIsNamedWithASuggestion) {
  const Settings settings = With({{"DIAPASON_MODE", "obsreve"}, {"DIAPASON_JOURNAL_RECORDS", "7"}});
  ASSERT_EQ(settings.problems().size(), 2u);
  EXPECT_NE(settings.problems()[0].find("did you mean 'observe'"), std::string::npos);
  EXPECT_NE(settings.problems()[1].find("64 to 1048576"), std::string::npos);
  EXPECT_EQ(settings.Text(Setting::kMode), "static");
}

TEST(SettingsTest, AnUnknownNameIsWarnedAbout) {
  // The launches of `diapason tune` have a number.
  const Settings settings =
      With({{"DIAPASON_POLCY", "x"}, {"OTHER", "y"}, {"DIAPASON_LAUNCH", "3"}});
  ASSERT_EQ(settings.warnings().size(), 1u);
  EXPECT_NE(settings.warnings()[0].find("did you mean DIAPASON_POLICY?"), std::string::npos);
}

TEST(SettingsTest, EmptyMeansNotSetAndCaseOfChoicesDoesNotMatter) {
  EXPECT_FALSE(With({{"DIAPASON_MODE", ""}}).IsSet(Setting::kMode));
  EXPECT_EQ(With({{"DIAPASON_MODE", "OFF"}}).Text(Setting::kMode), "off");
}

}  // namespace
}  // namespace diapason
