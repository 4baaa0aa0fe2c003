#include "job_tune/launches.h"

#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/text.h"
#include "job_tune/output_log.h"
#include "process/spawn.h"

namespace diapason::job_tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr int kPipeBytes = 1 << 20;
constexpr size_t kPiece = 64 * 1024;
constexpr size_t kMostPieces = 16;  // that are taken at once
// What may still be in the pipe, or be written by a process that does not end, at the end.
constexpr size_t kMostAtEnd = size_t{64} << 20;
// Output that is searched for a metric in every second, where the search is slow.
constexpr double kSearchedPerSecond = 4 << 20;
constexpr size_t kTailLines = 10;

// What would decide in place of the plan.
constexpr const char* kRemoved[] = {"DIAPASON_POLICY", "DIAPASON_POLICY_INLINE",
                                    "DIAPASON_POLICY_OVERLAP", "DIAPASON_LEARNED"};

milliseconds ToMilliseconds(double seconds) {
  return milliseconds(std::llround(std::ceil(seconds * 1000)));
}

// "launch-3" or "launch-3.log".
bool IsOfLaunch(const std::string& name, std::string_view ending) {
  constexpr std::string_view kBegin = "launch-";
  if (!name.starts_with(kBegin) || !name.ends_with(ending)) return false;
  uint64_t number = 0;
  return ParseUnsigned(
      std::string_view(name).substr(kBegin.size(), name.size() - kBegin.size() - ending.size()),
      &number);
}

// Removes what a tuning run before has left of its launches in a folder.
void RemoveOld(const std::string& folder, std::string_view ending) {
  std::error_code error;
  std::vector<fs::path> old;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (IsOfLaunch(at->path().filename().string(), ending)) old.push_back(at->path());
  }
  for (const fs::path& one : old) fs::remove_all(one, error);
}

MapEnvironment Without(const Environment& environment) {
  std::map<std::string, std::string> kept;
  for (const std::string& name : environment.Names()) {
    const bool removed = std::any_of(std::begin(kRemoved), std::end(kRemoved),
                                     [&](const char* one) { return name == one; });
    if (!removed) kept[name] = environment.Get(name).value_or("");
  }
  return MapEnvironment(std::move(kept));
}

}  // namespace

bool Launch::Fine() const {
  return ended.started && !interrupted && (ended.status == 0 || ended.limited);
}

// The output of one launch: a pipe, so that a command that prints without end waits for us instead
// of filling the disk, and one that opens /dev/stderr again does not overwrite its log.
struct Launches::Output {
  OutputLog log;
  std::optional<MetricReader> metric;
  Pipe pipe;
  std::string buffer = std::string(kPiece, '\0');
  double credit = kSearchedPerSecond;  // bytes that may be searched now
  double credited = SteadySeconds();

  Status Open(const std::string& path) {
    RETURN_IF_ERROR(log.Open(path));
    ASSIGN_OR_RETURN(pipe, MakePipe());
    // Of our end alone: programs expect that theirs waits.
    if (::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK) != 0) {
      return IoError("cannot read from a pipe: " + ErrnoText(errno));
    }
    (void)::fcntl(pipe.write.get(), F_SETPIPE_SZ, kPipeBytes);
    return {};
  }

  // Takes what is there, but not more than `pieces`; whether there may be more.
  bool Take(size_t pieces) {
    for (size_t i = 0; i < pieces; ++i) {
      const ssize_t got = ::read(pipe.read.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      const std::string_view piece(buffer.data(), static_cast<size_t>(got));
      log.Add(piece);
      if (metric.has_value()) Search(piece);
    }
    return true;
  }

  void Search(std::string_view piece) {
    const double now = SteadySeconds();
    credit = std::min(credit + (now - credited) * kSearchedPerSecond, kSearchedPerSecond);
    credited = now;
    if (!metric->quick() && credit < static_cast<double>(piece.size())) return metric->Skip();
    credit -= static_cast<double>(piece.size());
    metric->Add(piece);
  }

  void Finish() {
    (void)Take(kMostAtEnd / kPiece);
    log.Finish();
    if (metric.has_value()) metric->Finish();
  }
};

Launches::Launches(const Request& request, const Environment& environment,
                   std::function<void(const std::string&)> say)
    : request_(request),
      environment_(environment),
      say_(std::move(say)),
      end_(std::chrono::steady_clock::now() + ToMilliseconds(request.budget)),
      started_(static_cast<int64_t>(std::time(nullptr))),
      most_(request.most_launches > 0 ? request.most_launches : kMostLaunches) {
  std::error_code error;
  folder_ = fs::absolute(request_.output, error).lexically_normal().string();
  if (folder_.empty()) folder_ = request_.output;
}

void Launches::AllowForGraphs() {
  if (request_.most_launches == 0) most_ = kMostWithGraphs;
}

double Launches::SecondsLeft() const {
  const std::chrono::duration<double> left = end_ - std::chrono::steady_clock::now();
  return std::max(0.0, left.count());
}

void Launches::Say(const std::string& text) const {
  if (say_) say_(text);
}

Status Launches::Begin() {
  std::error_code error;
  fs::create_directories(folder_ + "/journals", error);
  if (error) {
    return IoError("cannot create the folder '" + folder_ + "/journals': " + error.message() +
                   "; name another one with -o");
  }
  RemoveOld(folder_, ".log");
  RemoveOld(folder_ + "/journals", "");
  return {};
}

Result<job::PreparedJob> Launches::Prepare(const LaunchPlan& plan) {
  job::JobRequest wanted;
  wanted.command = request_.command;
  if (request_.mpi) wanted.kind = job::JobKind::kMpi;
  wanted.mode = plan.mode;
  wanted.policy = plan.policy;
  wanted.journal_dir = Format("{}/journals/launch-{}", folder_, count_);
  wanted.store = request_.store;
  wanted.job = Format("tune-{}-{}-{}", ::getpid(), started_, count_);
  wanted.variables.push_back({"DIAPASON_LAUNCH", Format("{}", count_)});
  if (environment_.Get("DIAPASON_JOURNAL_LIMIT").value_or("").empty()) {
    wanted.variables.push_back({"DIAPASON_JOURNAL_LIMIT", Format("{}", kJournalBytes)});
  }
  for (const job::RankVariable& one : plan.variables) {
    std::erase_if(wanted.variables, [&](const auto& set) { return set.name == one.name; });
    wanted.variables.push_back(one);
  }
  ASSIGN_OR_RETURN(job::PreparedJob prepared, job::Prepare(wanted, Without(environment_)));
  for (const char* name : kRemoved) prepared.handed.environment.emplace(name, std::nullopt);
  if (!request_.metric.pattern.empty() && !environment_.Get("PYTHONUNBUFFERED").has_value()) {
    prepared.handed.environment.emplace("PYTHONUNBUFFERED", "1");
  }
  for (const Finding& one : prepared.findings) {
    const std::string text = one.title + (one.action.empty() ? "" : ". " + one.action);
    if (one.severity == Severity::kError) return Invalid("the command is not started: " + text);
    if (one.severity == Severity::kWarning && !warned_) Say("warning: " + text);
  }
  warned_ = true;
  return prepared;
}

Result<job::Supervised> Launches::Supervise(job::SupervisionOptions options, Output* output) {
  options.streams[0] = process::kNowhere;
  options.streams[1] = output->pipe.write.get();
  options.streams[2] = output->pipe.write.get();
  options.watched = output->pipe.read.get();
  options.read = [output] { return output->Take(kMostPieces); };
  options.grace = ToMilliseconds(request_.grace);
  options.limit_grace = options.grace;
  options.end_signal = request_.end_signal;
  // Every launch is ended by us: how is for the log alone.
  options.say = [output](const std::string& text) { output->log.Note(text); };
  return job::RunToEnd(options);
}

Status Launches::RunBetween(Output* output, Launch* launch) {
  output->log.Note("between launches: " + request_.between);
  job::SupervisionOptions options;
  options.command = {"sh", "-c", request_.between};
  options.environment =
      process::ChangedEnvironment({{"DIAPASON_LAUNCH", Format("{}", launch->number)}});
  options.limit = ToMilliseconds(SecondsLeft());
  if (options.limit.count() == 0) return TimedOut("the budget is over; give a larger --budget");
  ASSIGN_OR_RETURN(launch->ended, Supervise(std::move(options), output));
  (void)output->Take(kMostAtEnd / kPiece);
  const job::Supervised& ended = launch->ended;
  launch->interrupted = ended.asked_by != 0;
  if (launch->interrupted) return {};
  const std::string what = "--between '" + request_.between + "' ";
  if (ended.limited) {
    return TimedOut(what +
                    "has not ended before the budget was over: make it quicker, or give a "
                    "larger --budget");
  }
  if (ended.started && ended.status == 0) return {};
  const std::string tail = output->log.Tail(kTailLines);
  return Unavailable(what + Format("has failed with status {}", ended.status) +
                     (tail.empty() ? "" : ": " + tail) + "\nThe command was not started again");
}

Result<Launch> Launches::Run(const LaunchPlan& plan) {
  if (left() == 0) {
    return Unavailable(
        Format("the command has been started {} times, as often as it may be", most_));
  }
  Launch launch;
  if (interrupted()) {
    launch.interrupted = true;
    return launch;
  }
  if (count_ == 0) RETURN_IF_ERROR(Begin());
  ++count_;
  launch.number = count_;
  launch.purpose = plan.purpose;
  launch.log = Format("{}/launch-{}.log", folder_, count_);
  Output output;
  RETURN_IF_ERROR(output.Open(launch.log));
  if (count_ > 1 && !request_.between.empty()) {
    const Status between = RunBetween(&output, &launch);
    launch.interrupted = launch.interrupted || interrupted();
    if (!between.ok() || launch.interrupted) output.Finish();
    if (launch.interrupted) return launch;
    RETURN_IF_ERROR(between);
  }
  if (!request_.metric.pattern.empty()) {
    ASSIGN_OR_RETURN(output.metric, MetricReader::Make(request_.metric));
  }
  ASSIGN_OR_RETURN(launch.prepared, Prepare(plan));
  output.log.Note(Format("launch {}, {}: {}", count_, plan.purpose, Join(request_.command, " ")));
  Say(Format("launch {} of at most {}: {}", count_, most_, plan.purpose));

  job::SupervisionOptions options;
  options.command = launch.prepared.handed.words;
  options.environment = launch.prepared.handed.Environment();
  options.limit =
      std::max(milliseconds(1), ToMilliseconds(plan.limit > 0 ? plan.limit : SecondsLeft()));
  options.ask_every = plan.ask_every;
  options.end_all = true;
  launch.limit = static_cast<double>(options.limit.count()) / 1000;
  if (plan.enough) {
    options.enough = [&] {
      launch.enough = plan.enough(launch.prepared);
      return launch.enough;
    };
  }
  const double begun = SteadySeconds();
  launch.begun = true;
  ASSIGN_OR_RETURN(launch.ended, Supervise(std::move(options), &output));
  launch.seconds = SteadySeconds() - begun;
  launch.ended_ns = WallTimeNs();
  output.Finish();
  if (!output.log.status().ok()) Say("warning: " + output.log.status().message());
  launch.interrupted = launch.ended.asked_by != 0 || interrupted();
  if (output.metric.has_value()) launch.metric = output.metric->last();
  launch.tail = output.log.Tail(kTailLines);
  return launch;
}

}  // namespace diapason::job_tune
