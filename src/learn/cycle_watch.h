#pragma once

#include <cstddef>
#include <deque>
#include <string>

namespace diapason::learn {

// Whether the time from one call to the next (a cycle) can be the reward of a context: the program
// waits for each call, so that a cycle has the whole cost of a call, and the call is a large part
// of it. A program that launches ahead of the GPU makes its next call before this one has ended;
// its cycles say nothing about the calls. Not thread-safe.
class CycleWatch {
 public:
  // A cycle. `ended`: its call had ended on the GPU when the next one was launched.
  void AddCycle(double seconds, bool ended);
  // The time of one such call on the GPU.
  void AddGpuTime(double seconds);

  // Once true, it stays so until the program clearly behaves otherwise.
  bool IsReward() const { return is_reward_; }
  // It is false after so many cycles that recording more of them is not worth its cost.
  bool GivenUp() const { return !is_reward_ && seen_ >= kMostToJudge; }
  // Why it is false: "the program does not wait for its calls".
  std::string Trouble() const;

 private:
  static constexpr size_t kMostToJudge = 512;

  void Judge();
  double EndedShare() const;
  double GpuShare() const;

  std::deque<bool> ended_;
  std::deque<double> cycles_;
  std::deque<double> gpu_times_;
  size_t seen_ = 0;  // cycles
  bool is_reward_ = false;
};

}  // namespace diapason::learn
