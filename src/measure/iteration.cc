#include "measure/iteration.h"

#include <algorithm>
#include <array>
#include <memory>

#include "base/encoding.h"
#include "base/stats.h"
#include "base/text.h"
#include "comm/backend_facts.h"
#include "domain/collectives.h"
#include "measure/compute.h"
#include "measure/step_plan.h"

namespace diapason::measure {
namespace {

enum class StepKind { kWhole = 0, kCompute = 1, kCommunication = 2 };
constexpr int kKinds = 3;
// Steps of one kind in a row, before it is another kind's turn.
constexpr int kBlock = 5;
// How often compute is measured and corrected before the steps begin.
constexpr int kCorrections = 3;
constexpr double kMostCorrectionSteps = 5;
constexpr double kCorrectionSeconds = 0.1;  // long steps need no more than one
constexpr double kMostCorrection = 10;

// Elements of a call: where every rank has its part, parts of whole 16 bytes, which libraries like.
size_t CountOf(const Bucket& bucket, DataType type, int ranks) {
  const uint64_t elements = bucket.bytes / SizeOf(type);
  if (!CountsAllRanks(bucket.operation)) return elements;
  const uint64_t part = elements / static_cast<uint64_t>(ranks);
  const uint64_t whole = 16 / SizeOf(type);
  return part >= whole ? part / whole * whole : std::max<uint64_t>(1, part);
}

class Runner {
 public:
  Runner(Group* group, const IterationSpec& spec)
      : group_(group),
        spec_(spec),
        plan_(PlanStep(spec)),
        polls_(comm::FactsOfBackend(group->backend()).polls) {}

  // Communicators; a collective call.
  Status Gather();
  // Everything else that steps need; touches no other rank.
  Status Prepare();
  // Runs every bucket once by itself: what a library sets up at the first use of a communicator is
  // then done, before two of them are in use at the same time.
  Status Touch();
  // A second of compute, then, several times over, by how much a step's compute misses it.
  Status Calibrate();
  Status Correct();
  Status Measure();
  Result<IterationTimes> Slowest();
  // Whole steps only, of other configurations.
  Result<std::vector<double>> Whole(const std::vector<Config>& configs, int warmups, int steps);

 private:
  // Of every figure the slowest rank's.
  Result<std::vector<double>> SlowestOf(const std::vector<double>& mine);
  Status Step(StepKind kind, double* seconds);
  Status RunPlan(StepKind kind);
  Status Start(size_t bucket);
  Status Join(size_t bucket);
  Status Look();

  Group* group_;
  const IterationSpec& spec_;
  const std::vector<Moment> plan_;
  const bool polls_;  // the library moves on only while it is asked
  // In this order: collectives end before their groups, and those before their memory.
  std::unique_ptr<Computer> computer_;
  std::vector<std::unique_ptr<Group>> more_groups_;
  std::vector<Group*> groups_;
  std::vector<Call> calls_;
  std::vector<Work> works_;
  std::vector<size_t> started_;  // where in works_ a bucket is
  std::array<std::vector<double>, kKinds> times_;
};

Status Runner::Gather() {
  groups_.push_back(group_);
  for (int i = 1; i < spec_.communicators; ++i) {
    Result<std::unique_ptr<Group>> group = group_->Split(0, group_->rank());
    if (!group.ok()) return group.status().WithContext(Format("communicator {}", i));
    more_groups_.push_back(std::move(group).value());
    groups_.push_back(more_groups_.back().get());
  }
  return {};
}

Status Runner::Prepare() {
  ComputerOptions options;
  options.step_seconds = spec_.compute;
  options.communicators = spec_.communicators;
  options.buckets = spec_.buckets.size();
  options.threads = spec_.threads;
  options.limit = std::chrono::duration<double>(spec_.limit);
  ASSIGN_OR_RETURN(computer_, MakeComputer(group_, options));

  const auto ranks = static_cast<size_t>(group_->size());
  const auto rank = static_cast<size_t>(group_->rank());
  const size_t width = SizeOf(spec_.type);
  // Simulated collectives of one communicator move their data one after the other.
  std::vector<void*> shared(static_cast<size_t>(spec_.communicators), nullptr);
  std::vector<size_t> room(shared.size(), 0);
  for (const Bucket& bucket : spec_.buckets) {
    const size_t count = CountOf(bucket, spec_.type, group_->size());
    const size_t bytes = count * width * (CountsAllRanks(bucket.operation) ? ranks : 1);
    const size_t both = HasInPlace(bucket.operation) ? bytes : 2 * bytes;
    size_t& most = room[static_cast<size_t>(bucket.communicator)];
    most = std::max(most, both);
  }
  for (const Bucket& bucket : spec_.buckets) {
    Call call;
    call.operation = bucket.operation;
    call.count = CountOf(bucket, spec_.type, group_->size());
    call.type = spec_.type;
    call.config = bucket.config;
    call.memory = computer_->memory();
    call.stream = computer_->Stream(bucket.communicator);
    const size_t part = call.count * width;
    const size_t bytes = CountsAllRanks(bucket.operation) ? part * ranks : part;
    const bool in_place = HasInPlace(bucket.operation);
    void*& common = shared[static_cast<size_t>(bucket.communicator)];
    void* memory = group_->simulated() ? common : nullptr;
    if (memory == nullptr) {
      const Result<void*> fresh =
          computer_->Allocate(group_->simulated() ? room[static_cast<size_t>(bucket.communicator)]
                                                  : bytes * (in_place ? 1 : 2));
      if (!fresh.ok()) return fresh.status().WithContext("buckets");
      memory = fresh.value();
      common = memory;
    }
    auto* const base = static_cast<char*>(memory);
    const OperationFacts& facts = FactsOf(bucket.operation);
    call.in = base;
    call.out = base;
    if (!in_place) {
      call.out = base + bytes;
    } else if (facts.out == Extent::kAllRanks) {
      call.in = base + rank * part;
    } else if (facts.in == Extent::kAllRanks) {
      call.out = base + rank * part;
    }
    calls_.push_back(call);
  }
  started_.resize(calls_.size());
  return {};
}

Status Runner::Touch() {
  for (size_t i = 0; i < calls_.size(); ++i) {
    const int communicator = spec_.buckets[i].communicator;
    Status status = computer_->BeforeStart(communicator, i);
    if (status.ok()) status = groups_[static_cast<size_t>(communicator)]->Run(calls_[i]);
    if (!status.ok()) return status.WithContext(Format("bucket {}", i + 1));
  }
  return computer_->Finish([] { return Status(); });
}

Status Runner::Calibrate() {
  if (spec_.compute <= 0) return {};
  return computer_->Calibrate().WithContext("calibrating compute");
}

Status Runner::Correct() {
  if (spec_.compute <= 0) return {};
  std::vector<double> taken(static_cast<size_t>(
      std::clamp(kCorrectionSeconds / spec_.compute, 1.0, kMostCorrectionSteps)));
  for (double& seconds : taken) {
    if (Status status = Step(StepKind::kCompute, &seconds); !status.ok()) {
      return status.WithContext("calibrating compute");
    }
  }
  const double factor = Median(taken) / spec_.compute;
  computer_->Correct(std::clamp(factor, 1 / kMostCorrection, kMostCorrection));
  return {};
}

Status Runner::Start(size_t bucket) {
  const int communicator = spec_.buckets[bucket].communicator;
  RETURN_IF_ERROR(computer_->BeforeStart(communicator, bucket));
  started_[bucket] = works_.size();
  works_.push_back(groups_[static_cast<size_t>(communicator)]->Start(calls_[bucket]));
  return computer_->AfterStart(communicator, bucket);
}

Status Runner::Join(size_t bucket) {
  if (calls_[bucket].stream != nullptr) return computer_->Join(bucket);
  return works_[started_[bucket]].Wait();
}

// An error of a collective that has ended.
Status Runner::Look() {
  for (Work& work : works_) {
    if (!work.Done()) continue;
    RETURN_IF_ERROR(work.Wait());
  }
  return {};
}

Status Runner::RunPlan(StepKind kind) {
  const auto progress = [this] {
    for (Work& work : works_) static_cast<void>(work.Done());
  };
  for (const Moment& moment : plan_) {
    Status status;
    for (const size_t bucket : moment.starts) {
      if (kind == StepKind::kCompute) break;
      if (status.ok()) status = Start(bucket);
      if (status.ok() && !spec_.overlap) status = Join(bucket);
    }
    for (const size_t bucket : moment.joins) {
      if (kind == StepKind::kCompute || !spec_.overlap) break;
      if (status.ok()) status = Join(bucket);
    }
    if (status.ok() && kind != StepKind::kCommunication && moment.seconds > 0) {
      status = computer_->Compute(moment.seconds, polls_ && !works_.empty()
                                                      ? std::function<void()>(progress)
                                                      : std::function<void()>());
    }
    if (!status.ok()) return status;
  }
  if (Status status = computer_->Finish([this] { return Look(); }); !status.ok()) return status;
  for (Work& work : works_) {
    RETURN_IF_ERROR(work.Wait());
  }
  return {};
}

Status Runner::Step(StepKind kind, double* seconds) {
  const double begin = group_->Now();
  Status status = RunPlan(kind);
  *seconds = group_->Now() - begin;
  // What was under way when another bucket was refused ends before anything else begins.
  for (Work& work : works_) {
    if (!status.ok()) static_cast<void>(work.Wait());
  }
  works_.clear();
  return status;
}

Status Runner::Measure() {
  for (auto& times : times_) times.reserve(static_cast<size_t>(spec_.steps));
  const int total = spec_.warmups + spec_.steps;
  int turn = 0;
  for (int first = 0; first < total; first += kBlock, ++turn) {
    for (int i = 0; i < kKinds; ++i) {
      // Each round begins with another kind, so that effects of the order average out.
      const auto kind = static_cast<StepKind>((turn + i) % kKinds);
      for (int step = first; step < std::min(first + kBlock, total); ++step) {
        RETURN_IF_ERROR(group_->Barrier());
        double seconds = 0;
        if (Status status = Step(kind, &seconds); !status.ok()) {
          return status.WithContext(Format("step {}", step + 1));
        }
        if (step >= spec_.warmups) times_[static_cast<size_t>(kind)].push_back(seconds);
      }
    }
  }
  return {};
}

Result<std::vector<double>> Runner::Whole(const std::vector<Config>& configs, int warmups,
                                          int steps) {
  for (size_t i = 0; i < calls_.size(); ++i) calls_[i].config = configs[i];
  std::vector<double> mine;
  for (int step = -warmups; step < steps; ++step) {
    RETURN_IF_ERROR(group_->Barrier());
    double seconds = 0;
    RETURN_IF_ERROR(Step(StepKind::kWhole, &seconds));
    if (step >= 0) mine.push_back(seconds);
  }
  return SlowestOf(mine);
}

Result<std::vector<double>> Runner::SlowestOf(const std::vector<double>& mine) {
  std::vector<double> all(mine.size() * static_cast<size_t>(group_->size()));
  Status status = group_->AllGather(mine.data(), all.data(), mine.size(), DataType::kF64);
  if (!status.ok()) return status.WithContext("gathering the times");
  std::vector<double> slowest(mine.size(), 0);
  for (size_t i = 0; i < all.size(); ++i) {
    double& most = slowest[i % mine.size()];
    most = std::max(most, all[i]);
  }
  return slowest;
}

Result<IterationTimes> Runner::Slowest() {
  std::vector<double> mine;
  for (const auto& times : times_) mine.insert(mine.end(), times.begin(), times.end());
  ASSIGN_OR_RETURN(const std::vector<double> gathered, SlowestOf(mine));
  const std::vector<double>& slowest = gathered;
  const auto part = [&](StepKind kind) {
    const auto begin =
        slowest.begin() + static_cast<ptrdiff_t>(kind) * static_cast<ptrdiff_t>(spec_.steps);
    return std::vector<double>(begin, begin + spec_.steps);
  };
  return IterationTimes{part(StepKind::kWhole), part(StepKind::kCompute),
                        part(StepKind::kCommunication)};
}

// Whether all ranks are fine and have the same spec: who goes on alone waits for the others in
// vain.
Status Agree(Group* group, const Status& mine, const std::string& spec) {
  const int64_t said[2] = {mine.ok() ? 1 : 0, static_cast<int64_t>(Fnv1a64(spec))};
  std::vector<int64_t> all(2 * static_cast<size_t>(group->size()));
  Status status = group->AllGather(said, all.data(), 2, DataType::kI64);
  if (!mine.ok()) return mine;
  if (!status.ok()) return status;
  for (size_t rank = 0; 2 * rank < all.size(); ++rank) {
    if (all[2 * rank] != 1) {
      return Unavailable(Format("rank {} cannot take part; its own message says why", rank));
    }
    if (all[2 * rank + 1] != said[1]) {
      return Invalid(Format("rank {} has been asked for another iteration", rank));
    }
  }
  return {};
}

// Everything before the first step that counts.
Status GetReady(Group* group, const std::string& text, Runner* runner) {
  Status status = runner->Gather();
  if (!status.ok()) return status;
  status = Agree(group, runner->Prepare(), text);
  if (status.ok()) status = runner->Touch();
  if (status.ok()) status = group->Barrier();
  if (!status.ok() || group->simulated()) return status;
  status = Agree(group, runner->Calibrate(), text);
  for (int round = 0; round < kCorrections && status.ok(); ++round) {
    status = Agree(group, runner->Correct(), text);
  }
  return status;
}

}  // namespace

Result<IterationTimes> RunIterations(Group* group, const IterationSpec& spec) {
  const std::string text = EncodeSpec(spec);
  Status status = Agree(group, CheckSpec(spec), text);
  if (!status.ok()) return status;
  Runner runner(group, spec);
  status = GetReady(group, text, &runner);
  if (status.ok()) status = runner.Measure();
  if (!status.ok()) return status;
  return runner.Slowest();
}

struct PreparedIteration::Parts {
  Parts(Group* group, const IterationSpec& asked) : spec(asked), runner(group, spec) {}
  const IterationSpec spec;
  Runner runner;
};

PreparedIteration::PreparedIteration(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
PreparedIteration::~PreparedIteration() = default;

Result<std::unique_ptr<PreparedIteration>> PreparedIteration::Create(Group* group,
                                                                     const IterationSpec& spec) {
  const std::string text = EncodeSpec(spec);
  RETURN_IF_ERROR(Agree(group, CheckSpec(spec), text));
  auto parts = std::make_unique<Parts>(group, spec);
  RETURN_IF_ERROR(GetReady(group, text, &parts->runner));
  return std::unique_ptr<PreparedIteration>(new PreparedIteration(std::move(parts)));
}

Result<std::vector<double>> PreparedIteration::Run(const std::vector<Config>& configs, int warmups,
                                                   int steps) {
  if (configs.size() != parts_->spec.buckets.size()) {
    return Invalid("every bucket needs a configuration");
  }
  if (warmups < 0 || steps < 1) return Invalid("an iteration needs a step that counts");
  return parts_->runner.Whole(configs, warmups, steps);
}

}  // namespace diapason::measure
