#include "domain/fingerprint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_file.h"

namespace diapason {
namespace {

class FingerprintTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  const TemporaryFolder temporary_;
  const std::string root_ = temporary_.path();
};

TEST_F(FingerprintTest, NvidiaGpusByModel) {
  for (const char* id : {"0000:01:00.0", "0000:02:00.0"}) {
    Write(std::string("/proc/driver/nvidia/gpus/") + id + "/information",
          "Model: \t\t NVIDIA H200\nIRQ:   \t\t 44\n");
  }
  EXPECT_EQ(MachineFingerprint(root_), "2x NVIDIA H200");
  EXPECT_EQ(AmdArchitecture(root_), "");
}

TEST_F(FingerprintTest, AmdGpusByArchitectureAndCpusLeftOut) {
  Write("/sys/class/kfd/kfd/topology/nodes/0/properties",
        "cpu_cores_count 64\n"
        "gfx_target_version 0\n");
  Write("/sys/class/kfd/kfd/topology/nodes/1/properties", "gfx_target_version 90500\n");
  Write("/sys/class/kfd/kfd/topology/nodes/2/properties", "gfx_target_version 90500\n");
  EXPECT_EQ(MachineFingerprint(root_), "2x gfx950");
  EXPECT_EQ(AmdArchitecture(root_), "gfx950");
  Write("/sys/class/kfd/kfd/topology/nodes/3/properties", "gfx_target_version 90010\n");
  EXPECT_EQ(MachineFingerprint(root_), "1x gfx90a + 2x gfx950");
  EXPECT_EQ(AmdArchitecture(root_), "") << "a mixed machine has no one architecture";
}

TEST_F(FingerprintTest, NothingToldMeansEmpty) { EXPECT_EQ(MachineFingerprint(root_), ""); }

}  // namespace
}  // namespace diapason
