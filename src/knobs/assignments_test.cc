#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "knobs/check.h"

namespace diapason::knobs {
namespace {

// "NAME=value@source", with '-' in front of overridden ones.
std::string Text(const std::vector<Assignment>& assignments) {
  std::string text;
  for (const Assignment& one : assignments) {
    text += (text.empty() ? "" : " ") + std::string(one.overridden ? "-" : "") + one.name + "=" +
            one.value + "@" + one.source;
  }
  return text;
}

TEST(FromEnvironment, TakesOnlyOurFamilies) {
  const MapEnvironment environment({{"NCCL_DEBUG", "INFO"},
                                    {"AWS_SECRET_ACCESS_KEY", "x"},
                                    {"PATH", "/bin"},
                                    {"nccl_algo", "Ring"},
                                    {"RCCL_MSCCL_ENABLE", "0"},
                                    {"MSCCL_ALGO_DIR", "/a"},
                                    {"HSA_NO_SCRATCH_RECLAIM", "1"},
                                    {"GLOO_SOCKET_IFNAME", "eth0"},
                                    {"DIAPASON_MODE", "off"},
                                    {"TORCH_NCCL_BLOCKING_WAIT", "1"},
                                    {"MY_NCCL_TOKEN", "x"}});
  EXPECT_EQ(Text(FromEnvironment(environment, "e")),
            "DIAPASON_MODE=off@e GLOO_SOCKET_IFNAME=eth0@e HSA_NO_SCRATCH_RECLAIM=1@e "
            "MSCCL_ALGO_DIR=/a@e NCCL_DEBUG=INFO@e RCCL_MSCCL_ENABLE=0@e "
            "TORCH_NCCL_BLOCKING_WAIT=1@e nccl_algo=Ring@e");
}

// A folder that looks like a machine.
class ConfigFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_ + "/etc");
    std::filesystem::create_directories(root_ + "/home/u");
  }
  void Write(const std::string& path, const std::string& text) const {
    std::ofstream(root_ + path) << text;
  }
  std::string Read(const std::map<std::string, std::string>& variables = {},
                   const CheckedFor& checked_for = {}) {
    std::map<std::string, std::string> all = variables;
    all["HOME"] = "/home/u";
    findings_.clear();
    return Text(FromConfigFiles(RootFs(root_), MapEnvironment(all), &findings_, checked_for));
  }
  const TemporaryFolder temporary_;
  const std::string root_ = temporary_.path();
  std::vector<Finding> findings_;
};

TEST_F(ConfigFiles, TheUsersWinsOverTheMachinesAndTheEnvironmentOverBoth) {
  Write("/etc/nccl.conf", "# for all\nNCCL_DEBUG=WARN\nNCCL_IB_TIMEOUT=22\nNCCL_ALGO=Ring\n");
  Write("/home/u/.nccl.conf", "NCCL_DEBUG=INFO\nNCCL_DEBUG=TRACE\n");
  EXPECT_EQ(Read({{"NCCL_ALGO", "Tree"}}),
            "NCCL_DEBUG=INFO@/home/u/.nccl.conf:1 -NCCL_DEBUG=TRACE@/home/u/.nccl.conf:2 "
            "-NCCL_DEBUG=WARN@/etc/nccl.conf:2 NCCL_IB_TIMEOUT=22@/etc/nccl.conf:3 "
            "-NCCL_ALGO=Ring@/etc/nccl.conf:4");
  EXPECT_TRUE(findings_.empty());
  for (const Assignment& one : FromConfigFiles(RootFs(root_), MapEnvironment({}), nullptr)) {
    EXPECT_TRUE(one.global);
  }
}

TEST_F(ConfigFiles, AVariableNamesAnotherFileInsteadOfTheUsers) {
  Write("/etc/nccl.conf", "NCCL_IB_TIMEOUT=22\n");
  Write("/home/u/.nccl.conf", "NCCL_DEBUG=INFO\n");
  Write("/home/u/job.conf", "NCCL_DEBUG=WARN\n");
  const std::map<std::string, std::string> named = {{"NCCL_CONF_FILE", "/home/u/job.conf"}};
  EXPECT_EQ(Read(named), "NCCL_DEBUG=WARN@/home/u/job.conf:1 NCCL_IB_TIMEOUT=22@/etc/nccl.conf:1");
  // Before 2.23.4 the library did not read it.
  EXPECT_EQ(Read(named, {Library::kNccl, 22203, nullptr}),
            "NCCL_DEBUG=INFO@/home/u/.nccl.conf:1 NCCL_IB_TIMEOUT=22@/etc/nccl.conf:1");
  EXPECT_EQ(Read({{"NCCL_CONF_FILE", "/nowhere"}}), "NCCL_IB_TIMEOUT=22@/etc/nccl.conf:1");
  ASSERT_EQ(findings_.size(), 1u);
  EXPECT_EQ(findings_[0].severity, Severity::kError);
}

TEST_F(ConfigFiles, RcclHasItsOwn) {
  Write("/etc/nccl.conf", "NCCL_IB_TIMEOUT=22\n");
  Write("/etc/rccl.conf", "NCCL_IB_TIMEOUT=20\n");
  EXPECT_EQ(Read({}, {Library::kRccl, 0, nullptr}), "NCCL_IB_TIMEOUT=20@/etc/rccl.conf:1");
}

TEST_F(ConfigFiles, LinesTheLibraryReadsOtherwise) {
  Write("/etc/nccl.conf",
        "export NCCL_DEBUG=INFO\nNCCL_ALGO = Ring\nNCCL_PROTO=\"LL\"\nNCCL_IB_TC=106 # lossless\n"
        "NCCL_SOCKET_IFNAME\nNCCL_NET=Socket\r\nother words\nSECRET=1\n");
  EXPECT_EQ(Read(),
            "NCCL_PROTO=\"LL\"@/etc/nccl.conf:3 NCCL_IB_TC=106 # lossless@/etc/nccl.conf:4 "
            "NCCL_NET=Socket@/etc/nccl.conf:6");
  ASSERT_EQ(findings_.size(), 6u);
  EXPECT_NE(findings_[0].title.find("takes 'export NCCL_DEBUG' for the whole name"),
            std::string::npos);
  EXPECT_NE(findings_[1].action.find("NCCL_ALGO=Ring"), std::string::npos);
  EXPECT_NE(findings_[2].title.find("quotes"), std::string::npos);
  EXPECT_NE(findings_[3].title.find("comment"), std::string::npos);
  EXPECT_NE(findings_[4].title.find("no '='"), std::string::npos);
  EXPECT_NE(findings_[5].title.find("carriage return"), std::string::npos);
  EXPECT_EQ(findings_[5].evidence, std::vector<std::string>{"/etc/nccl.conf:6"});
  // 2.30.3 learned to cut it off.
  (void)Read({}, {Library::kNccl, 23007, nullptr});
  EXPECT_EQ(findings_.size(), 5u);
}

}  // namespace
}  // namespace diapason::knobs
