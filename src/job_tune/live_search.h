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
  // It has ended by itself before there was a look: what it has left is all there is to look at.
  void LookAtEnd(const job::PreparedJob& job);
  // It has ended.
  void End();

  bool looked() const { return search_ != nullptr; }
  // Nothing is left to try.
  bool over() const { return search_ != nullptr && search_->over(); }
  // REQUIRES: looked().
  const Search& search() const { return *search_; }
  const JobOffers& offers() const { return offers_; }
  const job_profile::JobProfile& profile() const { return profile_; }
  // Why there is no look, and what to do: no calls, no iterations.
  std::string WhyNoLook() const;
  // Why the search did not get on in this launch; "" if it did.
  const std::string& trouble() const { return trouble_; }
  // Seconds from the start of the last launch to its first call; 0: not known.
  double start_up() const { return start_up_; }

 private:
  bool Look(const job::PreparedJob& job, double now);
  bool TakeLook(const job::PreparedJob& job, bool last);
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
  std::vector<std::unique_ptr<JournalWindow>> windows_;
  std::vector<size_t> window_of_;  // by context
  std::vector<Search::Trial> trials_;
  size_t trial_ = 0;
  double trial_end_ = 0;
  std::string trouble_;
  double next_progress_ = 0;
  size_t timed_context_ = SIZE_MAX;  // the one whose time ends at context_end_
  double context_end_ = 0;
};

}  // namespace diapason::job_tune
