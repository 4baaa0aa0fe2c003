#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dataset/nccl_tests.h"
#include "launch/launcher.h"
#include "measure/measurer.h"

namespace diapason::measure {

// Drives the binaries of nccl-tests or rccl-tests. They can only be told by the environment how to
// run, so every configuration is a launch; a launch measures all sizes of its collective, whose
// times are kept for when they are asked for. They run in place and out of place: a sweep asks for
// one of the two, and gets the other as a by-product.
struct TestsOptions {
  launch::Launcher launcher;
  std::string folder;                // of all_reduce_perf and the others
  Library library = Library::kNccl;  // whose binaries they are
  std::vector<uint64_t> sizes;       // of the sweep, rising
  int iterations = 20;
  int warmups = 5;
  double limit = 600;  // seconds of one launch
};

class TestsMeasurer : public Measurer {
 public:
  // Starts nothing yet; says which binaries are missing.
  static Result<std::unique_ptr<TestsMeasurer>> Create(TestsOptions options,
                                                       const std::vector<Operation>& operations);

  Result<Measurement> Measure(const Trial& trial) override;
  const Subject& subject() const override { return subject_; }
  double Now() const override;
  int launches() const override { return launches_; }
  // The half in place of what was asked out of place, or the other way round.
  std::vector<std::pair<Trial, Measurement>> TakeByproducts() override {
    return std::exchange(byproducts_, {});
  }

 private:
  explicit TestsMeasurer(TestsOptions options) : options_(std::move(options)) {}
  // One launch with the trial's configuration; its times go into `waiting_`.
  Result<Measurement> Launch(const Trial& trial);
  Result<launch::LaunchCommand> CommandOf(const Trial& trial) const;
  // Keeps the rows for the trials they are about, the halves that are not asked for as by-products;
  // returns how many there were.
  Result<size_t> TakeRows(const std::vector<dataset::LogTest>& tests, const Trial& trial);

  TestsOptions options_;
  Subject subject_;
  int launches_ = 0;
  std::map<std::string, std::deque<Measurement>> waiting_;
  std::vector<std::pair<Trial, Measurement>> byproducts_;
};

// "all_reduce_perf"
std::string TestsProgram(Operation operation);
// The variables that make the library run it so: NCCL_ALGO, NCCL_PROTO, NCCL_MIN_ and
// MAX_NCHANNELS.
std::vector<std::pair<std::string, std::string>> TestsEnvironment(const Trial& trial);

}  // namespace diapason::measure
