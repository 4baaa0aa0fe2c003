#include "host/job_library.h"

#include <gtest/gtest.h>

#include "host/fake_tree.h"

namespace diapason::host {
namespace {

constexpr char kSystemFile[] = "/usr/lib/x86_64-linux-gnu/libnccl.so.2";

std::string NcclElf(const std::string& version) {
  return "elf soname=libnccl.so.2; symbols=ncclGetVersion; text=NCCL version " + version +
         "+cuda13.0";
}

class JobLibraryTest : public ::testing::Test {
 protected:
  // A PyTorch with a library of its own below a folder of packages.
  void AddTorch(const std::string& packages, const std::string& torch, const std::string& nccl) {
    fake_.Add(packages + "/torch/version.py = __version__ = '" + torch +
              "'\\ncuda: Optional[str] = '13.0'\\nhip: Optional[str] = None");
    fake_.Add(packages +
              "/torch/lib/libtorch_cuda.so elf needed=libnccl.so.2; "
              "rpath=$ORIGIN/../../nvidia/nccl/lib:$ORIGIN");
    fake_.Add(packages + "/nvidia/nccl/lib/libnccl.so.2 " + NcclElf(nccl));
  }
  void AddSystem(const std::string& nccl) {
    fake_.Add(std::string(kSystemFile) + " " + NcclElf(nccl));
  }
  JobLibrary Find(std::map<std::string, std::string> variables = {},
                  Library library = Library::kNccl) {
    EXPECT_EQ(fake_.trouble(), "");
    const RootFs tree(fake_.root());
    const MapEnvironment environment(std::move(variables));
    files_ = FindLibraries(tree, environment);
    return FindJobLibrary(tree, environment, library, FindTorch(tree, environment, files_),
                          &files_);
  }

  FakeTree fake_{""};
  std::vector<LibraryFile> files_;
};

TEST_F(JobLibraryTest, ThePyTorchOfTheInterpreterComesBeforeTheSystem) {
  AddSystem("2.28.3");
  AddTorch("/opt/env/lib/python3.12/site-packages", "2.11.0", "2.28.9");
  fake_.Add("/opt/env/bin/python3 = x");
  const JobLibrary job = Find({{"PATH", "/usr/sbin:/opt/env/bin:/usr/bin"}});
  EXPECT_EQ(job.file, "/opt/env/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2");
  EXPECT_EQ(job.version, 22809);
  EXPECT_FALSE(job.by_name);
  EXPECT_EQ(job.WhyText(),
            std::string("PyTorch 2.11.0 loads it; a program gets 2.28.3, ") + kSystemFile);
}

TEST_F(JobLibraryTest, WithoutPyTorchItIsTheLoaders) {
  AddSystem("2.28.3");
  fake_.Add("/usr/bin/python3 = x");
  const JobLibrary job = Find({{"PATH", "/usr/bin"}});
  EXPECT_EQ(job.file, kSystemFile);
  EXPECT_TRUE(job.by_name);
  EXPECT_EQ(job.WhyText(), "the loader finds it");
  EXPECT_EQ(Find({}, Library::kRccl).file, "");
}

// A PyTorch that `python3` does not import is not the job's.
TEST_F(JobLibraryTest, OtherEnvironmentsDoNotCount) {
  AddSystem("2.28.3");
  AddTorch("/opt/other/lib/python3.12/site-packages", "2.11.0", "2.28.9");
  AddTorch("/home/u/.local/lib/python3.12/site-packages", "2.9.0", "2.27.7");
  fake_.Add("/opt/other/bin/tool = x");
  fake_.Add("/srv/env/bin/python3 -> /usr/bin/python3.12");
  fake_.Add("/usr/bin/python3.12 = x");
  fake_.Add("/srv/env/pyvenv.cfg = home = /usr/bin\\ninclude-system-site-packages = false");
  const std::string path = "/opt/other/bin:/srv/env/bin:/usr/bin";
  const std::map<std::string, std::string> variables = {{"PATH", path}, {"HOME", "/home/u"}};
  EXPECT_EQ(Find(variables).file, kSystemFile);
  // With the system's packages the user's own count as well, of the same version of Python only.
  fake_.Add("/srv/env/pyvenv.cfg = include-system-site-packages = true");
  EXPECT_EQ(Find(variables).version, 22707);
  fake_.Add("delete /srv/env/bin/python3");
  fake_.Add("/usr/bin/python3.9 = x");
  fake_.Add("/srv/env/bin/python3 -> /usr/bin/python3.9");
  EXPECT_EQ(Find(variables).version, 22803);
}

TEST_F(JobLibraryTest, AnActivatedEnvironmentComesFirst) {
  AddTorch("/opt/conda/lib/python3.12/site-packages", "2.11.0", "2.28.9");
  AddTorch("/srv/env/lib/python3.12/site-packages", "2.9.0", "2.27.7");
  AddTorch("/src", "2.12.0", "2.30.7");
  fake_.Add("/usr/bin/python3 = x");
  const std::string path = "/usr/bin";
  EXPECT_EQ(Find({{"PATH", path}, {"CONDA_PREFIX", "/opt/conda"}}).version, 22809);
  EXPECT_EQ(Find({{"PATH", path}, {"VIRTUAL_ENV", "/srv/env"}}).version, 22707);
  EXPECT_EQ(Find({{"PATH", path}, {"VIRTUAL_ENV", "/srv/env"}, {"PYTHONPATH", "/src"}}).version,
            23007);
}

TEST_F(JobLibraryTest, WhatIsNamedWins) {
  AddSystem("2.28.3");
  AddTorch("/usr/lib/python3.12/site-packages", "2.11.0", "2.28.9");
  fake_.Add("/usr/bin/python3 = x");
  fake_.Add("/mine/any.so " + NcclElf("2.30.7"));
  const JobLibrary named = Find({{"DIAPASON_NCCL_LIBRARY", "/mine/any.so"}});
  EXPECT_EQ(named.file, "/mine/any.so");
  EXPECT_EQ(named.version, 23007);
  EXPECT_EQ(named.because, "DIAPASON_NCCL_LIBRARY names it");
  EXPECT_EQ(files_.back().path, "/mine/any.so");
  // The name alone asks for the loader's.
  EXPECT_EQ(Find({{"DIAPASON_NCCL_LIBRARY", "libnccl.so.2"}}).file, kSystemFile);
  // What does not exist is not replaced by something else.
  const JobLibrary missing = Find({{"DIAPASON_NCCL_LIBRARY", "/no/libnccl.so.2"}});
  EXPECT_EQ(missing.file, "/no/libnccl.so.2");
  EXPECT_EQ(missing.version, 0);
  // A library that is loaded already cannot be replaced.
  EXPECT_EQ(Find({{"LD_PRELOAD", "/mine/any.so"}, {"DIAPASON_NCCL_LIBRARY", kSystemFile}}).version,
            23007);
}

}  // namespace
}  // namespace diapason::host
