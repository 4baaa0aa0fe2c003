#include "measure/job_measurer.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "base/encoding.h"
#include "base/text.h"
#include "comm/backend_facts.h"
#include "measure/group_measurer.h"
#include "measure/worker.h"

namespace diapason::measure {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kHello = "hello ";
constexpr std::string_view kAnswer = "answer ";
constexpr std::string_view kFailed = "failed ";

milliseconds Milliseconds(double seconds) {
  return duration_cast<milliseconds>(duration<double>(seconds));
}

// The next line of the protocol that begins with `what`; the error that the ranks report instead.
// Other lines are of libraries and launchers: `show` writes them to standard error.
Result<std::string> Await(launch::Program* program, std::string_view what, Deadline deadline,
                          bool show) {
  while (true) {
    ASSIGN_OR_RETURN(const std::string line, program->ReadLine(deadline));
    ASSIGN_OR_RETURN(const std::optional<std::string> text, OpenLine(line));
    if (!text.has_value()) {
      if (show) std::fprintf(stderr, "%s\n", line.c_str());
      continue;
    }
    if (text->starts_with(what)) return text->substr(what.size());
    if (text->starts_with(kFailed)) return DecodeError(text->substr(kFailed.size()));
    return Invalid("the ranks answered something else than was asked");
  }
}

Result<std::string> EncodedMeasurement(const Result<Measurement>& measurement) {
  if (!measurement.ok()) return measurement.status();
  return EncodeMeasurement(measurement.value());
}

// Rank 0's answer to an order, as the other side decodes it.
Result<std::string> Answer(GroupMeasurer* measurer, const Order& order) {
  if (const auto* trial = std::get_if<Trial>(&order)) {
    return EncodedMeasurement(measurer->Measure(*trial));
  }
  if (const auto* pair = std::get_if<RankPair>(&order)) {
    return EncodedMeasurement(
        measurer->MeasurePair(pair->first, pair->second, pair->bytes, pair->iterations));
  }
  ASSIGN_OR_RETURN(const IterationTimes times, measurer->Iterate(std::get<IterationSpec>(order)));
  return EncodeTimes(times);
}

}  // namespace

Result<std::unique_ptr<JobMeasurer>> JobMeasurer::Create(JobMeasurerOptions options) {
  std::unique_ptr<JobMeasurer> measurer(new JobMeasurer(std::move(options)));
  ASSIGN_OR_RETURN(measurer->subject_, measurer->Launch(""));
  return measurer;
}

double JobMeasurer::Now() const {
  if (subject_.simulated) return simulated_seconds_;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

Result<Subject> JobMeasurer::Launch(const std::string& environment) {
  program_.reset();
  const Result<std::vector<std::pair<std::string, std::string>>> assignments =
      launch::ParseAssignments(environment);
  if (!assignments.ok()) return assignments.status();
  WorkerOptions worker;
  worker.ranks.backend = options_.backend;
  worker.ranks.cluster = options_.cluster;
  worker.ranks.limit = options_.limit;
  worker.ranks.seed = options_.seed;
  worker.choose = options_.choose;
  // Without our plugin nothing can be chosen: only the library's own choice is measured then.
  for (const auto& [name, value] : assignments.value()) {
    if (name == "NCCL_TUNER_PLUGIN") worker.choose = false;
  }
  const bool simulated = comm::FactsOfBackend(options_.backend).simulated;
  if (simulated) worker.ranks.ranks = options_.launcher.ranks;
  std::vector<std::string> words = WorkerArguments(worker);
  words.insert(words.begin(), {options_.launcher.self, kWorker.name});
  launch::LaunchCommand command;
  if (simulated) {
    command.words = words;
    command.environment = assignments.value();
  } else {
    command = launch::CommandFor(options_.launcher, words, assignments.value());
  }
  ++launches_;
  ASSIGN_OR_RETURN(
      program_, launch::Program::Start(command.words, command.environment, options_.show_output));
  const Result<std::string> hello =
      Await(program_.get(), kHello, steady_clock::now() + Milliseconds(options_.start_limit),
            options_.show_output);
  if (!hello.ok()) {
    const std::string tail = options_.show_output ? "" : program_->ErrorTail();
    program_.reset();
    return Status::Error(hello.status().code(),
                         "the ranks did not start: " + hello.status().message() +
                             (tail.empty() ? "" : "; they said:\n" + tail));
  }
  running_ = {environment, {}};
  return DecodeSubject(hello.value());
}

Status JobMeasurer::LaunchAgain(const std::string& environment) {
  if (options_.restarts == 0) return Unavailable("the ranks are gone");
  // What never came with these settings is not waited for at every call.
  const int most = std::max(1, options_.restarts);
  const int tries = failing_.contains(environment) ? 1
                    : environment.empty()          ? most
                                                   : std::min(2, most);
  double wait = options_.restart_wait;
  Status status;
  for (int i = 0; i < tries; ++i) {
    if (i > 0) {
      std::this_thread::sleep_for(duration<double>(wait));
      wait *= 2;
    }
    const Result<Subject> subject = Launch(environment);
    if (subject.ok()) {
      failing_.erase(environment);
      return {};
    }
    status = subject.status();
    // What waits in a queue comes no sooner if it is asked for again.
    if (status.code() == ErrorCode::kTimeout) break;
  }
  failing_.insert(environment);
  if (tries == 1) return status;
  return status.WithContext(Format("after {} tries in a row", tries));
}

Measurement JobMeasurer::Lost(const Status& status) {
  Measurement measurement;
  measurement.outcome = status.code() == ErrorCode::kTimeout ? dataset::SampleOutcome::kHang
                                                             : dataset::SampleOutcome::kCrash;
  measurement.note = status.message();
  if (program_ != nullptr && !options_.show_output) {
    const std::string tail = program_->ErrorTail();
    if (!tail.empty()) measurement.note += "; the ranks said:\n" + tail;
  }
  program_.reset();
  return measurement;
}

Status JobMeasurer::EnsureRunning() {
  if (program_ != nullptr && running_.environment.empty()) return {};
  return LaunchAgain("");
}

Result<std::string> JobMeasurer::Ask(const Order& order, double seconds) {
  RETURN_IF_ERROR(program_->WriteLine(EncodeOrder(order)));
  return Await(program_.get(), kAnswer, steady_clock::now() + Milliseconds(seconds),
               options_.show_output);
}

Result<Measurement> JobMeasurer::AskMeasurement(const Order& order) {
  // The ranks bound every wait of theirs by the limit and say so; those of one order are a handful.
  ASSIGN_OR_RETURN(const std::string answer, Ask(order, 4 * options_.limit + options_.grace));
  return DecodeMeasurement(answer);
}

Result<Measurement> JobMeasurer::MeasurePair(int first, int second, uint64_t bytes,
                                             int iterations) {
  RETURN_IF_ERROR(EnsureRunning());
  const Result<Measurement> measurement =
      AskMeasurement(RankPair{first, second, bytes, iterations});
  if (!measurement.ok()) return Lost(measurement.status());
  if (measurement.value().broke()) program_.reset();
  return measurement;
}

Result<IterationTimes> JobMeasurer::Iterate(const IterationSpec& spec) {
  RETURN_IF_ERROR(EnsureRunning());
  const Result<std::string> answer = Ask(spec, 4 * (options_.limit + spec.limit) + options_.grace);
  if (answer.ok()) return DecodeTimes(answer.value());
  return Status::Error(answer.status().code(), Lost(answer.status()).note);
}

Result<Measurement> JobMeasurer::Measure(const Trial& trial) {
  const bool other = trial.environment != running_.environment ||
                     (options_.launch_each && trial.config != running_.config);
  bool fresh = false;
  while (true) {
    if (program_ == nullptr || (other && !fresh)) {
      const Status started = LaunchAgain(trial.environment);
      if (!started.ok()) {
        // With a setting of its own the configuration is to blame; otherwise nothing works any
        // more.
        if (trial.environment.empty()) return started;
        return Lost(started);
      }
      running_.config = trial.config;
      fresh = true;
    }
    const Result<Measurement> measurement = AskMeasurement(trial);
    if (!measurement.ok()) {
      // Ranks that were gone before they were asked (a suspended machine, a kill by the user) are
      // not this configuration's fault: only ranks that were just started can be lost to it.
      if (measurement.status().code() == ErrorCode::kPeerLost && !fresh) {
        program_.reset();
        continue;
      }
      return Lost(measurement.status());
    }
    if (measurement.value().broke()) program_.reset();
    simulated_seconds_ += measurement.value().seconds *
                          (measurement.value().iterations + trial.warmups + (trial.check ? 1 : 0));
    return measurement;
  }
}

std::string FailureLine(const Status& status) {
  return SealLine(std::string(kFailed) + EncodeError(status));
}

Status ServeOrders(Group* group, const std::string& cluster,
                   const std::function<Result<std::string>()>& input,
                   const std::function<Status(const std::string&)>& output) {
  if (group->rank() != 0) return GroupMeasurer::Follow(group);
  ASSIGN_OR_RETURN(const std::unique_ptr<GroupMeasurer> measurer,
                   GroupMeasurer::Lead(group, cluster));
  Status status = output(SealLine(std::string(kHello) + EncodeSubject(measurer->subject())));
  while (status.ok()) {
    const Result<std::string> line = input();
    if (!line.ok()) return {};  // the measurer is done
    ASSIGN_OR_RETURN(const Order order, DecodeOrder(line.value()));
    ASSIGN_OR_RETURN(const std::string answer, Answer(measurer.get(), order));
    status = output(SealLine(std::string(kAnswer) + answer));
    if (measurer->broken()) return PeerLost("the ranks are gone");
  }
  return status;
}

}  // namespace diapason::measure
