#include "measure/rank_timer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "base/environment.h"
#include "base/host_name.h"
#include "base/stats.h"
#include "base/text.h"
#include "domain/collectives.h"
#include "measure/pattern.h"

namespace diapason::measure {
namespace {

using dataset::SampleOutcome;

constexpr size_t kHostName = 64;
// What out-of-place results are written over: no pattern has such values.
constexpr char kPoison = 0x5a;

SampleOutcome OutcomeOf(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kInvalid:
    case ErrorCode::kUnavailable:
      return SampleOutcome::kRefused;
    case ErrorCode::kTimeout:
      return SampleOutcome::kHang;
    default:
      return SampleOutcome::kCrash;
  }
}

Measurement Failed(const Status& status) {
  Measurement measurement;
  measurement.outcome = OutcomeOf(status);
  measurement.note = status.message();
  return measurement;
}

// Where everything of a trial lies in one rank's buffers.
struct BufferLayout {
  size_t in_count = 0;
  size_t out_count = 0;
};

BufferLayout LayoutOf(const Trial& trial, size_t count, int ranks) {
  const OperationFacts& facts = FactsOf(trial.operation);
  // A send comes with a receive, whose output is as large.
  const Extent out = facts.out == Extent::kNothing ? facts.in : facts.out;
  return {Elements(facts.in, count, ranks), Elements(out, count, ranks)};
}

Status CanMeasure(const Trial& trial, size_t count, int ranks) {
  if (count == 0) return Invalid("less than one element a rank");
  if (*FactsOf(trial.operation).measured == '\0') {
    return Invalid(std::string(OperationName(trial.operation)) + " is not measured");
  }
  if (trial.root < 0 || trial.root >= ranks) {
    return Invalid(Format("root {} of {} ranks does not exist", trial.root, ranks));
  }
  if (trial.operation == Operation::kSend && ranks < 2) return Invalid("sendrecv needs two ranks");
  if (trial.in_place && !HasInPlace(trial.operation)) {
    return Invalid(CollectiveText(trial.operation) + " has no in-place form");
  }
  return {};
}

Call CallOf(const Trial& trial, size_t count, const MeasureBuffers& buffers, int rank) {
  Call call;
  call.operation = trial.operation;
  call.in = buffers.in();
  call.out = buffers.out();
  call.count = count;
  call.type = trial.type;
  call.reduce = trial.reduce;
  call.config = trial.config;
  call.memory = buffers.memory();
  if (HasRoot(trial.operation)) call.peer = trial.root;
  if (!trial.in_place) return call;
  const size_t part = static_cast<size_t>(rank) * count * SizeOf(trial.type);
  const OperationFacts& facts = FactsOf(trial.operation);
  if (facts.out == Extent::kAllRanks) {
    call.in = buffers.out() + part;
  } else if (facts.in == Extent::kAllRanks) {
    call.out = buffers.in() + part;
  } else {
    call.in = buffers.out();
  }
  return call;
}

}  // namespace

Result<std::unique_ptr<RankTimer>> RankTimer::Create(Group* group) {
  ASSIGN_OR_RETURN(std::unique_ptr<MeasureBuffers> buffers, MeasureBuffers::For(*group));
  std::unique_ptr<RankTimer> rank_timer(new RankTimer(group, std::move(buffers)));
  RETURN_IF_ERROR(rank_timer->FindHosts());
  return rank_timer;
}

Result<std::vector<std::string>> RankTimer::Gather(const std::string& mine) {
  char block[kHostName] = {};
  std::copy_n(mine.data(), std::min(mine.size(), sizeof(block)), block);
  std::vector<char> all(kHostName * static_cast<size_t>(group_->size()));
  RETURN_IF_ERROR(group_->AllGather(block, all.data(), kHostName, DataType::kU8));
  std::vector<std::string> texts;
  for (int rank = 0; rank < group_->size(); ++rank) {
    const char* text = all.data() + kHostName * static_cast<size_t>(rank);
    texts.emplace_back(text, ::strnlen(text, kHostName));
  }
  return texts;
}

Status RankTimer::FindHosts() {
  const std::string name = HostName();
  ASSIGN_OR_RETURN(hosts_, Gather(name));
  nodes_ = group_->nodes();
  if (!buffers_->on_device()) return {};
  const std::optional<std::string> own = ProcessEnvironment().Get("NCCL_HOSTID");
  ASSIGN_OR_RETURN(const std::vector<std::string> identities, Gather(own.value_or(name)));
  nodes_ = static_cast<int>(std::set<std::string>(identities.begin(), identities.end()).size());
  return {};
}

Result<Group*> RankTimer::FirstRanks(int ranks) {
  if (ranks <= 0 || ranks >= group_->size()) return group_;
  auto found = parts_.find(ranks);
  if (found == parts_.end()) {
    const bool inside = group_->rank() < ranks;
    ASSIGN_OR_RETURN(std::unique_ptr<Group> part, group_->Split(inside ? 0 : -1, group_->rank()));
    found = parts_.emplace(ranks, std::move(part)).first;
  }
  return found->second.get();
}

Status RankTimer::Ready(const Status& mine) {
  // Also the start line: no rank passes it before all ranks have reached it.
  int32_t trouble = mine.ok() ? 0 : 1;
  const Status status = group_->AllReduce(&trouble, &trouble, 1, DataType::kI32, ReduceOp::kMax);
  if (!mine.ok()) return mine;
  if (!status.ok()) return status;
  if (trouble != 0) return Unavailable("another rank cannot take part");
  return {};
}

Status RankTimer::RunBlock(Group* group, const Call& call, const Trial& trial, int iterations) {
  if (trial.operation == Operation::kSend) {
    const int next = (group->rank() + 1) % group->size();
    const int before = (group->rank() + group->size() - 1) % group->size();
    Call send = SendCall(call.in, call.count, call.type, next);
    Call receive = RecvCall(call.out, call.count, call.type, before);
    send.memory = receive.memory = call.memory;
    for (int i = 0; i < iterations; ++i) {
      Work sending = group->Start(send);
      Work receiving = group->Start(receive);
      const Status sent = sending.Wait();
      const Status received = receiving.Wait();
      if (!sent.ok()) return sent;
      if (!received.ok()) return received;
    }
    return {};
  }
  if (!buffers_->on_device()) {
    for (int i = 0; i < iterations; ++i) {
      RETURN_IF_ERROR(group->Run(call));
    }
    return {};
  }
  // Back to back on the GPU, as a job has them.
  std::vector<Work> works;
  works.reserve(static_cast<size_t>(iterations));
  for (int i = 0; i < iterations; ++i) works.push_back(group->Start(call));
  Status first;
  for (Work& work : works) {
    const Status status = work.Wait();
    if (first.ok() && !status.ok()) first = status;
  }
  return first;
}

Result<int64_t> RankTimer::Check(Group* group, const Call& call, const Trial& trial) {
  const int ranks = group->size();
  const int rank = group->rank();
  const size_t count = call.count;
  const size_t size = SizeOf(trial.type);
  const BufferLayout layout = LayoutOf(trial, count, ranks);
  const ReduceOp reduce = Reduces(trial.operation) ? trial.reduce : ReduceOp::kSum;
  std::vector<char> host(std::max(layout.in_count, layout.out_count) * size);
  if (!trial.in_place) {
    std::fill(host.begin(), host.end(), kPoison);
    RETURN_IF_ERROR(buffers_->Upload(call.out, host.data(), layout.out_count * size));
  }
  FillInput(host.data(), layout.in_count, 0, trial.type, reduce, rank, ranks);
  RETURN_IF_ERROR(
      buffers_->Upload(const_cast<void*>(call.in), host.data(), layout.in_count * size));

  RETURN_IF_ERROR(RunBlock(group, call, trial, 1));

  RETURN_IF_ERROR(buffers_->Download(host.data(), call.out, layout.out_count * size));
  const OperationFacts& facts = FactsOf(trial.operation);
  if (HasRoot(trial.operation) && facts.peer == Peer::kTo && rank != trial.root) return 0;
  // Which part of every rank's input comes here.
  const size_t first = facts.in == Extent::kAllRanks ? static_cast<size_t>(rank) * count : 0;
  if (facts.reduces) return CountWrongReduced(host.data(), count, first, trial.type, reduce, ranks);
  if (facts.out != Extent::kAllRanks) {
    const int from = HasRoot(trial.operation) ? trial.root : (rank + ranks - 1) % ranks;
    return CountWrongCopied(host.data(), count, first, trial.type, reduce, from, ranks);
  }
  int64_t wrong = 0;
  for (int from = 0; from < ranks; ++from) {
    const char* part = host.data() + static_cast<size_t>(from) * count * size;
    wrong += CountWrongCopied(part, count, first, trial.type, reduce, from, ranks);
  }
  return wrong;
}

Measurement RankTimer::Combine(const Status& status, double seconds, int64_t wrong, bool took_part,
                               const Trial& trial) {
  // What the library refused it refused on every rank, before anything happened.
  if (!status.ok()) return Failed(status);
  const double mine[3] = {seconds, static_cast<double>(wrong), took_part ? 1.0 : 0.0};
  std::vector<double> all(3 * static_cast<size_t>(group_->size()));
  const Status gathered = group_->AllGather(mine, all.data(), 3, DataType::kF64);
  if (!gathered.ok()) return Failed(gathered);
  Measurement measurement;
  measurement.iterations = trial.iterations;
  bool first = true;
  for (size_t i = 0; i < all.size(); i += 3) {
    if (all[i + 2] == 0) continue;
    measurement.seconds = std::max(measurement.seconds, all[i]);
    measurement.fastest = first ? all[i] : std::min(measurement.fastest, all[i]);
    first = false;
    if (trial.check)
      measurement.wrong = std::max<int64_t>(measurement.wrong, 0) + std::llround(all[i + 1]);
  }
  measurement.seconds /= trial.iterations;
  measurement.fastest /= trial.iterations;
  if (measurement.wrong > 0) {
    measurement.outcome = SampleOutcome::kWrong;
    measurement.note = Format("{} elements are wrong", measurement.wrong);
  }
  return measurement;
}

Measurement RankTimer::MeasureSteps(const Trial& trial) {
  Result<IterationSpec> decoded = DecodeSpec(trial.workload);
  if (!decoded.ok()) return Failed(decoded.status());
  IterationSpec& spec = decoded.value();
  std::vector<Config> configs;
  for (Bucket& bucket : spec.buckets) {
    const bool meant = bucket.operation == trial.operation && bucket.bytes == trial.bytes;
    configs.push_back(meant && !trial.config.IsDefault() ? trial.config : bucket.config);
    bucket.config = {};
  }
  if (prepared_ == nullptr || !(prepared_spec_ == spec)) {
    prepared_.reset();  // its memory first
    Result<std::unique_ptr<PreparedIteration>> prepared = PreparedIteration::Create(group_, spec);
    if (!prepared.ok()) return Failed(prepared.status());
    prepared_ = std::move(prepared).value();
    prepared_spec_ = spec;
  }
  const Result<std::vector<double>> steps =
      prepared_->Run(configs, trial.warmups, trial.iterations);
  if (!steps.ok()) return Failed(steps.status());
  Measurement measurement;
  measurement.iterations = trial.iterations;
  // Of several steps the one in the middle: a block of calls has no outliers, a step has.
  measurement.seconds = measurement.fastest = Median(steps.value());
  return measurement;
}

Measurement RankTimer::Measure(const Trial& trial) {
  if (!trial.workload.empty()) return MeasureSteps(trial);
  const Result<Group*> part = FirstRanks(trial.only_ranks);
  if (!part.ok()) return Failed(part.status());
  Group* const group = part.value();
  const int ranks =
      trial.only_ranks > 0 ? std::min(trial.only_ranks, group_->size()) : group_->size();
  const size_t count = CountOf(trial, ranks);
  // The same on every rank: no agreement is needed to refuse it.
  const Status can = CanMeasure(trial, count, ranks);
  if (!can.ok()) return Failed(can);

  const BufferLayout layout = LayoutOf(trial, count, ranks);
  Status status =
      Ready(buffers_->Reserve(std::max(layout.in_count, layout.out_count) * SizeOf(trial.type)));
  if (!status.ok()) return Failed(status);
  int64_t wrong = 0;
  Call call;
  if (group != nullptr) {
    call = CallOf(trial, count, *buffers_, group->rank());
    if (trial.check) {
      const Result<int64_t> checked = Check(group, call, trial);
      status = checked.status();
      if (checked.ok()) wrong = checked.value();
    }
    if (status.ok()) status = RunBlock(group, call, trial, trial.warmups);
  }
  // A group that is broken answers at once; one that refused the call can still be asked.
  const Status ready = Ready(status);
  if (!ready.ok()) return Failed(ready);
  double seconds = 0;
  if (group != nullptr) {
    const double begin = group_->Now();
    status = RunBlock(group, call, trial, trial.iterations);
    seconds = group_->Now() - begin;
  }
  return Combine(status, seconds, wrong, group != nullptr, trial);
}

Measurement RankTimer::MeasurePair(int first, int second, uint64_t bytes, int iterations) {
  const int rank = group_->rank();
  const Status status = Ready(buffers_->Reserve(bytes));
  if (!status.ok()) return Failed(status);
  Trial trial;
  trial.operation = Operation::kSend;
  trial.iterations = iterations;
  const bool inside = rank == first || rank == second;
  double seconds = 0;
  Status ran;
  if (inside) {
    const int other = rank == first ? second : first;
    Call send = SendCall(buffers_->in(), bytes, DataType::kU8, other);
    Call receive = RecvCall(buffers_->out(), bytes, DataType::kU8, other);
    send.memory = receive.memory = buffers_->memory();
    double begin = 0;
    // One more than asked for: the first connects.
    for (int i = -1; i < iterations && ran.ok(); ++i) {
      if (i == 0) begin = group_->Now();
      Work sending = group_->Start(send);
      Work receiving = group_->Start(receive);
      ran = sending.Wait();
      const Status received = receiving.Wait();
      if (ran.ok()) ran = received;
    }
    seconds = group_->Now() - begin;
  }
  return Combine(ran, seconds, 0, inside, trial);
}

}  // namespace diapason::measure
