#include "measure/tests_measurer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/environment.h"
#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "dataset/nccl_tests.h"
#include "domain/collectives.h"
#include "domain/fingerprint.h"
#include "launch/program.h"
#include "measure/group_measurer.h"
#include "measure/wire.h"

namespace diapason::measure {
namespace {

using dataset::LogRow;
using dataset::LogTest;
using dataset::LogTiming;
using dataset::SampleOutcome;
using std::chrono::duration;
using std::chrono::steady_clock;

constexpr size_t kMostOutput = size_t{16} << 20;
// As NCCL_ALGO and NCCL_PROTO want them, which is not how the tools print them.
constexpr const char* kAlgorithmNames[] = {
    "Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
constexpr const char* kProtocolNames[] = {"LL", "LL128", "Simple"};

// What one launch can answer: everything but the size and the place.
std::string Key(const Trial& trial) {
  Trial same = trial;
  same.warmups = 0;
  same.iterations = 1;
  same.check = false;
  return EncodeTrial(same) + " " + trial.environment;
}

Measurement Failed(SampleOutcome outcome, const std::string& note) {
  Measurement measurement;
  measurement.outcome = outcome;
  measurement.note = note;
  return measurement;
}

Measurement ReadingOf(const LogTiming& timing, int iterations) {
  Measurement measurement;
  measurement.seconds = measurement.fastest = timing.seconds;
  measurement.iterations = iterations;
  measurement.wrong = timing.wrong;
  if (timing.wrong > 0) {
    measurement.outcome = SampleOutcome::kWrong;
    measurement.note = Format("{} elements are wrong", timing.wrong);
  }
  return measurement;
}

// The factor between the sizes, or 0 where they are no such series.
uint64_t StepFactor(const std::vector<uint64_t>& sizes) {
  if (sizes.size() < 2 || sizes[0] == 0 || sizes[1] % sizes[0] != 0) return 0;
  const uint64_t factor = sizes[1] / sizes[0];
  for (size_t i = 1; i < sizes.size(); ++i) {
    if (factor < 2 || sizes[i] != sizes[i - 1] * factor) return 0;
  }
  return factor;
}

}  // namespace

std::string TestsProgram(Operation operation) {
  return std::string(FactsOf(operation).tests) + "_perf";
}

std::vector<std::pair<std::string, std::string>> TestsEnvironment(const Trial& trial) {
  std::vector<std::pair<std::string, std::string>> environment;
  const Config& config = trial.config;
  if (config.algorithm >= 0 && config.algorithm <= kPat) {
    environment.emplace_back("NCCL_ALGO", kAlgorithmNames[config.algorithm]);
  }
  if (config.protocol >= 0 && config.protocol <= kSimple) {
    environment.emplace_back("NCCL_PROTO", kProtocolNames[config.protocol]);
  }
  if (config.channels > 0) {
    environment.emplace_back("NCCL_MIN_NCHANNELS", std::to_string(config.channels));
    environment.emplace_back("NCCL_MAX_NCHANNELS", std::to_string(config.channels));
  }
  // A tuner of ours that the user has set would overrule all of this.
  environment.emplace_back("NCCL_TUNER_PLUGIN", "none");
  return environment;
}

Result<std::unique_ptr<TestsMeasurer>> TestsMeasurer::Create(
    TestsOptions options, const std::vector<Operation>& operations) {
  for (const Operation operation : operations) {
    const std::string path = options.folder + "/" + TestsProgram(operation);
    if (::access(path.c_str(), X_OK) != 0) {
      return NotFound("there is no program '" + path +
                      "'; --bin names the folder of nccl-tests' or " + "rccl-tests' binaries");
    }
  }
  std::sort(options.sizes.begin(), options.sizes.end());
  std::unique_ptr<TestsMeasurer> measurer(new TestsMeasurer(std::move(options)));
  const TestsOptions& kept = measurer->options_;
  Subject& subject = measurer->subject_;
  subject.backend = std::string(LibraryName(kept.library)) + "-tests";
  subject.library = kept.library;
  subject.ranks = kept.launcher.ranks;
  subject.nodes = kept.launcher.nodes;
  subject.description = subject.backend + " in " + kept.folder;
  subject.machine.library = LibraryName(kept.library);
  subject.machine.gpu = MachineFingerprint();
  subject.machine.driver = DriverVersion();
  subject.machine.tool = std::string("diapason ") + kVersion + " with " + subject.backend;
  subject.machine.topology = Count(static_cast<size_t>(subject.nodes), "node") + ", " +
                             Count(static_cast<size_t>(subject.ranks), "rank");
  subject.machine.environment = EnvironmentThatMatters(ProcessEnvironment());
  return measurer;
}

double TestsMeasurer::Now() const {
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

Result<Measurement> TestsMeasurer::Measure(const Trial& trial) {
  std::deque<Measurement>& ready = waiting_[Key(trial)];
  if (ready.empty()) {
    const Result<Measurement> launched = Launch(trial);
    if (!launched.ok() || launched.value().outcome != SampleOutcome::kFine) return launched;
    if (ready.empty()) return Failed(SampleOutcome::kCrash, "its output has no row of this size");
  }
  Measurement measurement = std::move(ready.front());
  ready.pop_front();
  return measurement;
}

Result<launch::LaunchCommand> TestsMeasurer::CommandOf(const Trial& trial) const {
  const uint64_t factor = StepFactor(options_.sizes);
  const bool all = factor != 0 && std::find(options_.sizes.begin(), options_.sizes.end(),
                                            trial.bytes) != options_.sizes.end();
  std::vector<std::string> program = {options_.folder + "/" + TestsProgram(trial.operation)};
  const auto add = [&program](const char* option, const std::string& value) {
    program.insert(program.end(), {option, value});
  };
  add("-b", std::to_string(all ? options_.sizes.front() : trial.bytes));
  add("-e", std::to_string(all ? options_.sizes.back() : trial.bytes));
  add("-f", std::to_string(all ? factor : 2));
  add("-n", std::to_string(options_.iterations));
  add("-w", std::to_string(options_.warmups));
  add("-d", TestsTypeName(trial.type));
  add("-r", std::to_string(trial.root));
  add("-c", "1");
  if (Reduces(trial.operation)) add("-o", ReduceOpName(trial.reduce));
  const Result<std::vector<std::pair<std::string, std::string>>> environment =
      launch::ParseAssignments(trial.environment);
  RETURN_IF_ERROR(environment);
  std::vector<std::pair<std::string, std::string>> variables = TestsEnvironment(trial);
  variables.insert(variables.end(), environment.value().begin(), environment.value().end());
  if (options_.launcher.kind != launch::Launcher::Kind::kLocal) {
    add("-g", "1");
    return launch::CommandFor(options_.launcher, program, variables);
  }
  // One process with all GPUs of this host: how these programs run without a launcher.
  add("-g", std::to_string(options_.launcher.ranks));
  return launch::LaunchCommand{program, variables};
}

Result<size_t> TestsMeasurer::TakeRows(const std::vector<LogTest>& tests, const Trial& trial) {
  size_t rows = 0;
  for (const LogTest& test : tests) {
    if (!test.version.empty()) subject_.machine.library_version = test.version;
    // Several starts of a program that says it is alone: the ranks did not find each other.
    if (test.starts > 1 && subject_.ranks > 1) {
      return Unavailable(
          "the programs ran side by side instead of together: they were built without MPI (make "
          "MPI=1)");
    }
    for (const LogRow& row : test.rows) {
      for (const bool in_place : {false, true}) {
        const LogTiming& timing = in_place ? row.in_place : row.out_of_place;
        if (!timing.there) continue;
        Trial same = trial;
        same.bytes = row.bytes;
        same.in_place = in_place;
        const Measurement reading = ReadingOf(timing, options_.iterations);
        if (in_place == trial.in_place) {
          waiting_[Key(same)].push_back(reading);
          ++rows;
        } else {
          byproducts_.emplace_back(same, reading);
        }
      }
    }
  }
  return rows;
}

Result<Measurement> TestsMeasurer::Launch(const Trial& trial) {
  ASSIGN_OR_RETURN(const launch::LaunchCommand command, CommandOf(trial));
  ++launches_;
  const auto deadline = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                                  duration<double>(options_.limit));
  ASSIGN_OR_RETURN(const std::unique_ptr<launch::Program> started,
                   launch::Program::Start(command.words, command.environment));
  const Result<std::string> output = started->ReadAll(kMostOutput, deadline);
  const Result<int> ended = started->Finish(deadline);
  if (!output.ok() || !ended.ok()) {
    const Status& status = output.ok() ? ended.status() : output.status();
    return Failed(SampleOutcome::kHang, status.message());
  }
  const std::vector<LogTest> tests = dataset::ParseTestLog(output.value());
  ASSIGN_OR_RETURN(const size_t rows, TakeRows(tests, trial));
  if (rows > 0 && (ended.value() == 0 || !waiting_[Key(trial)].empty())) return Measurement{};
  std::string why = started->ErrorTail();
  if (why.empty() && !tests.empty()) why = tests.back().failure;
  if (why.empty()) {
    const size_t begin = output.value().size() - std::min<size_t>(output.value().size(), 500);
    why = output.value().substr(begin);
  }
  return Failed(SampleOutcome::kCrash, Format("exit status {}: ", ended.value()) + why);
}

}  // namespace diapason::measure
