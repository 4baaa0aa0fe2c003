#include "plugin/env/env_answers.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>

namespace diapason::plugin {
namespace {

class EnvAnswersTest : public testing::Test {
 protected:
  EnvAnswersTest() { Clear(); }
  ~EnvAnswersTest() override { Clear(); }
  static void Clear() {
    for (const char* name :
         {"NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN", "DIAPASON_MODE", "NCCL_SOMETHING_ELSE"}) {
      unsetenv(name);
    }
  }
  static std::string Answer(const char* name) {
    const char* answer = AnswerEnvironment(name);
    return answer == nullptr ? "(nothing)" : answer;
  }
};

std::string ThisFile() {
  char path[4096] = "";
  return realpath("/proc/self/exe", path) == nullptr ? "" : path;
}

TEST_F(EnvAnswersTest, BothPluginsAreThisFile) {
  EXPECT_EQ(Answer("NCCL_TUNER_PLUGIN"), ThisFile());
  EXPECT_EQ(Answer("NCCL_PROFILER_PLUGIN"), ThisFile());
  EXPECT_EQ(AnswerEnvironment("NCCL_TUNER_PLUGIN"), AnswerEnvironment("NCCL_TUNER_PLUGIN"))
      << "the same text, for good";
}

TEST_F(EnvAnswersTest, NoTunerAndAnotherDiapasonAreTheUsersChoice) {
  for (const char* value : {"none", "NONE", "diapason", "/opt/libnccl-tuner-diapason.so"}) {
    setenv("NCCL_TUNER_PLUGIN", value, 1);
    EXPECT_EQ(Answer("NCCL_TUNER_PLUGIN"), value);
    EXPECT_EQ(Answer("NCCL_PROFILER_PLUGIN"), ThisFile()) << "each for itself";
  }
}

// A network plugin has set it since the job began, or the user names a tuner: it is chained.
TEST_F(EnvAnswersTest, AnotherTunerDoesNotKeepThisOneOut) {
  EXPECT_EQ(Answer("NCCL_TUNER_PLUGIN"), ThisFile());
  for (const char* value : {"", "libnccl-net.so", "/opt/other.so"}) {
    setenv("NCCL_TUNER_PLUGIN", value, 1);
    EXPECT_EQ(Answer("NCCL_TUNER_PLUGIN"), ThisFile()) << value;
  }
}

TEST_F(EnvAnswersTest, AnotherProfilerIsLoadedByThePlugin) {
  setenv("NCCL_PROFILER_PLUGIN", "/opt/inspector.so", 1);
  EXPECT_EQ(Answer("NCCL_PROFILER_PLUGIN"), ThisFile());
  for (const char* value : {"none", "NONE", ""}) {
    setenv("NCCL_PROFILER_PLUGIN", value, 1);
    EXPECT_EQ(Answer("NCCL_PROFILER_PLUGIN"), value);
  }
  setenv("NCCL_PROFILER_PLUGIN", "/opt/inspector.so", 1);
  setenv("DIAPASON_MODE", "off", 1);
  EXPECT_EQ(Answer("NCCL_PROFILER_PLUGIN"), "/opt/inspector.so");
}

TEST_F(EnvAnswersTest, EverythingElseIsTheEnvironment) {
  EXPECT_EQ(AnswerEnvironment("NCCL_SOMETHING_ELSE"), nullptr);
  EXPECT_EQ(AnswerEnvironment("NCCL_TUNER_PLUGIN_"), nullptr);
  EXPECT_EQ(AnswerEnvironment(""), nullptr);
  EXPECT_EQ(AnswerEnvironment(nullptr), nullptr);
  setenv("NCCL_SOMETHING_ELSE", "1", 1);
  EXPECT_EQ(AnswerEnvironment("NCCL_SOMETHING_ELSE"), getenv("NCCL_SOMETHING_ELSE"));
}

TEST_F(EnvAnswersTest, OffAnswersNothingOfItsOwn) {
  setenv("DIAPASON_MODE", "OFF", 1);
  EXPECT_EQ(Answer("NCCL_TUNER_PLUGIN"), "(nothing)");
  setenv("NCCL_TUNER_PLUGIN", "mine", 1);
  EXPECT_EQ(Answer("NCCL_TUNER_PLUGIN"), "mine");
  setenv("DIAPASON_MODE", "static", 1);
  EXPECT_EQ(Answer("NCCL_PROFILER_PLUGIN"), ThisFile());
}

TEST_F(EnvAnswersTest, AnAddressInNoFileHasNone) {
  const int nowhere = 0;
  EXPECT_FALSE(FileOfAddress(&nowhere).ok()) << "the stack";
  EXPECT_FALSE(FileOfAddress(nullptr).ok());
}

}  // namespace
}  // namespace diapason::plugin
