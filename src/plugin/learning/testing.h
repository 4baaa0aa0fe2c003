// For the tests of this component: a store in memory, and a communicator of one rank that learns.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdarg>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "plugin/learning/learning.h"
#include "plugin/learning/learning_worker.h"

namespace diapason::plugin {

inline constexpr uint64_t kBytes = 1 << 20;

class MapStore : public agree::CellStore {
 public:
  using agree::CellStore::Forget;
  using agree::CellStore::Propose;
  using agree::CellStore::Read;
  Result<std::string> Propose(std::string_view key, std::string_view value, Deadline) override {
    const std::lock_guard lock(mutex_);
    return cells_.emplace(key, value).first->second;
  }
  Result<std::optional<std::string>> Read(std::string_view key, Deadline) override {
    const std::lock_guard lock(mutex_);
    if (gone) return Unavailable("it is gone");
    const auto found = cells_.find(std::string(key));
    if (found == cells_.end()) return std::optional<std::string>();
    return std::optional<std::string>(found->second);
  }
  void Forget(std::string_view, Deadline) override {}
  void Done(std::string_view, int, Deadline) override { ++done; }
  double Fullness() override { return 0; }
  std::string Describe() const override { return "a map"; }
  bool Mine() const override { return true; }

  void Clear() {
    const std::lock_guard lock(mutex_);
    cells_.clear();
  }

  std::atomic<int> done{0};
  std::atomic<bool> gone{false};

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> cells_;
};

// The only rank of a communicator, with the table of costs that it is asked with.
class LearningTest : public testing::Test {
 protected:
  LearningTest() : learning_(Make()), worker_({learning_, learning_->handover()}) {
    std::fill(std::begin(cells_), std::end(cells_), -1.0f);
    for (const int algorithm : {kTree, kRing}) cells_[algorithm * 3 + kSimple] = 10.0f;
    cells_[kRing * 3 + kSimple] = 9.0f;
  }
  std::shared_ptr<Learning> Make(bool is_2_31 = false) {
    LearningOptions options;
    options.store = options.calls_store = &store_;
    options.waker = &waker_;
    options.prefix = "c.";
    options.shape = {1, 1};
    options.host.version = is_2_31 ? 23102 : 22800;
    options.is_2_31 = is_2_31;
    options.reward = "report";
    options.arms = "offered";
    return std::make_shared<Learning>(options, policy::Policy(), HostLog(nullptr, options.host),
                                      nullptr);
  }
  const LearningContext::Ready& Ask() {
    const LearningContext::Ready* answer =
        learning_->Ask(Collective::kAllReduce, kBytes, {cells_, 7, 3});
    EXPECT_NE(answer, nullptr);
    return *answer;
  }
  // One call that is launched.
  const LearningContext::Ready& Call() {
    learning_->Called(false, ++group_);
    const LearningContext::Ready& answer = Ask();
    learning_->Launched(group_, nullptr);
    return answer;
  }
  uint64_t Made() {
    const auto contexts = learning_->handover()->Contexts();
    return contexts.empty() ? 0 : learning_->handover()->CallsMade(*contexts.front());
  }

  MapStore store_;
  Waker waker_;
  JobWatch watch_;
  std::shared_ptr<Learning> learning_;
  LearningWorker worker_;
  float cells_[21];
  uint64_t group_ = 0;
};

// The same with a log, and a background that looks when the test says so.
class LearningJob : public LearningTest {
 protected:
  void Restart(const LearningOptions& options) {
    Said().clear();
    learning_ =
        std::make_shared<Learning>(options, policy::Policy(), HostLog(Log, options.host), nullptr);
    job_ = std::make_unique<LearningWorker>(
        std::shared_ptr<LearningHandover>(learning_, learning_->handover()));
  }
  LearningOptions OptionsWith(const std::string& reward) {
    LearningOptions options = learning_->handover()->options;
    options.reward = reward;
    return options;
  }
  void Poll() { job_->Poll(now_ += 0.01, &watch_); }
  static std::string& Said() {
    static std::string said;
    return said;
  }
  static bool HasSaid(const std::string& text) { return Said().find(text) != std::string::npos; }

  std::unique_ptr<LearningWorker> job_;
  double now_ = 1;

 private:
  static void Log(int, unsigned long, const char*, int, const char* format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    Said() += text + std::string("\n");
  }
};

}  // namespace diapason::plugin
