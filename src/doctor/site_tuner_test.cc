#include "doctor/site_tuner.h"

#include <gtest/gtest.h>

#include <map>

#include "base/temporary_file.h"
#include "host/fake_tree.h"

namespace diapason::doctor {
namespace {

class SiteTunerTest : public testing::Test {
 protected:
  SiteTunerTest() : fake_("dgx-h100.tree"), tree_(fake_.root()) {
    EXPECT_EQ(fake_.trouble(), "");
    checked_for_.tree = &tree_;
    checked_for_.version = 22809;
  }
  void AddLibrary(const std::string& path, const std::string& symbols) {
    fake_.Add(path + " elf soname=x.so; symbols=" + symbols);
    EXPECT_EQ(fake_.trouble(), "");
  }
  void AddTuner(const std::string& path) { AddLibrary(path, "ncclTunerPlugin_v3"); }
  SiteTuner FindIt(const std::string& value = "", const std::string& network = "") {
    return FindSiteTuner(value, network, checked_for_, environment_);
  }
  std::vector<Finding> Check(const std::map<std::string, std::string>& variables) {
    std::vector<knobs::Assignment> assignments;
    for (const auto& [name, value] : variables) {
      assignments.push_back({name, value, "environment", false, false});
    }
    return CheckSiteTuner(assignments, checked_for_, environment_);
  }

  host::FakeTree fake_;
  RootFs tree_;
  knobs::CheckedFor checked_for_;
  MapEnvironment environment_{{{"LD_LIBRARY_PATH", "/opt/site"}}};
};

constexpr char kNetwork[] = "/opt/site/libnccl-net.so";
constexpr char kDefault[] = "/usr/lib/libnccl-tuner.so";

TEST_F(SiteTunerTest, DefaultNameThenNetworkPlugin) {
  EXPECT_EQ(FindIt().file.path, "");
  AddTuner(kNetwork);
  EXPECT_EQ(FindIt().file.path, kNetwork);
  EXPECT_EQ(FindIt().because, "inside the network plugin");
  EXPECT_EQ(FindIt().file.tuner_apis, std::vector<int>{3});
  EXPECT_EQ(FindIt("", "none").file.path, "");
  EXPECT_EQ(FindIt("none").file.path, "");
  EXPECT_EQ(FindIt("", "other").file.path, "");
  AddTuner(kDefault);
  EXPECT_EQ(FindIt().file.path, kDefault);
  EXPECT_EQ(FindIt("diapason").file.path, kDefault);
  EXPECT_EQ(FindIt("/nowhere.so").file.path, kNetwork) << "a requested one that is missing";
  EXPECT_EQ(FindIt("libnccl-net.so").because, "NCCL_TUNER_PLUGIN");
  checked_for_.version = 22005;
  EXPECT_EQ(FindIt().file.path, "");
}

TEST_F(SiteTunerTest, OurOwnFileIsPassedOver) {
  AddLibrary(kDefault, "ncclTunerPlugin_v3, diapason_version");
  EXPECT_EQ(FindIt().file.path, "");
  AddTuner(kNetwork);
  EXPECT_EQ(FindIt().file.path, kNetwork);
  EXPECT_EQ(FindIt("libnccl-tuner.so").file.path, kNetwork);
}

TEST_F(SiteTunerTest, AFileWithoutATunerEndsTheSearch) {
  AddLibrary(kDefault, "ncclNetPlugin_v8");
  AddTuner(kNetwork);
  EXPECT_EQ(FindIt().file.path, "");
}

TEST_F(SiteTunerTest, IsNamed) {
  EXPECT_TRUE(Check({{"NCCL_TUNER_PLUGIN", "diapason"}}).empty());
  AddTuner(kNetwork);
  const std::map<std::string, std::pair<std::map<std::string, std::string>, std::string>> cases = {
      {"loaded", {{{"NCCL_TUNER_PLUGIN", "diapason"}}, "asks another tuner first"}},
      {"by the env plugin",
       {{{"NCCL_ENV_PLUGIN", "/x/libnccl-env-diapason.so"}}, "asks another tuner first"}},
      {"not loaded", {{}, "the library would load a tuner"}},
      {"off", {{{"NCCL_TUNER_PLUGIN", "diapason"}, {"DIAPASON_CHAIN", "none"}}, "is not used"}}};
  for (const auto& [name, one] : cases) {
    const std::vector<Finding> findings = Check(one.first);
    ASSERT_EQ(findings.size(), 1u) << name;
    EXPECT_EQ(findings[0].id, "plugin.chain");
    EXPECT_EQ(findings[0].severity, Severity::kNote);
    EXPECT_NE(findings[0].title.find(one.second), std::string::npos) << findings[0].title;
    EXPECT_EQ(findings[0].evidence[0],
              std::string(kNetwork) + ": tuner v3 (inside the network plugin)");
  }
  const std::vector<Finding> named =
      Check({{"NCCL_TUNER_PLUGIN", "diapason"}, {"DIAPASON_CHAIN", kNetwork}});
  ASSERT_EQ(named.size(), 1u);
  EXPECT_NE(named[0].evidence[0].find("(DIAPASON_CHAIN)"), std::string::npos);
  checked_for_.tree = nullptr;
  EXPECT_TRUE(Check({{"NCCL_TUNER_PLUGIN", "diapason"}}).empty()) << "variables of another machine";
}

TEST_F(SiteTunerTest, RcclsOwnTunerIsOff) {
  checked_for_.library = Library::kRccl;
  const std::string variable = "NCCL_TUNER_CONFIG_FILE";
  EXPECT_TRUE(Check({{variable, "/x.csv"}}).empty()) << "diapason is not loaded";
  const std::vector<Finding> findings =
      Check({{variable, "/x.csv"}, {"NCCL_TUNER_PLUGIN", "diapason"}});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "plugin.built-in");
  EXPECT_EQ(findings[0].evidence[0], "NCCL_TUNER_CONFIG_FILE=/x.csv");
  EXPECT_NE(findings[0].title.find("takes its table as the policy"), std::string::npos);
  const std::vector<Finding> other = Check(
      {{variable, "/x.csv"}, {"NCCL_TUNER_PLUGIN", "diapason"}, {"DIAPASON_POLICY", "/my.conf"}});
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].title.find("takes its table"), std::string::npos);
}

}  // namespace
}  // namespace diapason::doctor
