#include "domain/plugin_names.h"

#include <gtest/gtest.h>

namespace diapason {
namespace {

constexpr Library kNccl = Library::kNccl;
constexpr Library kRccl = Library::kRccl;

TEST(PluginNamesTest, AShortNameIsAlsoAFileName) {
  EXPECT_EQ(TunerPluginNames(kNccl, 0, "ofi"), (PluginNames{"ofi", "libnccl-tuner-ofi.so"}));
  EXPECT_EQ(TunerPluginNames(kNccl, 23007, "lib.x"),
            (PluginNames{"lib.x", "libnccl-tuner-lib.x.so"}))
      << "only lib*.so is a library's file name";
  EXPECT_EQ(TunerPluginNames(kNccl, 0, "x.so"), (PluginNames{"x.so", "libnccl-tuner-x.so.so"}));
  EXPECT_EQ(TunerPluginNames(kNccl, 0, "libx.so"), PluginNames{"libx.so"});
  EXPECT_EQ(TunerPluginNames(kNccl, 0, "./x"), PluginNames{"./x"});
}

TEST(PluginNamesTest, WithoutAValueTheDefaultNameCounts) {
  EXPECT_EQ(TunerPluginNames(kNccl, 22105, ""), PluginNames{"libnccl-tuner.so"});
  EXPECT_EQ(TunerPluginNames(kRccl, 22105, ""), PluginNames{"librccl-tuner.so"});
  EXPECT_EQ(TunerPluginNames(kRccl, 22707, ""), PluginNames{"libnccl-tuner.so"});
  EXPECT_EQ(TunerPluginNames(kRccl, 0, "x"), (PluginNames{"x", "libnccl-tuner-x.so"}));
}

TEST(PluginNamesTest, Before221OnlyTheVariableCounts) {
  EXPECT_FALSE(SearchesForTuner(22005));
  EXPECT_TRUE(SearchesForTuner(22105));
  EXPECT_TRUE(SearchesForTuner(0));
  EXPECT_TRUE(TunerPluginNames(kNccl, 22005, "").empty());
  EXPECT_EQ(TunerPluginNames(kNccl, 22005, "ofi"), PluginNames{"ofi"});
}

TEST(PluginNamesTest, NetworkPluginsAreAListFrom227On) {
  const PluginNames ofi = {"ofi", "libnccl-net-ofi.so"};
  EXPECT_EQ(NetPluginNames(kNccl, 23007, "ofi,libx.so"),
            (std::vector<PluginNames>{ofi, {"libx.so"}}));
  EXPECT_EQ(NetPluginNames(kNccl, 22602, "ofi,x"),
            (std::vector<PluginNames>{{"ofi,x", "libnccl-net-ofi,x.so"}}));
  EXPECT_EQ(NetPluginNames(kNccl, 0, ""), (std::vector<PluginNames>{{"libnccl-net.so"}}));
  EXPECT_EQ(NetPluginNames(kRccl, 0, ""), (std::vector<PluginNames>{{"librccl-net.so"}}));
  EXPECT_EQ(NetPluginNames(kNccl, 0, ",ofi,,").size(), 1u);
  std::string many = "a";
  for (int i = 0; i < 40; ++i) many += ",b";
  EXPECT_EQ(NetPluginNames(kNccl, 0, many).size(), 14u);
}

TEST(PluginNamesTest, NoneIsNone) {
  EXPECT_TRUE(NamesNoPlugin("NONE"));
  EXPECT_FALSE(NamesNoPlugin(""));
  EXPECT_FALSE(NamesNoPlugin("none.so"));
  EXPECT_TRUE(NetPluginNames(kNccl, 0, "None").empty());
}

TEST(PluginNamesTest, TheProgramItself) {
  EXPECT_TRUE(NamesProgramItself("STATIC_PLUGIN"));
  EXPECT_TRUE(NamesProgramItself("Static")) << "the library compares a prefix";
  EXPECT_FALSE(NamesProgramItself(""));
  EXPECT_FALSE(NamesProgramItself("STATIC_PLUGINS"));
}

TEST(PluginNamesTest, OwnNames) {
  for (const char* own :
       {"diapason", "/opt/x/libnccl-tuner-diapason.so", "librccl-env-diapason.so"}) {
    EXPECT_TRUE(NamesDiapason(own)) << own;
  }
  for (const char* other : {"", "none", "ofi", "/opt/diapason/libnccl-tuner.so", "/x/diapason"}) {
    EXPECT_FALSE(NamesDiapason(other)) << other;
  }
}

TEST(PluginNames, OfAProfiler) {
  EXPECT_EQ(ProfilerPluginNames(Library::kNccl, 22809, ""), PluginNames{"libnccl-profiler.so"});
  EXPECT_EQ(ProfilerPluginNames(Library::kRccl, 22803, ""), PluginNames{"librccl-profiler.so"});
  EXPECT_EQ(ProfilerPluginNames(Library::kRccl, 0, ""), PluginNames{"libnccl-profiler.so"});
  EXPECT_EQ(ProfilerPluginNames(Library::kNccl, 0, "inspector"),
            (PluginNames{"inspector", "libnccl-profiler-inspector.so"}));
  EXPECT_EQ(ProfilerPluginNames(Library::kNccl, 0, "/x.so"), PluginNames{"/x.so"});
}

}  // namespace
}  // namespace diapason
