#include "agree/patient_store.h"

#include <gtest/gtest.h>

#include <vector>

namespace diapason::agree {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Fails a number of calls, then answers.
class FailingStore : public CellStore {
 public:
  using CellStore::Forget;
  using CellStore::Propose;
  using CellStore::Read;
  Result<std::string> Propose(std::string_view, std::string_view value, Deadline) override {
    ++calls;
    if (failures-- > 0) return failure;
    return std::string(value);
  }
  Result<std::optional<std::string>> Read(std::string_view, Deadline) override {
    ++calls;
    if (failures-- > 0) return failure;
    return std::optional<std::string>();
  }
  void Forget(std::string_view, Deadline) override {}
  double Fullness() override { return 0.5; }
  std::string Describe() const override { return "failing"; }
  bool Mine() const override { return true; }

  int failures = 0;
  int calls = 0;
  Status failure = IoError("away");
};

class PatientStoreTest : public testing::Test {
 protected:
  PatientStore Patient(std::chrono::milliseconds patience) {
    return {&below_, patience, [this](const std::string& text) { said_.push_back(text); }};
  }
  FailingStore below_;
  std::vector<std::string> said_;
};

TEST_F(PatientStoreTest, WaitsForAStoreThatIsAwayAndSaysSoTwice) {
  below_.failures = 4;
  PatientStore store = Patient(seconds(600));
  const auto value = store.Propose("key", "mine");
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ(value.value(), "mine");
  EXPECT_EQ(below_.calls, 5);
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_NE(said_[0].find("waiting for the store, at most 600 s: away"), std::string::npos);
  EXPECT_NE(said_[1].find("answers again"), std::string::npos);
}

TEST_F(PatientStoreTest, SaysNothingWhereNothingFails) {
  PatientStore store = Patient(seconds(600));
  EXPECT_TRUE(store.Propose("key", "mine").ok());
  const auto nothing = store.Read("key");
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing.value().has_value()) << "an empty cell is an answer, and not waited for";
  EXPECT_TRUE(said_.empty());
  EXPECT_EQ(below_.calls, 2);
}

TEST_F(PatientStoreTest, PatienceEnds) {
  below_.failures = 1 << 30;
  PatientStore store = Patient(milliseconds(30));
  const auto value = store.Read("key");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().message(), "away");
  if (said_.empty()) GTEST_SKIP() << "the first attempt took longer than the patience";
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_NE(said_[1].find("in vain"), std::string::npos);
}

TEST_F(PatientStoreTest, WithoutPatienceThereIsOneAttempt) {
  below_.failures = 1 << 30;
  PatientStore store = Patient(milliseconds(0));
  EXPECT_FALSE(store.Read("key").ok());
  EXPECT_EQ(below_.calls, 1);
  EXPECT_TRUE(said_.empty());
}

TEST_F(PatientStoreTest, WhatIsLostIsNotWaitedFor) {
  below_.failures = 3;
  below_.failure = Unavailable("emptied");
  PatientStore store = Patient(seconds(600));
  EXPECT_FALSE(store.Propose("key", "mine").ok());
  EXPECT_EQ(below_.calls, 1);
}

}  // namespace
}  // namespace diapason::agree
