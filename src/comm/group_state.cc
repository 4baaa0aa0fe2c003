#include "comm/group_state.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/text.h"
#include "comm/check.h"

namespace diapason::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long a failed rank waits for the other ranks to report what they were doing.
constexpr milliseconds kReportLimit{2000};

double Seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void LogToStderr(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

GroupState::GroupState(GroupParts parts)
    : parts_(std::move(parts)),
      simulated_(parts_.communicator->Now() >= 0),
      clock_(TickClock::Get()),
      tally_(parts_.place.size, clock_),
      runtime_(parts_.communicator->TakesDevice() || simulated_ ? nullptr : gpu::InProcess()),
      slow_ticks_(parts_.slow_seconds < 0 ? UINT64_MAX : clock_.Ticks(parts_.slow_seconds)),
      rebase_ticks_(clock_.Ticks(1.0)) {
  if (runtime_ == nullptr && !simulated_) {
    plain_limit_ = std::min(parts_.communicator->PlainLimit(), size_t{1} << 40U);
  }
  watch_ = std::make_unique<CallWatch>([this] { Expired(); });
}

GroupState::~GroupState() { watch_.reset(); }

// Called by the watchdog, because the thread inside the call is stuck.
void GroupState::Expired() {
  const Call plain = AllReduceCall(nullptr, nullptr, running_count_, running_type_);
  const Call& call = running_ != nullptr ? *running_ : plain;
  const std::string reason = Format("diapason: rank {}: ", parts_.place.rank) +
                             CallText(call, running_number_, parts_.place.size) +
                             Format(" has reached its limit of {:g} s", Seconds(parts_.timeout));
  parts_.communicator->Interrupt(reason);
  interrupted_.store(true);
}

Deadline GroupState::DeadlineAt(uint64_t ticks, milliseconds limit) {
  if (ticks - base_ticks_ > rebase_ticks_) {
    base_ticks_ = ticks;
    base_time_ = steady_clock::now();
  }
  return base_time_ + limit +
         std::chrono::duration_cast<steady_clock::duration>(
             std::chrono::duration<double>(clock_.Seconds(ticks - base_ticks_)));
}

double GroupState::SecondsSince(uint64_t ticks, double virtual_start) const {
  return simulated_ ? parts_.communicator->Now() - virtual_start
                    : clock_.Seconds(clock_.Now() - ticks);
}

double GroupState::Now() const {
  return simulated_ ? parts_.communicator->Now()
                    : std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

Status GroupState::Check(const Call& call) {
  if (!broken_.ok()) return broken_;
  RETURN_IF_ERROR(CheckCall(call, parts_.place.rank, parts_.place.size));
  if (!parts_.choose && !call.config.IsDefault()) {
    return Invalid("the call names a configuration, which needs GroupOptions::choose");
  }
  return parts_.communicator->CanRun(call);
}

bool GroupState::NeedsPreparing(const Call& call) const {
  if (parts_.communicator->TakesDevice()) return false;
  if (call.wire.has_value() || !call.tensors.empty() || call.memory == Memory::kDevice) return true;
  return runtime_ != nullptr && call.memory == Memory::kAuto &&
         ((call.in != nullptr && runtime_->IsDevicePointer(call.in)) ||
          (call.out != nullptr && runtime_->IsDevicePointer(call.out)));
}

Result<std::unique_ptr<StagedCall>> GroupState::Prepare(const Call& call, Deadline deadline) {
  if (runtime_ == nullptr && call.memory == Memory::kDevice) runtime_ = gpu::InProcess();
  Call placed = call;
  if (runtime_ != nullptr && call.memory == Memory::kAuto) {
    const void* sample = call.in != nullptr ? call.in : call.out;
    if (!call.tensors.empty()) sample = call.tensors[0].in;
    placed.memory = runtime_->IsDevicePointer(sample) ? Memory::kDevice : Memory::kHost;
  }
  const int devices = runtime_ != nullptr ? std::max(1, runtime_->DeviceCount()) : 1;
  return StagedCall::Make(placed, parts_.place.rank, parts_.place.size, runtime_,
                          parts_.place.local_rank % devices, deadline);
}

Status GroupState::Overrun(const Status& status, milliseconds limit) {
  // The watchdog's interruption must be over before this thread goes on.
  while (!interrupted_.load()) std::this_thread::sleep_for(milliseconds(1));
  return TimedOut(
      Format("no end after {:g} s{}{}", Seconds(limit), status.ok() ? "" : ": ", status.message()));
}

void GroupState::Counted(const Call& call, uint64_t number, double seconds) {
  tally_.Count(call.operation, call.type, number, CallBytes(call, parts_.place.size),
               clock_.Ticks(seconds));
  if (parts_.slow_seconds >= 0 && seconds > parts_.slow_seconds) LogSlow(call, number, seconds);
}

Status GroupState::RunPlain(const void* in, void* out, size_t count, DataType type,
                            ReduceOp reduce) {
  const uint64_t number = ++number_;
  running_ = nullptr;
  running_number_ = number;
  running_count_ = count;
  running_type_ = type;
  const uint64_t start = clock_.Now();
  watch_->Begin(++turn_, parts_.timeout);
  Status status = parts_.communicator->RunPlain(in, out, count, type, reduce, parts_.timeout);
  if (!watch_->End()) status = Overrun(status, parts_.timeout);
  const uint64_t ticks = clock_.Now() - start;
  if (!status.ok()) {
    return Fail(status, AllReduceCall(in, out, count, type, reduce), number, clock_.Seconds(ticks));
  }
  tally_.Count(Operation::kAllReduce, type, number, count * SizeOf(type), ticks);
  if (ticks > slow_ticks_) {
    LogSlow(AllReduceCall(in, out, count, type, reduce), number, clock_.Seconds(ticks));
  }
  return status;
}

Status GroupState::AllReduce(const void* in, void* out, size_t count, DataType type,
                             ReduceOp reduce) {
  if (IsPlain(in, out, count, type, reduce)) return RunPlain(in, out, count, type, reduce);
  return Run(AllReduceCall(in, out, count, type, reduce));
}

void GroupState::FollowPolicy() {
  if (parts_.policy == nullptr) return;
  chooser_ = std::make_unique<const PolicyChooser>(parts_.policy,
                                                   Shape{parts_.place.nodes, parts_.place.size});
  if (chooser_->rows() == 0) {
    chooser_.reset();
    return;
  }
  plain_limit_ = 0;  // every call must be looked up in the policy
}

Call GroupState::Decided(const Call& call) {
  Call decided = call;
  decided.config = chooser_->ConfigFor(call);
  // A refusal is the same on every rank: all of them fall back together.
  if (!decided.config.IsDefault() && !Check(decided).ok()) decided.config = {};
  return decided;
}

Status GroupState::Run(const Call& call) {
  if (IsPlain(call)) return RunPlain(call.in, call.out, call.count, call.type, call.reduce);
  if (chooser_ == nullptr || !call.config.IsDefault()) return RunAsSaid(call, false);
  const Call decided = Decided(call);
  return RunAsSaid(decided, !decided.config.IsDefault());
}

Status GroupState::RunAsSaid(const Call& call, bool checked) {
  Status status = checked ? Status() : Check(call);
  if (!status.ok()) return status;
  if (NeedsPreparing(call)) return RunPrepared(call);
  const uint64_t number = ++number_;
  const double virtual_start = simulated_ ? parts_.communicator->Now() : 0;
  const uint64_t start = clock_.Now();
  if (call.count > 0 || !call.tensors.empty() || call.operation == Operation::kBarrier) {
    const Deadline deadline = DeadlineAt(start, parts_.timeout);
    status = Watched(call, number, parts_.timeout,
                     [&] { return parts_.communicator->Run(call, deadline); });
    if (!status.ok()) return Fail(status, call, number, SecondsSince(start, virtual_start));
  }
  Counted(call, number, SecondsSince(start, virtual_start));
  return status;
}

Status GroupState::RunPrepared(const Call& call) {
  const uint64_t number = ++number_;
  const double virtual_start = simulated_ ? parts_.communicator->Now() : 0;
  const uint64_t start = clock_.Now();
  const Deadline deadline = DeadlineAt(start, parts_.timeout);
  const Result<std::unique_ptr<StagedCall>> prepared = Prepare(call, deadline);
  if (!prepared.ok()) return Fail(prepared.status(), call, number, 0);
  Status status;
  if (prepared.value()->call().count > 0) {
    status = Watched(call, number, parts_.timeout,
                     [&] { return parts_.communicator->Run(prepared.value()->call(), deadline); });
  }
  if (status.ok()) status = prepared.value()->Finish();
  const double seconds = SecondsSince(start, virtual_start);
  if (!status.ok()) return Fail(status, call, number, seconds);
  Counted(call, number, seconds);
  return status;
}

void GroupState::LogSlow(const Call& call, uint64_t number, double seconds) {
  tally_.CountSlow();
  const Deadline now = steady_clock::now();
  if (now < next_slow_line_) {
    ++slow_unsaid_;
    return;
  }
  next_slow_line_ = now + milliseconds(1000);
  const double rate = static_cast<double>(CallBytes(call, parts_.place.size)) / seconds / 1e9;
  std::string line = Format("diapason: rank {}: slow call: ", parts_.place.rank) +
                     CallText(call, number, parts_.place.size) +
                     Format(" took {:.3g} ms (limit {:.3g} ms), {:.3g} GB/s{}", seconds * 1e3,
                            parts_.slow_seconds * 1e3, rate, simulated_ ? ", simulated" : "");
  if (slow_unsaid_ > 0) {
    line += Format("; {} more since the last line", slow_unsaid_);
  }
  slow_unsaid_ = 0;
  parts_.log(line);
}

Status GroupState::Fail(const Status& status, const Call& call, uint64_t number, double seconds) {
  if (status.code() == ErrorCode::kUnavailable) return status;
  const std::string what = CallText(call, number, parts_.place.size);
  std::string text =
      what + Format(", rank {} of {}, {}: failed after {:.3g} s: ", parts_.place.rank,
                    parts_.place.size, parts_.backend, seconds);
  ErrorCode code = status.code();
  parts_.communicator->Abandon();
  std::string missing;
  std::string others;
  if (parts_.store != nullptr) {
    parts_.store->GiveUp(parts_.name);
    const Result<std::vector<rendezvous::RankAnswer>> answers = parts_.store->Collect(
        "failed/" + parts_.name, parts_.members, what, false, steady_clock::now() + kReportLimit);
    if (answers.ok()) {
      missing = rendezvous::Missing(answers.value());
      for (size_t i = 0; i < answers.value().size(); ++i) {
        const rendezvous::RankAnswer& answer = answers.value()[i];
        if (answer.state == rendezvous::RankAnswer::State::kLost) code = ErrorCode::kPeerLost;
        if (answer.state == rendezvous::RankAnswer::State::kGiven && answer.value != what &&
            others.size() < 400) {
          others += Format("; rank {} was at ", i) + answer.value;
        }
      }
    } else {
      missing = answers.status().message();
      code = answers.status().code();
    }
  }
  if (!missing.empty()) text += missing + " (" + parts_.backend + ": " + status.message() + ")";
  if (missing.empty()) text += status.message();
  broken_ = Status::Error(code, text + others);
  plain_limit_ = 0;
  return broken_;
}

Statistics GroupState::statistics() const {
  const double peak = parts_.link_peak > 0 ? parts_.link_peak : parts_.communicator->LinkPeak();
  return tally_.Get(peak, simulated_);
}

Status GroupState::SimulateCompute(double seconds) {
  if (!broken_.ok()) return broken_;
  if (!(seconds >= 0) || seconds > 1e9) return Invalid("compute takes from 0 to 1e9 seconds");
  return parts_.communicator->SimulateCompute(seconds);
}

Result<std::shared_ptr<GroupState>> GroupState::Split(int color, int key) {
  const int64_t mine[2] = {color, key};
  std::vector<int64_t> all(2 * static_cast<size_t>(parts_.place.size));
  const Status shared = Run(AllGatherCall(mine, all.data(), 2, DataType::kI64));
  if (!shared.ok()) return shared.WithContext("split");
  std::vector<int> members;
  for (int rank = 0; color >= 0 && rank < parts_.place.size; ++rank) {
    if (all[2 * static_cast<size_t>(rank)] == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return all[2 * static_cast<size_t>(a) + 1] < all[2 * static_cast<size_t>(b) + 1];
  });
  const Call call = BarrierCall();
  const std::string name = parts_.name + Format("/{}.{}", ++splits_, color);
  const uint64_t number = ++number_;
  const uint64_t start = clock_.Now();
  Result<std::unique_ptr<Communicator>> communicator = Internal("not split");
  const Status status = Watched(call, number, parts_.timeout, [&] {
    communicator = parts_.communicator->Split(members, name, steady_clock::now() + parts_.timeout);
    return communicator.status();
  });
  if (!status.ok()) {
    return Fail(status, call, number, SecondsSince(start, 0)).WithContext("split");
  }
  if (members.empty()) return std::shared_ptr<GroupState>();
  GroupParts parts;
  parts.place = parts_.place;
  parts.place.rank = static_cast<int>(std::find(members.begin(), members.end(), parts_.place.rank) -
                                      members.begin());
  parts.place.size = static_cast<int>(members.size());
  parts.name = name;
  parts.backend = parts_.backend;
  parts.description = parts_.description;
  for (const int member : members) {
    parts.members.push_back(parts_.members[static_cast<size_t>(member)]);
  }
  parts.store = parts_.store;
  parts.communicator = std::move(communicator).value();
  parts.timeout = parts_.timeout;
  parts.slow_seconds = parts_.slow_seconds;
  parts.choose = parts_.choose;
  // On several hosts, this rank does not know how many of them the new group spans: no row can be
  // matched.
  if (parts_.place.nodes == 1 || parts.place.size == parts_.place.size) {
    parts.policy = parts_.policy;
  }
  parts.link_peak = parts_.link_peak;
  parts.log = parts_.log;
  auto state = std::make_shared<GroupState>(std::move(parts));
  state->FollowPolicy();
  return state;
}

}  // namespace diapason::comm
