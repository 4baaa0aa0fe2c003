#include "domain/setting_conflicts.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace diapason {
namespace {

constexpr const char* kPlugin = "/opt/lib/libnccl-tuner-diapason.so";

// "id id", in order.
std::string Ids(const std::map<std::string, std::string>& variables, int version = 0,
                bool loaded = false, const std::set<std::string>& files = {}) {
  SettingsSeen seen;
  seen.value = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  };
  seen.exists = [&](const std::string& path) { return files.count(path) > 0; };
  seen.version = version;
  seen.loaded = loaded;
  std::string ids;
  for (const SettingConflict& one : FindSettingConflicts(seen)) {
    EXPECT_FALSE(one.title.empty());
    EXPECT_FALSE(one.action.empty());
    EXPECT_FALSE(one.names.empty());
    ids += (ids.empty() ? "" : " ") + one.id;
  }
  return ids;
}

TEST(SettingConflicts, WhatIsForLearningNeedsLearning) {
  for (const char* name : {"NCCL_TUNER_EPS", "NCCL_TUNER_REWARD_FILE", "DIAPASON_REWARD"}) {
    for (const bool loaded : {false, true}) {
      EXPECT_EQ(Ids({{name, "x"}}, 0, loaded), "env.no-learning") << name;
      EXPECT_EQ(Ids({{name, "x"}, {"DIAPASON_MODE", "off"}}, 0, loaded), "env.no-learning");
    }
  }
  EXPECT_EQ(Ids({}), "");
  EXPECT_EQ(Ids({{"NCCL_TUNER_EPS", "0.1"}, {"NCCL_TUNER_PLUGIN", "/opt/bandit.so"}}), "")
      << "another tuner's";
  EXPECT_EQ(Ids({{"NCCL_TUNER_EPS", "0.1"}, {"NCCL_TUNER_PLUGIN", kPlugin}}), "env.no-learning");
  EXPECT_EQ(Ids({{"DIAPASON_MODE", "static"}, {"DIAPASON_LEARNED", "x"}}), "")
      << "a policy to start from";
  EXPECT_EQ(Ids({{"DIAPASON_MODE", "Learn"}, {"NCCL_TUNER_REWARD_FILE", "x"}}, 0, true), "");
}

TEST(SettingConflicts, EpsilonIsForOneStrategy) {
  EXPECT_EQ(Ids({{"DIAPASON_MODE", "learn"}, {"NCCL_TUNER_EPS", "0.1"}}, 0, true), "env.no-effect");
  EXPECT_EQ(
      Ids({{"DIAPASON_MODE", "learn"}, {"NCCL_TUNER_EPS", "0.1"}, {"DIAPASON_STRATEGY", "epsilon"}},
          0, true),
      "");
}

TEST(SettingConflicts, ComparingNeedsAPolicyAndWhatLearningNeeds) {
  std::map<std::string, std::string> job = {{"DIAPASON_MODE", "compare"},
                                            {"NCCL_TUNER_PLUGIN", kPlugin},
                                            {"NCCL_PROFILER_PLUGIN", kPlugin}};
  EXPECT_EQ(Ids(job), "env.nothing-to-compare");
  EXPECT_EQ(Ids(job, 22809, true, {kPlugin}), "env.nothing-to-compare");
  job["DIAPASON_POLICY_INLINE"] = "x";
  EXPECT_EQ(Ids(job), "");
  EXPECT_EQ(Ids(job, 22703), "env.old-library");
  EXPECT_EQ(Ids(job, 23102), "env.ras-learning");
  job.erase("NCCL_PROFILER_PLUGIN");
  EXPECT_EQ(Ids(job), "env.no-profiler");
  job["DIAPASON_REWARD"] = "gpu";
  EXPECT_EQ(Ids(job), "env.no-learning env.no-profiler");
}

TEST(SettingConflicts, LearningNeedsTheProfilerHalf) {
  std::map<std::string, std::string> job = {{"DIAPASON_MODE", "learn"},
                                            {"NCCL_TUNER_PLUGIN", kPlugin}};
  EXPECT_EQ(Ids({{"DIAPASON_MODE", "learn"}}), "env.inert") << "it may be loaded by the program";
  EXPECT_EQ(Ids(job), "env.no-profiler");
  EXPECT_EQ(Ids(job, 0, true), "") << "the loaded plugin knows, and says so itself";
  job["NCCL_PROFILER_PLUGIN"] = "/opt/inspector.so";
  EXPECT_EQ(Ids(job), "env.no-profiler");
  job["NCCL_PROFILER_PLUGIN"] = kPlugin;
  EXPECT_EQ(Ids(job), "");
  job["NCCL_PROFILER_PLUGIN"] = job["NCCL_TUNER_PLUGIN"] = "/opt/renamed.so";
  EXPECT_EQ(Ids(job), "");
}

TEST(SettingConflicts, TheEnvPluginBringsTheProfilerHalf) {
  std::map<std::string, std::string> job = {{"DIAPASON_MODE", "learn"},
                                            {"NCCL_ENV_PLUGIN", kPlugin}};
  EXPECT_EQ(Ids(job), "");
  EXPECT_EQ(Ids(job, 22809), "");
  EXPECT_EQ(Ids(job, 22803), "env.no-profiler") << "too old for an env plugin";
  job["NCCL_PROFILER_PLUGIN"] = "/opt/inspector.so";
  EXPECT_EQ(Ids(job), "") << "it is chained";
  job["NCCL_PROFILER_PLUGIN"] = "none";
  EXPECT_EQ(Ids(job), "env.no-profiler");
}

TEST(SettingConflicts, LearningNeedsALibraryThatCan) {
  std::map<std::string, std::string> job = {{"DIAPASON_MODE", "learn"},
                                            {"NCCL_TUNER_PLUGIN", kPlugin},
                                            {"NCCL_PROFILER_PLUGIN", kPlugin}};
  EXPECT_EQ(Ids(job, 22703), "env.old-library");
  EXPECT_EQ(Ids(job, 22800), "");
  EXPECT_EQ(Ids(job, 23007), "");
  EXPECT_EQ(Ids(job, 23102), "env.ras-learning");
  job["NCCL_RAS_ENABLE"] = "1";
  EXPECT_EQ(Ids(job, 23102), "env.ras-learning");
  job["NCCL_RAS_ENABLE"] = "0";
  EXPECT_EQ(Ids(job, 23102), "");
}

TEST(SettingConflicts, AnOverlapFlagNeedsItsFile) {
  EXPECT_EQ(Ids({{"NCCL_WORKLOAD_OVERLAP", "1"}}), "env.overlap-file");
  EXPECT_EQ(Ids({{"DIAPASON_OVERLAP", "0"}, {"NCCL_WORKLOAD_OVERLAP", "1"}}), "");
  std::map<std::string, std::string> job = {{"DIAPASON_OVERLAP", "yes"},
                                            {"DIAPASON_POLICY", "/a/b.conf"}};
  EXPECT_EQ(Ids(job, 0, false, {"/a/b.conf"}), "env.overlap-file");
  EXPECT_EQ(Ids(job, 0, false, {"/a/b.conf", "/a/b.overlap.conf"}), "");
  job["DIAPASON_POLICY_OVERLAP"] = "/c";
  EXPECT_EQ(Ids(job, 0, false, {"/a/b.overlap.conf"}), "env.overlap-file");
  EXPECT_EQ(Ids(job, 0, false, {"/c"}), "");
  job["DIAPASON_POLICY_INLINE"] = "x";
  EXPECT_EQ(Ids(job), "env.no-effect");
  EXPECT_EQ(Ids({{"DIAPASON_OVERLAP", "1"}, {"DIAPASON_LEARNED", "/a"}}), "") << "the first job";
}

TEST(SettingConflicts, TheLoadedPluginMissesItsOtherHalf) {
  const std::map<std::string, std::string> job = {{"NCCL_PROFILER_PLUGIN", "/a.so"}};
  EXPECT_EQ(Ids(job, 0, true), "env.bad-value");
  EXPECT_EQ(Ids(job, 0, true, {"/a.so"}), "");
  EXPECT_EQ(Ids({{"NCCL_PROFILER_PLUGIN", "diapason"}}, 0, true), "");
}

TEST(OverlapSibling, StandsBesideTheFile) {
  for (const auto& [path, sibling] : std::map<std::string, std::string>{
           {"x/y.conf", "x/y.overlap.conf"},
           {"y.conf", "y.overlap.conf"},
           {"/a/y.v2.csv", "/a/y.v2.overlap.conf"},
           {"y", "y.overlap.conf"},
           {"/etc/conf.d/y", "/etc/conf.d/y.overlap.conf"},
           {"../conf.d/y.conf", "../conf.d/y.overlap.conf"},
           {".hidden", ".hidden.overlap.conf"},
           {"/home/me/.hidden", "/home/me/.hidden.overlap.conf"},
           {"/home/me/.hidden.conf", "/home/me/.hidden.overlap.conf"},
           {"./y", "./y.overlap.conf"}}) {
    EXPECT_EQ(OverlapSibling(path), sibling) << path;
  }
}

}  // namespace
}  // namespace diapason
