#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "measure/rank_measurer.h"
#include "measure/rank_timer.h"
#include "measure/wire.h"

namespace diapason::measure {

// Measures with a group this process is rank 0 of. Rank 0 says what is measured next, the others
// follow, so that ranks can never disagree about counts or about when to stop.
class GroupMeasurer : public RankMeasurer {
 public:
  // Every rank calls one of the two, rank 0 this one.
  // `cluster`: the simulated one, where it is.
  static Result<std::unique_ptr<GroupMeasurer>> Lead(Group* group, const std::string& cluster = "");
  // Returns when rank 0 has ended the measuring, with an error when the group broke.
  static Status Follow(Group* group);

  // Lets the followers go.
  ~GroupMeasurer() override;
  GroupMeasurer(const GroupMeasurer&) = delete;
  GroupMeasurer& operator=(const GroupMeasurer&) = delete;

  Result<Measurement> Measure(const Trial& trial) override;
  Result<Measurement> MeasurePair(int first, int second, uint64_t bytes, int iterations) override;
  Result<IterationTimes> Iterate(const IterationSpec& spec) override;
  const Subject& subject() const override { return subject_; }
  double Now() const override { return rank_timer_->group()->Now(); }
  bool broken() const override { return broken_; }

 private:
  explicit GroupMeasurer(std::unique_ptr<RankTimer> rank_timer)
      : rank_timer_(std::move(rank_timer)) {}
  Status Tell(const std::string& order);

  std::unique_ptr<RankTimer> rank_timer_;
  Subject subject_;
  bool broken_ = false;
};

// The variables that can change a measurement: those of the libraries and their transports.
std::map<std::string, std::string> EnvironmentThatMatters(const Environment& environment);

}  // namespace diapason::measure
