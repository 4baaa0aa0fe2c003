#include "job_tune/live_search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "domain/schedule.h"
#include "job_profile/timeline.h"
#include "job_tune/launches.h"
#include "policy/order.h"

namespace diapason::job_tune {
namespace {

constexpr double kFirstLook = 3;    // seconds after the first call
constexpr double kLookAgain = 1.6;  // times as late
constexpr size_t kLookIterations = 30;
constexpr double kShortestTrial = 0.06;  // seconds
// Contexts follow an order with the epochs after those already agreed on.
constexpr double kChangeOver = 0.3;     // of a trial
constexpr double kJournalDelay = 0.15;  // seconds until a call is in the journal
constexpr double kProgressPause = 1;
constexpr double kNearlyFull = 0.9;
constexpr uint64_t kUnit = 8;  // iterations
constexpr uint64_t kLongUnit = 4;
constexpr double kLongIteration = 0.1;

// Their newest records: a job that makes many calls has more than can be read while it runs.
std::vector<journal::JournalContents> ReadNewest(const job::PreparedJob& job) {
  std::vector<journal::JournalContents> all;
  for (const std::string& path : job.Journals()) {
    JournalWindow window(path);
    if (!window.Read().ok()) continue;
    Result<journal::JournalContents> contents = window.Contents();
    if (contents.ok()) all.push_back(std::move(contents).value());
  }
  return all;
}

policy::Order OrderOf(const std::vector<SearchContext>& contexts, const Search::Trial& trial,
                      double seconds) {
  policy::Order order;
  order.length = std::chrono::milliseconds(std::max<int64_t>(1, std::llround(seconds * 1000)));
  for (size_t i = 0; i < contexts.size(); ++i) {
    order.rows.library = contexts[i].context.library;
    if (trial.setting[i].IsDefault()) continue;
    order.rows.rules.push_back(RowOf(contexts[i].context, trial.setting[i]));
  }
  return order;
}

}  // namespace

void LiveSearch::Begin(double until) {
  phase_ = looked() ? Phase::kJoining : Phase::kLooking;
  begun_ = first_call_ = next_look_ = 0;
  until_ = until;
  store_.reset();
  orders_.reset();
  windows_.clear();
  trials_.clear();
  timed_context_ = SIZE_MAX;
  trouble_.clear();
}

void LiveSearch::End() {
  if (search_ != nullptr) search_->Lost();
  orders_.reset();
  store_.reset();
  windows_.clear();
}

bool LiveSearch::Poll(const job::PreparedJob& job, double now) {
  if (begun_ == 0) begun_ = now;
  if (now >= until_ || over()) return true;
  SayProgress(now);
  switch (phase_) {
    case Phase::kLooking:
      if (!Look(job, now)) return !no_look_.empty();
      phase_ = Phase::kJoining;
      next_look_ = 0;
      return over();
    case Phase::kJoining:
      if (now < next_look_) return false;
      next_look_ = now + 0.1;
      return StartTrials(job) ? NextTrials(now) : false;
    case Phase::kTrying:
      if (now < trial_end_) return false;
      if (trial_ + 1 < trials_.size()) return Give(trial_ + 1, now);
      phase_ = Phase::kResting;
      trial_end_ = now + kJournalDelay + 2 * iteration_;
      return false;
    case Phase::kResting:
      if (now < trial_end_) return false;
      TakeResults();
      // A journal that has reached its limit shows nothing more: another launch goes on.
      return NearlyFull() || NextTrials(now);
  }
  return false;
}

// True: there is a profile with iterations.
bool LiveSearch::Look(const job::PreparedJob& job, double now) {
  if (now < next_look_) return false;
  if (first_call_ == 0) {
    next_look_ = now + 0.1;
    for (const std::string& path : job.Journals()) {
      JournalWindow window(path);
      if (!window.Read().ok() || window.bytes() == 0) continue;
      first_call_ = now;
      start_up_ = now - begun_;
      next_look_ = now + kFirstLook;
      break;
    }
    return false;
  }
  const double since = now - first_call_;
  next_look_ = first_call_ + since * kLookAgain;
  return TakeLook(job, since >= options_.look_limit);
}

void LiveSearch::LookAtEnd(const job::PreparedJob& job) {
  if (!looked() && no_look_.empty()) (void)TakeLook(job, true);
}

// `last`: a few iterations have to do.
bool LiveSearch::TakeLook(const job::PreparedJob& job, bool last) {
  const std::vector<journal::JournalContents> journals = ReadNewest(job);
  job_profile::ProfileMaker maker;
  for (size_t i = 0; i < journals.size(); ++i) maker.Add(Format("journal {}", i), journals[i]);
  Result<job_profile::JobProfile> profile = maker.Finish();
  if (!profile.ok() || profile.value().iterations < (last ? 3 : kLookIterations)) {
    if (last) {
      no_look_ = !profile.ok()
                     ? "no collective was called"
                     : "no iterations were found in the order of calls: call diapason_step() once "
                       "per iteration";
    }
    return false;
  }
  profile_ = std::move(profile).value();
  iteration_ = profile_.iteration;
  offers_ = FindOffers(profile_, journals);
  SearchOptions options;
  options.unit = iteration_ > kLongIteration ? kLongUnit : kUnit;
  search_ = std::make_unique<Search>(offers_.contexts, options);
  if (options_.looked) options_.looked(profile_, offers_);
  return true;
}

// Opens the store of the job, and finds the journal in which each context is seen best.
bool LiveSearch::StartTrials(const job::PreparedJob& job) {
  agree::StoreOptions wanted;
  wanted.where = options_.store;
  wanted.job = job.Variable("DIAPASON_JOB");
  wanted.existing_only = true;
  Result<std::unique_ptr<agree::CellStore>> store = agree::OpenStore(wanted);
  if (!store.ok()) {
    trouble_ =
        "the ranks agree in no store that can be reached from here: " + store.status().message();
    return false;
  }
  std::vector<std::string> paths = job.Journals();
  std::vector<std::unique_ptr<JournalWindow>> windows;
  std::vector<std::vector<size_t>> calls;  // by window and context
  const std::vector<SearchContext>& contexts = search_->contexts();
  for (const std::string& path : paths) {
    auto window = std::make_unique<JournalWindow>(path);
    if (!window->Read().ok()) continue;
    const Result<journal::JournalContents> contents = window->Contents();
    if (!contents.ok()) continue;
    std::vector<size_t> counts(contexts.size());
    for (const journal::JournalRecord& record : contents.value().records) {
      const journal::JournalComm* comm = contents.value().Find(record.communicator);
      if (comm == nullptr || record.kind != journal::RecordKind::kDecision || !record.learning) {
        continue;
      }
      for (size_t i = 0; i < contexts.size(); ++i) {
        const JobContext& one = contexts[i].context;
        counts[i] += static_cast<uint8_t>(one.collective) == record.collective &&
                     one.shape == comm->shape && one.band == SizeBand(record.bytes);
      }
    }
    windows.push_back(std::move(window));
    calls.push_back(std::move(counts));
  }
  window_of_.assign(contexts.size(), 0);
  size_t seen = 0;
  for (size_t i = 0; i < contexts.size(); ++i) {
    for (size_t w = 1; w < windows.size(); ++w) {
      if (calls[w][i] > calls[window_of_[i]][i]) window_of_[i] = w;
    }
    seen += !windows.empty() && calls[window_of_[i]][i] > 0 ? 1 : 0;
  }
  if (seen < contexts.size()) {
    trouble_ = "the ranks did not agree to be tuned, or make other calls than in the first launch";
    return false;
  }
  trouble_.clear();
  store_ = std::move(store).value();
  orders_ = std::make_unique<agree::OrderLog>(store_.get());
  windows_ = std::move(windows);
  return true;
}

// A context gets time by its part in the collective time of all that are left, and at least half of
// an equal part: a first one whose configurations are all alike must not take it all.
void LiveSearch::ShareTime(double now) {
  if (timed_context_ == search_->current() && now < context_end_) return;
  if (timed_context_ == search_->current()) search_->GoOn();
  if (search_->over()) return;
  timed_context_ = search_->current();
  double all = 0;
  for (size_t i = timed_context_; i < offers_.contexts.size(); ++i) all += offers_.all[i].seconds;
  const auto left = static_cast<double>(offers_.contexts.size() - timed_context_);
  const double part = all > 0 ? offers_.all[timed_context_].seconds / all : 1 / left;
  context_end_ = now + std::max(part, 0.5 / left) * (until_ - now);
}

bool LiveSearch::NearlyFull() const {
  return std::any_of(windows_.begin(), windows_.end(), [](const auto& window) {
    return static_cast<double>(window->offset()) > kNearlyFull * static_cast<double>(kJournalBytes);
  });
}

bool LiveSearch::NextTrials(double now) {
  ShareTime(now);
  trials_ = search_->Next();
  if (trials_.empty()) return true;
  for (const auto& window : windows_) {
    (void)window->Read();
    window->Open();
  }
  phase_ = Phase::kTrying;
  return Give(0, now);
}

// True: the job cannot be reached any more.
bool LiveSearch::Give(size_t trial, double now) {
  trial_ = trial;
  const double wanted = static_cast<double>(trials_[trial].iterations) * iteration_;
  const double seconds = std::max(kShortestTrial, wanted) * (1 + kChangeOver);
  trial_end_ = now + seconds;
  const Status given =
      orders_->Give(policy::OrderText(OrderOf(search_->contexts(), trials_[trial], seconds)));
  if (given.ok()) return false;
  trouble_ = "the job takes no orders: " + given.message();
  return true;
}

void LiveSearch::TakeResults() {
  const size_t context = search_->current();
  JournalWindow& window = *windows_[window_of_[context]];
  const Status read = window.Read();
  Result<journal::JournalContents> contents = window.Contents();
  if (!read.ok() || !contents.ok()) return search_->Lost();
  job_profile::JobMaker maker;
  maker.Add("journal", contents.value());
  const job_profile::Job job = maker.Finish();
  if (job.ranks.empty()) return search_->Lost();
  std::vector<JobContext> contexts;
  for (const SearchContext& one : search_->contexts()) contexts.push_back(one.context);
  const job_profile::Timeline& timeline = job.ranks.front();
  for (const job_profile::Call& call : timeline.calls) {
    if (!call.decided || call.collective != static_cast<uint8_t>(contexts[context].collective) ||
        SizeBand(call.bytes) != contexts[context].band) {
      continue;
    }
    search_->Ran(context, call.asked, call.ran);
  }
  std::vector<JobSetting> asked;
  for (const Search::Trial& trial : trials_) asked.push_back(trial.setting);
  const std::vector<learn::SegmentResult> results =
      ResultsOf(asked, BlocksOf(timeline, job.roles, contexts, CountedIn(offers_.all[context])));
  for (const learn::SegmentResult& one : results) {
    if (one.seconds > 0) iteration_ = std::min(iteration_, one.seconds);
  }
  search_->Learn(results);
}

void LiveSearch::SayProgress(double now) {
  if (!options_.progress || now < next_progress_) return;
  next_progress_ = now + kProgressPause;
  if (!looked()) {
    options_.progress(first_call_ == 0 ? "waiting for the first call" : "looking at the job");
    return;
  }
  if (over()) return;
  const std::vector<TriedConfig> tried = search_->TriedIn(search_->current());
  options_.progress(Format("{}: {} blocks of iterations, {:.2f} x so far",
                           search_->contexts()[search_->current()].context.Text(),
                           search_->blocks(),
                           tried.empty() ? 1.0 : std::max(1.0, tried.front().gain)));
}

std::string LiveSearch::WhyNoLook() const { return no_look_; }

}  // namespace diapason::job_tune
