#include "comm/backend_facts.h"

#include <gtest/gtest.h>

#include <set>

#include "base/settings.h"
#include "base/text.h"
#include "comm/backend.h"

namespace diapason::comm {
namespace {

TEST(BackendFactsTest, NoRowHasAHole) {
  std::set<std::string> names;
  bool simulated = false;
  for (const BackendFacts& facts : AllBackends()) {
    EXPECT_TRUE(names.insert(facts.name).second) << facts.name;
    EXPECT_NE(facts.name, std::string()) << "a row without a name";
    EXPECT_EQ(&FactsOfBackend(facts.name), &facts);
    EXPECT_NE(facts.simulated, facts.library.has_value()) << facts.name;
    EXPECT_NE(facts.built_in == nullptr, std::string(facts.package).empty()) << facts.name;
    EXPECT_EQ(facts.gpus != nullptr, facts.library && AsksTuner(*facts.library)) << facts.name;
    EXPECT_EQ(facts.ranks == 0, facts.gpus != nullptr) << facts.name;
    EXPECT_FALSE(simulated && !facts.simulated) << facts.name << " comes after a simulated one";
    simulated = facts.simulated;
    if (facts.built_in != nullptr) {
      ASSERT_TRUE(FindBackend(facts.name).ok()) << facts.name;
      EXPECT_EQ(FindBackend(facts.name).value(), facts.built_in());
    }
  }
}

TEST(BackendFactsTest, EveryLibraryHasABackend) {
  for (int i = 0; i < kLibraryCount; ++i) {
    const auto library = static_cast<Library>(i);
    const std::string backend = BackendOf(library);
    EXPECT_EQ(LibraryOf(backend, "").value(), library) << LibraryName(library);
  }
  EXPECT_EQ(LibraryOf("sim", "h100x8").value(), Library::kNccl);
  EXPECT_FALSE(LibraryOf("sim", "").ok());
  EXPECT_FALSE(LibraryOf("auto", "").ok());
}

// base cannot read the table: its list of values has to be the same.
TEST(BackendFactsTest, TheSettingHasEveryBackend) {
  for (const std::string& name : BackendNames()) {
    const MapEnvironment environment({{"DIAPASON_BACKEND", name}});
    const Settings settings = Settings::Read(environment);
    EXPECT_TRUE(settings.problems().empty()) << Join(settings.problems(), "; ");
  }
}

TEST(BackendFactsTest, AnotherNameIsNoBackend) {
  EXPECT_STREQ(FactsOfBackend("auto").name, "");
  EXPECT_EQ(FactsOfBackend("replay").gpus, nullptr);
  EXPECT_FALSE(FindBackend("auto").ok());
  EXPECT_FALSE(FindBackend("").ok());
}

}  // namespace
}  // namespace diapason::comm
