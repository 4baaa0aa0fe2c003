#include "host/libraries.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "host/elf.h"
#include "host/fake_tree.h"
#include "host/paths.h"
#include "host/torch.h"

namespace diapason::host {
namespace {

const char* const kNccl =
    "soname=libnccl.so.2; symbols=ncclGetVersion; text=NCCL version 2.28.9 compiled with CUDA "
    "13.0, "
    "NCCL version 2.28.9+cuda13.0, ncclTunerPlugin_v4, ncclTunerPlugin_v5, ncclProfiler_v5, "
    "ncclProfilerEventState_v5_t, ncclCollNetPlugin_v9, ncclNetPlugin_v11, ncclEnvPlugin_v1";

MapEnvironment Variables(std::map<std::string, std::string> variables = {}) {
  return MapEnvironment(std::move(variables));
}

TEST(LookAtLibrary, ReadsWhatTheFileSays) {
  FakeTree fake("");
  fake.Add(std::string("/lib/libnccl.so.2 elf ") + kNccl);
  ASSERT_EQ(fake.trouble(), "");
  const Result<LibraryFile> file = LookAtLibrary(RootFs(fake.root()), "/lib/libnccl.so.2");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file.value().library, Library::kNccl);
  EXPECT_EQ(file.value().version, 22809);
  EXPECT_EQ(file.value().version_text, "2.28.9+cuda13.0");
  EXPECT_EQ(file.value().toolkit, "CUDA 13.0");
  EXPECT_EQ(file.value().tuner_apis, (std::vector<int>{4, 5}));
  EXPECT_EQ(file.value().profiler_apis, std::vector<int>{5});
  EXPECT_EQ(file.value().env_apis, std::vector<int>{1});
  EXPECT_EQ(file.value().net_apis, std::vector<int>{11});
}

TEST(LookAtLibrary, RcclOldAndNew) {
  FakeTree fake("");
  fake.Add("/old elf symbols=ncclGetVersion; text=RCCL version 2.18.3+hip5.7");
  fake.Add(
      "/new elf symbols=ncclGetVersion; text=RCCL version : 2.21.5, HIP version  : "
      "6.3.4-fa1d\\nROCm version : 6.3.2.0-66, NCCL version 2.21.5+cuda12.0");
  const Result<LibraryFile> old = LookAtLibrary(RootFs(fake.root()), "/old");
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(old.value().library, Library::kRccl);
  EXPECT_EQ(old.value().version, 21803);
  EXPECT_EQ(old.value().toolkit, "ROCm 5.7");
  const Result<LibraryFile> fresh = LookAtLibrary(RootFs(fake.root()), "/new");
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(fresh.value().library, Library::kRccl);
  EXPECT_EQ(fresh.value().toolkit, "ROCm 6.3.2");
}

TEST(LookAtLibrary, RefusesWhatIsNone) {
  FakeTree fake("");
  fake.Add("/text = NCCL version 2.28.9+cuda13.0 ncclGetVersion");
  fake.Add("/other elf soname=libm.so.6; symbols=cos; text=NCCL version 2.28.9");
  fake.Add("/nameless elf symbols=ncclGetVersion; text=hello");
  fake.Add("/folder /");
  const RootFs tree(fake.root());
  for (const char* path : {"/text", "/other", "/nameless", "/folder", "/nothing"}) {
    EXPECT_FALSE(LookAtLibrary(tree, path).ok()) << path;
  }
}

// Cut anywhere, and with bytes changed: never a crash, never a hang.
TEST(LookAtLibrary, SurvivesDamage) {
  FakeTree fake("");
  const std::string whole = FakeElf(kNccl);
  const RootFs tree(fake.root());
  const auto look = [&](const std::string& bytes) {
    std::ofstream(fake.root() + "/x", std::ios::binary) << bytes;
    const Result<LibraryFile> file = LookAtLibrary(tree, "/x");
    if (file.ok()) {
      EXPECT_LE(file.value().version_text.size(), 64u);
    }
  };
  for (size_t size = 0; size < whole.size(); size += 7) look(whole.substr(0, size));
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 8; ++i) {
      // The tables matter most: the head and the section table at the end.
      const size_t at = (random() % 2 == 0) ? random() % 64 : bytes.size() - 1 - random() % 320;
      bytes[at] = static_cast<char>(random());
    }
    look(bytes);
  }
}

TEST(Paths, LinksStayBelowTheRoot) {
  FakeTree fake("");
  fake.Add("/opt/rocm-6/lib/a = 1");
  fake.Add("/opt/rocm -> /opt/rocm-6");
  fake.Add("/etc/up -> ../../../../opt/rocm/lib");
  fake.Add("/loop -> /loop");
  const RootFs tree(fake.root());
  EXPECT_EQ(RealPath(tree, "/opt/rocm/lib/a"), "/opt/rocm-6/lib/a");
  EXPECT_EQ(RealPath(tree, "/etc/up/a"), "/opt/rocm-6/lib/a");
  EXPECT_EQ(RealPath(tree, "/loop/x"), "/loop/x");
  EXPECT_EQ(Expand(tree, "/opt/rocm*/lib"),
            (std::vector<std::string>{"/opt/rocm/lib", "/opt/rocm-6/lib"}));
}

TEST(FindLibraries, EachRealFileOnceAndTheLoadersOrder) {
  FakeTree fake("");
  const std::string nccl = kNccl;
  fake.Add("/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.9 elf " + nccl);
  fake.Add("/usr/lib/x86_64-linux-gnu/libnccl.so.2 -> libnccl.so.2.28.9");
  fake.Add("/usr/lib/x86_64-linux-gnu/libnccl.so -> libnccl.so.2");
  fake.Add("/mine/libnccl.so.2 elf symbols=ncclGetVersion; text=NCCL version 2.20.5+cuda12.4");
  fake.Add("/pre/libnccl.so.2 elf symbols=ncclGetVersion; text=NCCL version 2.19.3+cuda12.3");
  const RootFs tree(fake.root());
  const std::vector<LibraryFile> plain = FindLibraries(tree, Variables());
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain[0].path, "/usr/lib/x86_64-linux-gnu/libnccl.so.2");
  EXPECT_EQ(WouldLoad(plain, Library::kNccl, tree, Variables()), plain[0].path);
  EXPECT_EQ(WouldLoad(plain, Library::kRccl, tree, Variables()), "");

  const MapEnvironment path = Variables({{"LD_LIBRARY_PATH", "/none:/mine"}});
  const std::vector<LibraryFile> two = FindLibraries(tree, path);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(WouldLoad(two, Library::kNccl, tree, path), "/mine/libnccl.so.2");

  const MapEnvironment preload =
      Variables({{"LD_LIBRARY_PATH", "/mine"}, {"LD_PRELOAD", "/x.so /pre/libnccl.so.2"}});
  const std::vector<LibraryFile> three = FindLibraries(tree, preload);
  EXPECT_EQ(three.size(), 3u);
  EXPECT_EQ(WouldLoad(three, Library::kNccl, tree, preload), "/pre/libnccl.so.2");
}

// PyTorch's older kind of search path wins over LD_LIBRARY_PATH, the newer kind does not.
TEST(FindTorch, WhichLibraryItLoads) {
  for (const bool older : {true, false}) {
    FakeTree fake("");
    fake.Add(
        "/usr/lib/python3.11/site-packages/torch/version.py = __version__ = '2.9.0+cu128'\\n"
        "cuda: Optional[str] = '12.8'\\nhip: Optional[str] = None");
    fake.Add(std::string("/usr/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so elf "
                         "needed=libnccl.so.2; ") +
             (older ? "rpath" : "runpath") + "=$ORIGIN/../../nvidia/nccl/lib:$ORIGIN");
    fake.Add(
        "/usr/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2 elf "
        "symbols=ncclGetVersion; text=NCCL version 2.27.5+cuda12.9");
    fake.Add("/mine/libnccl.so.2 elf symbols=ncclGetVersion; text=NCCL version 2.20.5+cuda12.4");
    const RootFs tree(fake.root());
    const MapEnvironment environment = Variables({{"LD_LIBRARY_PATH", "/mine"}});
    const std::vector<LibraryFile> files = FindLibraries(tree, environment);
    const std::vector<Torch> torch = FindTorch(tree, environment, files);
    ASSERT_EQ(torch.size(), 1u);
    EXPECT_EQ(torch[0].version, "2.9.0+cu128");
    EXPECT_EQ(torch[0].toolkit, "CUDA 12.8");
    EXPECT_TRUE(torch[0].with_nccl);
    EXPECT_EQ(torch[0].own, "/usr/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2");
    EXPECT_EQ(torch[0].loads, older ? torch[0].own : "/mine/libnccl.so.2");
    EXPECT_EQ(torch[0].taken_because, older ? "its own search path" : "LD_LIBRARY_PATH");
  }
}

}  // namespace
}  // namespace diapason::host
