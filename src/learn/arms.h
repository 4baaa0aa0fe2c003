#pragma once

#include <deque>
#include <map>
#include <set>
#include <vector>

#include "learn/evidence.h"
#include "learn/learner.h"

namespace diapason::learn {

// Common part of all strategies: the arms, the evidence about them, the scheduled epochs without
// results, and the cost of exploration. A strategy decides what to run next (Plan) and evaluates
// results (Judge).
//
// Arm 0 is the library's default. Costs are counted in calls of the default: a block of n calls
// with an arm that takes r times as long as the default has lost n (r - b), where b is the best
// ratio known when it was scheduled (1 at most).
class ArmLearner : public Learner {
 public:
  ArmLearner(const LearnOptions& options, const Config& incumbent,
             std::vector<ArmConfig> candidates);

  Schedule Next(uint32_t epoch) final;
  void Lost(uint32_t epoch) final;
  void Learn(uint32_t epoch, const std::vector<SegmentResult>& results) final;
  void Add(const ArmConfig& candidate) override;
  void SetLead(uint64_t calls) final { lead_ = calls; }

  Config best() const final { return arms_[best_].config; }
  std::vector<ArmSummary> Summary() const final;
  double lost_share() const final;

 protected:
  struct Arm {
    Config config;
    double estimate = 0;
    bool dropped = false;
    bool from_policy = false;    // it was the incumbent at the start
    int outstanding = 0;         // epochs in flight that try it
    std::deque<double> seconds;  // of its newest blocks
    uint64_t samples = 0;
  };
  struct Block {
    size_t arm = 0;
    uint64_t units = 1;
    bool counts = true;
  };
  // The result of one block of an arm.
  struct Observation {
    size_t arm = 0;
    size_t reference = 0;  // what ran beside it
    double log_ratio = 0;  // to that
    double weight = 0;
  };

  // The blocks of the next epoch; at least one. An arm is compared with the adjacent blocks of
  // `reference`.
  virtual std::vector<Block> Plan() = 0;
  // Called with new results, which are already part of the evidence.
  virtual void Judge(const std::vector<Observation>& seen, bool probe) = 0;

  // The mean logarithm of the ratio of an arm's time to another's, by default to the default's.
  double Mean(size_t arm, size_t other = 0) const { return comparisons_.Mean(arm, other); }
  double Error(size_t arm, size_t other = 0) const { return comparisons_.Error(arm, other); }
  size_t Blocks(size_t arm) const { return comparisons_.Blocks(arm); }
  double Weight(size_t arm) const { return comparisons_.Weight(arm); }
  bool Known(size_t arm) const { return arm == 0 || comparisons_.Blocks(arm) > 0; }
  void Forget();
  // Its time as a multiple of the default's: as measured, else that of a sibling (the same pair
  // with another channel count), else the library's estimate, else 2.
  double Predicted(size_t arm) const;
  // The same without blocks of the arm itself; 0: unknown.
  double Expected(size_t arm) const;
  // The ratio of the nearest sibling; 0: none is known. Sets *steps to the number of doublings or
  // halvings of channels between the two, 1 at least.
  double Sibling(size_t arm, double* steps = nullptr) const;
  bool Siblings(size_t one, size_t other) const;
  // Whether a sibling's result is pending that will predict the arm better than the present data.
  bool Premature(size_t arm) const;
  // The same, as a pessimistic bound.
  double Feared(size_t arm) const;
  // The ratio of the incumbent; 1 at most.
  double BestRatio() const;
  bool Affordable(const std::vector<Block>& blocks, double share = 1) const;
  // The number of exploring epochs without results.
  size_t Outstanding() const;
  void SetReference(size_t arm) { reference_ = arm; }
  void MarkProbe() { probe_ = true; }
  void SetBest(size_t arm) { best_ = arm; }
  // Adds a counted block; before it an uncounted first use, if no arm in use or in these blocks has
  // the same algorithm, because the library then connects and allocates.
  void AddTry(size_t arm, uint64_t units, std::vector<Block>* blocks) const;
  uint32_t epoch() const { return epoch_; }
  const LearnOptions& options() const { return options_; }
  // The units that make up the calls of the lead.
  uint64_t LeadUnits() const { return (lead_ + options_.unit - 1) / options_.unit; }

  std::vector<Arm> arms_;
  size_t best_ = 0;
  CallNoise noise_;

 private:
  struct Issued {
    std::vector<Block> blocks;
    size_t reference = 0;
    bool probe = false;
    bool explores = false;
    size_t best = 0;  // when it was scheduled
    double best_ratio = 1;
    double predicted = 0;  // the loss, in calls of the default
    double feared = 0;
    double time = 0;              // the total, in calls of the default
    std::vector<int> first_uses;  // algorithms
  };
  double Loss(const std::vector<Block>& blocks, bool feared) const;
  double AllTime() const;
  // Converts a ratio of call times into the ratio of the measured times.
  double Diluted(double ratio) const;
  uint64_t LeadIn(const Block& block) const;
  void AddLeadIns(std::vector<Block>* blocks) const;
  void Release(const Issued& issued);
  std::vector<Observation> Compare(const Issued& issued, const std::vector<SegmentResult>& results);
  void Surprise(const std::vector<Observation>& seen);
  size_t Find(const Config& config) const;

  LearnOptions options_;
  Comparisons comparisons_;
  uint32_t epoch_ = 0;
  uint64_t lead_ = 0;  // calls
  size_t reference_ = 0;
  bool probe_ = false;
  std::map<uint32_t, Issued> issued_;
  std::set<int> touched_;  // algorithms
  double lost_ = 0;
  double time_ = 0;
  double surprise_ = 1;  // the factor by which arms have turned out worse than predicted
};

std::unique_ptr<Learner> MakeElimination(const LearnOptions& options, const Config& incumbent,
                                         std::vector<ArmConfig> candidates);
std::unique_ptr<Learner> MakeEpsilon(const LearnOptions& options, const Config& incumbent,
                                     std::vector<ArmConfig> candidates);
std::unique_ptr<Learner> MakeThompson(const LearnOptions& options, const Config& incumbent,
                                      std::vector<ArmConfig> candidates);

}  // namespace diapason::learn
