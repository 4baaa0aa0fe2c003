#include "job_tune/live_search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/schedule.h"
#include "job_profile/timeline.h"
#include "job_tune/launches.h"
#include "policy/order.h"

namespace diapason::job_tune {
namespace {

constexpr double kFirstLook = 3;    // seconds after the first call
constexpr double kLookAgain = 1.6;  // times as late
constexpr size_t kLookIterations = 30;
constexpr size_t kFewIterations = 3;
constexpr double kShortestTrial = 0.06;  // seconds
// Contexts follow an order with the epochs after those already agreed on.
constexpr double kChangeOver = 0.3;     // of a trial
constexpr double kJournalDelay = 0.15;  // seconds until a call is in the journal
constexpr double kJoinAgain = 0.5;      // seconds: every try reads all journals
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

// Why there are no iterations, and what to do.
std::string WhyNone(bool calls, bool captures) {
  if (!calls) return "no collective was called";
  if (!captures) {
    return "no iterations were found in the order of calls: call diapason_step() once per "
           "iteration";
  }
  return "the calls are captured in CUDA graphs, and nothing in the journals shows when a graph is "
         "replayed: call diapason_step() (diapason.step() in Python) once per iteration, or let "
         "the command end by itself, with status 0, within a ninth of --budget";
}

// What was found is warm-up: call by call, before the capture.
void ForgetIterations(job_profile::JobProfile* profile) {
  profile->source = job_profile::Source::kNone;
  profile->iterations = profile->after_capture = 0;
  profile->iteration = 0;
  profile->times = {};
  for (job_profile::CallClass& one : profile->classes) {
    one.calls_per_iteration = 0;
    one.times = {};
  }
}

// How many calls of each context a journal has that the ranks have agreed on.
std::vector<size_t> CountCalls(const journal::JournalContents& contents,
                               const std::vector<SearchContext>& contexts) {
  std::vector<size_t> counts(contexts.size());
  for (const journal::JournalRecord& record : contents.records) {
    const journal::JournalComm* comm = contents.Find(record.communicator);
    if (comm == nullptr || record.kind != journal::RecordKind::kDecision || !record.learning) {
      continue;
    }
    for (size_t i = 0; i < contexts.size(); ++i) {
      counts[i] +=
          contexts[i].context.Has(comm->library, comm->shape, record.collective, record.bytes);
    }
  }
  return counts;
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
      next_look_ = now + kJoinAgain;
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
    if (!HasRecords(job.Journals())) return false;
    first_call_ = now;
    start_up_ = now - begun_;
    next_look_ = now + kFirstLook;
    return false;
  }
  const double since = now - first_call_;
  waits_for_end_ = since < options_.whole_limit;
  next_look_ = first_call_ + since * kLookAgain;
  return TakeLook(job, since >= options_.look_limit ? Least::kAFewIterations : Least::kUsual);
}

void LiveSearch::LookAtEnd(const job::PreparedJob& job, bool by_itself) {
  if (looked() || !no_look_.empty()) return;
  waits_for_end_ = false;
  (void)TakeLook(job, by_itself ? Least::kQuestions : Least::kAFewIterations);
}

bool LiveSearch::TakeLook(const job::PreparedJob& job, Least least) {
  const std::vector<journal::JournalContents> journals = ReadNewest(job);
  job_profile::ProfileMaker maker;
  for (size_t i = 0; i < journals.size(); ++i) maker.Add(Format("journal {}", i), journals[i]);
  Result<job_profile::JobProfile> profile = maker.Finish(true);
  const bool captures = profile.ok() && profile.value().captures;
  // Before a capture, what the graph will have runs call by call.
  const size_t iterations = !profile.ok() ? 0
                            : captures    ? profile.value().after_capture
                                          : profile.value().iterations;
  const bool enough = iterations >= (least == Least::kUsual ? kLookIterations : kFewIterations) ||
                      (captures && least == Least::kQuestions);
  if (!enough) {
    graphs_alone_ = captures && iterations < kFewIterations;
    // A command that ends by itself can be timed as a whole.
    const bool waits = graphs_alone_ && waits_for_end_;
    if (least != Least::kUsual && !waits) no_look_ = WhyNone(profile.ok(), captures);
    return false;
  }
  profile_ = std::move(profile).value();
  if (iterations < kFewIterations) ForgetIterations(&profile_);
  iteration_ = profile_.iteration;
  offers_ = FindOffers(profile_, journals);
  SearchOptions options;
  options.unit = iteration_ > kLongIteration ? kLongUnit : kUnit;
  search_ = std::make_unique<Search>(offers_.contexts, options);
  if (options_.looked) options_.looked(profile_, offers_);
  return true;
}

// Opens the store of the job, and the journal in which each context is seen best; those of other
// ranks are not read.
bool LiveSearch::StartTrials(const job::PreparedJob& job) {
  agree::StoreOptions wanted;
  const std::string of_job = job.Variable("DIAPASON_STORE");
  wanted.where = of_job.empty() ? options_.store : of_job;
  wanted.secret = job.Variable("DIAPASON_SECRET");
  wanted.job = job.Variable("DIAPASON_JOB");
  wanted.existing_only = true;
  Result<std::unique_ptr<agree::CellStore>> store = agree::OpenStore(wanted);
  if (!store.ok()) {
    trouble_ =
        "the ranks agree in no store that can be reached from here: " + store.status().message() +
        "; name one with --store";
    return false;
  }
  const std::vector<SearchContext>& contexts = search_->contexts();
  std::vector<std::shared_ptr<JournalWindow>> best(contexts.size());
  std::vector<size_t> most(contexts.size());
  for (const std::string& path : job.Journals()) {
    const auto window = std::make_shared<JournalWindow>(path);
    if (!window->Read().ok()) continue;
    const Result<journal::JournalContents> contents = window->Contents();
    if (!contents.ok()) continue;
    const std::vector<size_t> counts = CountCalls(contents.value(), contexts);
    for (size_t i = 0; i < contexts.size(); ++i) {
      if (counts[i] <= most[i]) continue;
      most[i] = counts[i];
      best[i] = window;
    }
  }
  if (std::find(best.begin(), best.end(), nullptr) != best.end()) {
    trouble_ =
        "the ranks did not agree to be tuned, or make other calls than in the first launch; "
        "`diapason journal check " +
        job.journal_dir + "/*` says more";
    return false;
  }
  trouble_.clear();
  store_ = std::move(store).value();
  orders_ = std::make_unique<agree::OrderLog>(store_.get());
  windows_ = std::move(best);
  const Result<uint64_t> limit = ParseBytes(job.Variable("DIAPASON_JOURNAL_LIMIT"));
  journal_limit_ = limit.ok() ? limit.value() : kJournalBytes;
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
  return std::any_of(windows_.begin(), windows_.end(), [this](const auto& window) {
    return static_cast<double>(window->offset()) >
           kNearlyFull * static_cast<double>(journal_limit_);
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
  JournalWindow& window = *windows_[context];
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
  std::vector<JobSetting> asked;
  for (const Search::Trial& trial : trials_) asked.push_back(trial.setting);
  std::vector<bool> begun(asked.size());
  for (const job_profile::Call& call : timeline.calls) {
    const job_profile::Role& role = job.roles[call.role];
    if (!call.decided ||
        !contexts[context].Has(role.library, role.shape, call.collective, call.bytes)) {
      continue;
    }
    search_->Ran(context, call.asked, call.ran);
    for (size_t i = 0; i < asked.size(); ++i) {
      if (asked[i][context] == call.asked) begun[i] = true;
    }
  }
  const std::vector<learn::SegmentResult> results =
      ResultsOf(asked, BlocksOf(timeline, job.roles, contexts, CountedIn(offers_.all[context])));
  for (const learn::SegmentResult& one : results) {
    if (one.seconds > 0) iteration_ = std::min(iteration_, one.seconds);
  }
  search_->Learn(results, begun);
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
