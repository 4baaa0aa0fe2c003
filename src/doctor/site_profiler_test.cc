#include "doctor/site_profiler.h"

#include <gtest/gtest.h>

#include <map>

#include "base/root_fs.h"
#include "host/fake_tree.h"

namespace diapason::doctor {
namespace {

constexpr char kNetwork[] = "/opt/site/libnccl-net.so";
constexpr char kDefault[] = "/opt/site/libnccl-profiler.so";
constexpr char kInspector[] = "/opt/site/libnccl-profiler-inspector.so";
constexpr char kEnv[] = "/x/libnccl-env-diapason.so";

class SiteProfilerTest : public testing::Test {
 protected:
  SiteProfilerTest() : fake_("dgx-h100.tree"), tree_(fake_.root()) {
    checked_for_.tree = &tree_;
    checked_for_.version = 22809;
  }
  void Add(const std::string& path,
           const std::string& symbols = "ncclProfiler_v4, ncclProfiler_v5") {
    fake_.Add(path + " elf soname=x.so; symbols=" + symbols);
    EXPECT_EQ(fake_.trouble(), "");
  }
  // "title | evidence" of the only finding; "" for none.
  std::string Says(const std::map<std::string, std::string>& variables) {
    std::vector<knobs::Assignment> assignments;
    for (const auto& [name, value] : variables) {
      assignments.push_back({name, value, "environment", false, false});
    }
    const std::vector<Finding> findings =
        CheckSiteProfiler(assignments, checked_for_, environment_);
    if (findings.empty()) return "";
    EXPECT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].id, "plugin.profiler-chain");
    return findings[0].title + " | " + findings[0].evidence[0];
  }
  ::testing::AssertionResult Finds(const std::map<std::string, std::string>& variables,
                                   const std::string& part) {
    const std::string said = Says(variables);
    if (said.find(part) != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "'" << said << "'";
  }

  host::FakeTree fake_;
  RootFs tree_;
  knobs::CheckedFor checked_for_;
  MapEnvironment environment_{{{"LD_LIBRARY_PATH", "/opt/site"}}};
};

TEST_F(SiteProfilerTest, TheOneThatOurSettingNames) {
  Add(kInspector);
  const std::string evidence =
      std::string("| ") + kInspector + ": profiler v4, v5 (DIAPASON_PROFILER_CHAIN)";
  for (const std::string chain : {kInspector, "inspector"}) {
    EXPECT_TRUE(Finds({{"NCCL_PROFILER_PLUGIN", "diapason"}, {"DIAPASON_PROFILER_CHAIN", chain}},
                      evidence));
    EXPECT_TRUE(Finds({{"NCCL_ENV_PLUGIN", kEnv}, {"DIAPASON_PROFILER_CHAIN", chain}}, evidence));
  }
  EXPECT_EQ(Says({{"DIAPASON_PROFILER_CHAIN", kInspector}}), "") << "diapason is not loaded";
  EXPECT_TRUE(
      Finds({{"NCCL_ENV_PLUGIN", kEnv}, {"DIAPASON_PROFILER_CHAIN", "other"}}, "is not found"));
  EXPECT_EQ(Says({{"NCCL_ENV_PLUGIN", kEnv},
                  {"DIAPASON_MODE", "off"},
                  {"DIAPASON_PROFILER_CHAIN", kInspector}}),
            "");
}

TEST_F(SiteProfilerTest, TheOneInWhosePlaceDiapasonStands) {
  EXPECT_EQ(Says({{"NCCL_ENV_PLUGIN", kEnv}}), "");
  Add(kInspector);
  EXPECT_TRUE(Finds({{"NCCL_ENV_PLUGIN", kEnv}, {"NCCL_PROFILER_PLUGIN", "inspector"}},
                    "(NCCL_PROFILER_PLUGIN)"));
  Add(kNetwork, "ncclProfiler_v5");
  EXPECT_TRUE(Finds({{"NCCL_ENV_PLUGIN", kEnv}}, "(inside the network plugin)"));
  EXPECT_TRUE(Finds({{"NCCL_ENV_PLUGIN", kEnv}, {"NCCL_PROFILER_PLUGIN", "/nowhere.so"}},
                    "(inside the network plugin)"));
  Add(kDefault);
  EXPECT_TRUE(Finds({{"NCCL_ENV_PLUGIN", kEnv}}, "(the library's default name)"));
  EXPECT_TRUE(
      Finds({{"NCCL_ENV_PLUGIN", kEnv}, {"DIAPASON_PROFILER_CHAIN", "none"}}, "is not used"));
  EXPECT_EQ(Says({{"NCCL_ENV_PLUGIN", kEnv}, {"NCCL_PROFILER_PLUGIN", "none"}}), "");
  EXPECT_EQ(Says({{"NCCL_PROFILER_PLUGIN", "diapason"}}), "") << "a choice of the user";
  checked_for_.version = 22803;
  EXPECT_EQ(Says({{"NCCL_ENV_PLUGIN", kEnv}}), "") << "too old for an env plugin";
}

TEST_F(SiteProfilerTest, AFileWithoutAProfilerIsSaid) {
  Add(kDefault, "ncclNetPlugin_v8");
  EXPECT_TRUE(Finds({{"NCCL_ENV_PLUGIN", kEnv}}, "has no profiler interface"));
  checked_for_.tree = nullptr;
  EXPECT_EQ(Says({{"NCCL_ENV_PLUGIN", kEnv}}), "") << "variables of another machine";
}

}  // namespace
}  // namespace diapason::doctor
