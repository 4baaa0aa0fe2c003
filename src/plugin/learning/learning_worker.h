#pragma once

#include <pthread.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agree/freeze.h"
#include "agree/orders.h"
#include "agree/turns.h"
#include "plugin/learning/background_store.h"
#include "plugin/learning/context_explorer.h"
#include "plugin/learning/handover.h"
#include "plugin/learning/order_proposer.h"
#include "plugin/learning/reporter.h"
#include "plugin/learning/reward_file.h"
#include "plugin/learning/turn_proposer.h"

namespace diapason::plugin {

// Whether an operator has frozen exploration in this job, through the store or by a file.
class FreezeWatch {
 public:
  // Looks at most once a second.
  bool Frozen(agree::CellStore* store, const std::string& file, double now);

 private:
  double looked_at_ = 0;
  bool frozen_ = false;
  std::unique_ptr<agree::FreezeLog> log_;
};

// What the background of a process knows of the whole job. Used by the learning thread only, which
// has one for all communicators.
struct JobWatch {
  FreezeWatch freeze;
  std::unique_ptr<agree::Turns> turns;      // while the default and the policy take turns
  std::unique_ptr<agree::OrderLog> orders;  // while a program outside says what runs
  uint64_t order_number = 0;
  std::optional<policy::Order> order;  // number order_number; none: there is none, or it is invalid
};

// Learning in the background, for one communicator on one rank: takes in times, posts results,
// reads cells ahead, compares runs, and on rank 0 proposes the next epochs (handover.h has the
// picture). LearningThread owns it and calls Poll; it calls nothing above it.
class LearningWorker {
 public:
  explicit LearningWorker(std::shared_ptr<LearningHandover> handover);

  LearningHandover& handover() const { return *handover_; }

  // Does the work that is due, Finish included where it is wanted. Returns whether a context
  // explores. Never throws: after a failure nothing was proposed, so all ranks hold their choice.
  bool Poll(double now, JobWatch* job) noexcept;
  // The communicator ends and asks no more: saves the results and releases the cells. If Poll runs
  // beyond the deadline, it does so later. Called once, by the thread that ends the communicator.
  void End(Deadline deadline) noexcept;
  // Saves the results; at process exit, after the last Poll.
  void Save();

 private:
  // A context as the background uses it; in the order of their numbers.
  struct Context {
    Context(LearningHandover* learning, ContextHandover* context, BackgroundStore* store);

    ContextHandover* const shared;
    bool offer_posted = false;
    double next_read_ahead = 0;
    double read_ahead_pause = 0;
    RunSamples runs;
    Reporter reporter;
    // On rank 0, until the end: the one that proposes its epochs.
    std::unique_ptr<ContextExplorer> explorer;
    std::unique_ptr<TurnProposer> turns;    // instead of it, while turns are compared
    std::unique_ptr<OrderProposer> orders;  // instead of it, while orders are followed
  };

  bool PollAll(double now, JobWatch* job);
  void Finish(Deadline deadline);
  void TakeContexts();
  void TakeTimes(double now);
  void TakeSample(const LearningHandover::Sample& sample);
  void TakeRuns();
  void TakeEntered(Context* context, double now);
  void TakeFinished(Context* context, double now, const JobWatch& job);
  void ReadAhead(Context* context, double now);
  void CheckRuns(Context* context, double now);
  void Differs(const Context& context, const RunDifference& difference);
  void WatchStop(double now);
  void TakeStop(const std::string& text);
  void WatchFreeze(double now, FreezeWatch* freeze);
  void WatchTurns(double now, JobWatch* job);
  void WatchOrders(double now, JobWatch* job);
  void ReadRewardFile(double now);
  // Once, after some thousand calls: why nothing is learned, or why the reward file is not used.
  void SayWhyNothing(double now);
  // Why the lines of the reward file are of no use: "the lines of /tmp/x.log are ...".
  std::string FileTrouble() const;

  const std::shared_ptr<LearningHandover> handover_;
  const LearningOptions& options_;  // of handover_

  // Held by Poll and by the end of the communicator; exactly one of the two calls Finish.
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<bool> finish_wanted_{false};

  // Guarded by mutex_.
  bool finished_ = false;
  BackgroundStore store_;
  std::vector<std::unique_ptr<Context>> contexts_;
  uint64_t calls_of_all_ = 0;
  std::deque<LearningHandover::Launch> running_;
  std::unique_ptr<RewardFile> reward_file_;  // on rank 0, if it can be a source
  // Lines of it: all, those for another number of nodes or ranks, and the last of these.
  uint64_t file_lines_ = 0;
  uint64_t foreign_lines_ = 0;
  learn::RewardLine foreign_;
  double first_call_at_ = 0;
  bool said_why_ = false;
  double last_saved_ = 0;
  double next_stop_look_ = 0;
  std::string stop_wanted_;  // a difference that has not been reported to the other ranks yet
  bool stopped_ = false;     // a difference was reported to them
  bool clocks_differ_ = false;
  bool frozen_ = false;  // an operator froze the job, or ranks count differently
  bool policy_turn_ = false;
};

}  // namespace diapason::plugin
