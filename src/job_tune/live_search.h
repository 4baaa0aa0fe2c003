#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agree/orders.h"
#include "agree/store.h"
#include "job/prepare.h"
#include "job_profile/job_profile.h"
#include "job_tune/journal_window.h"
#include "job_tune/offers.h"
#include "job_tune/search.h"

namespace diapason::job_tune {

struct LiveSearchOptions {
  std::string store;       // where the ranks of the job agree
  double look_limit = 60;  // seconds from the first call on, after which the look must do
  // Seconds that a launch may take whose calls are all captured, and which shows no iterations: it
  // is timed as a whole, again and again.
  double whole_limit = 120;
  // The first answer: what the job does with its time, and what can be tried. Called once.
  std::function<void(const job_profile::JobProfile&, const JobOffers&)> looked;
  // A line about the state of the search. Called now and then.
  std::function<void(const std::string&)> progress;
};

// Looks at a running job and searches inside it, as a callback of its supervision: gives it one
// order after the other (agree::OrderLog), and takes the times of iterations from the journals that
// its ranks write. What is known survives the end of a launch; the next one goes on from there.
// Every call returns soon. Not thread-safe.
class LiveSearch {
 public:
  explicit LiveSearch(LiveSearchOptions options) : options_(std::move(options)) {}

  // A launch begins. `until`: when it has to end, on the steady clock in seconds.
  void Begin(double until);
  void EndAt(double until) { until_ = until; }
  // Called every few milliseconds while it runs. True: the launch may end.
  bool Poll(const job::PreparedJob& job, double now);
  // It has ended before there was a look: what it has left is all there is to look at. If it has
  // ended by itself and all its calls are captured, there need not be iterations.
  void LookAtEnd(const job::PreparedJob& job, bool by_itself);
  // It has ended.
  void End();

  bool looked() const { return search_ != nullptr; }
  // Nothing is left to try.
  bool over() const { return search_ != nullptr && search_->over(); }
  // REQUIRES: looked().
  const Search& search() const { return *search_; }
  // All that is seen of the job is that its calls were captured in graphs.
  bool graphs_alone() const { return graphs_alone_; }
  // Why there is no look, and what to do: no calls, no iterations.
  std::string WhyNoLook() const;
  // Why the search did not get on in this launch; "" if it did.
  const std::string& trouble() const { return trouble_; }
  // Seconds from the start of the last launch to its first call; 0: not known.
  double start_up() const { return start_up_; }

 private:
  bool Look(const job::PreparedJob& job, double now);
  // What a look has to have.
  enum class Least { kUsual, kAFewIterations, kQuestions };
  bool TakeLook(const job::PreparedJob& job, Least least);
  bool StartTrials(const job::PreparedJob& job);
  bool NextTrials(double now);
  bool NearlyFull() const;
  void ShareTime(double now);
  bool Give(size_t trial, double now);
  void TakeResults();
  void SayProgress(double now);

  const LiveSearchOptions options_;
  std::unique_ptr<Search> search_;
  JobOffers offers_;
  job_profile::JobProfile profile_;
  double iteration_ = 0;  // seconds, of the fastest setting
  std::string no_look_;
  bool graphs_alone_ = false;
  bool waits_for_end_ = true;  // of the launch: it may be timed as a whole

  // Of a launch.
  enum class Phase { kLooking, kJoining, kTrying, kResting };
  Phase phase_ = Phase::kLooking;
  double begun_ = 0;
  double until_ = 0;
  double first_call_ = 0;
  double next_look_ = 0;
  double start_up_ = 0;
  std::unique_ptr<agree::CellStore> store_;
  std::unique_ptr<agree::OrderLog> orders_;
  // By context; several may have one.
  std::vector<std::shared_ptr<JournalWindow>> windows_;
  uint64_t journal_limit_ = 0;  // bytes
  std::vector<Search::Trial> trials_;
  size_t trial_ = 0;
  double trial_end_ = 0;
  std::string trouble_;
  double next_progress_ = 0;
  size_t timed_context_ = SIZE_MAX;  // the one whose time ends at context_end_
  double context_end_ = 0;
};

}  // namespace diapason::job_tune
