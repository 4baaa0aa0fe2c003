#include "plugin/learning/communicator.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/environment.h"
#include "base/settings.h"
#include "base/text.h"
#include "plugin/abi/host.h"
#include "plugin/abi/profiler_abi.h"
#include "plugin/learning/learning_thread.h"
#include "plugin/profiler/event_mask.h"

namespace diapason::plugin {
namespace {

// The communicator that the profiler half has just initialised on a thread. Not thread_local: its
// first use allocates in a library that was loaded late, and if that fails, glibc ends the process.
struct ThreadKey {
  pthread_key_t key{};
  bool fine = pthread_key_create(&key, nullptr) == 0;
};
const ThreadKey g_new_comm;

CommState* NewComm() noexcept {
  return g_new_comm.fine ? static_cast<CommState*>(pthread_getspecific(g_new_comm.key)) : nullptr;
}
// Keeps the old value if there is no memory.
void SetNewComm(CommState* communicator) noexcept {
  if (g_new_comm.fine) pthread_setspecific(g_new_comm.key, communicator);
}

uint64_t ThisThread() noexcept { return static_cast<uint64_t>(pthread_self()); }

bool Interested(const Settings& settings) {
  const std::string& mode = settings.Text(Setting::kMode);
  if (mode == "off") return false;
  return mode == "learn" || mode == "compare" || mode == "tune" ||
         settings.IsSet(Setting::kJournal) || settings.IsSet(Setting::kStore) ||
         ReadSlowCallLimits(settings).on();
}

CommObserver* AttachCommState(const ProfilerInit& init) noexcept {
  try {
    SetNewComm(nullptr);
    const Settings settings = Settings::Read(ProcessEnvironment());
    if (!settings.problems().empty() || !Interested(settings)) return nullptr;
    auto* communicator = new CommState(init);
    if (const SlowCallLimits limits = ReadSlowCallLimits(settings); limits.on()) {
      try {
        communicator->KeepCallTimes(limits, DetectHost(init.logger, settings).library);
      } catch (...) {  // no memory: no lines about slow calls
      }
    }
    SetNewComm(communicator);
    return communicator;
  } catch (...) {
    return nullptr;
  }
}

void DetachCommState(CommObserver* comm_observer) noexcept {
  auto* communicator = static_cast<CommState*>(comm_observer);
  if (NewComm() == communicator) SetNewComm(nullptr);
  communicator->Release();
}

constexpr CommObserverSource kCommStates{AttachCommState, DetachCommState};
[[maybe_unused]] const bool g_registered = (ProfilerObserver::UseCommObservers(&kCommStates), true);

}  // namespace

CommState::CommState(const ProfilerInit& init) : init_(init) {}

CommState::~CommState() {
  WriteUntimed();
  if (call_times_ != nullptr) {
    call_times_->End();
    EventMask::Instance().Unwant(EventMask::Need::kRuns);
    if (call_times_timed_) EventMask::Instance().Unwant(EventMask::Need::kTimes);
  }
  if (journal_ != nullptr) {
    EventMask::Instance().Unwant(EventMask::Need::kCalls);
    EventMask::Instance().Unwant(EventMask::Need::kRuns);
    if (with_times_) EventMask::Instance().Unwant(EventMask::Need::kTimes);
  }
}

CommState* CommState::TakeNewComm(uint64_t comm_id, const Shape& shape) noexcept {
  CommState* new_comm = NewComm();
  SetNewComm(nullptr);
  if (new_comm == nullptr) return nullptr;
  const ProfilerInit& init = new_comm->init_;
  // The profiler half gets no id before API v4, the tuner half none before v5; then only the thread
  // identifies the communicator.
  if (comm_id != 0 && init.comm_id != 0 && init.comm_id != comm_id) return nullptr;
  if (init.ranks != 0 && init.ranks != shape.ranks) return nullptr;
  new_comm->references_.fetch_add(1);
  return new_comm;
}

void CommState::Release() noexcept {
  if (references_.fetch_sub(1) == 1) delete this;
}

void CommState::KeepCallTimes(const SlowCallLimits& limits, Library library) {
  if (runs_ == nullptr) runs_ = std::make_unique<Run[]>(kRuns);
  CallTimes::Place place;
  place.rank = init_.rank;
  place.ranks = static_cast<int>(init_.ranks);
  place.library = library;
  place.communicator = Format("{:#x}", init_.comm_id);
  if (!init_.name.empty()) place.communicator = init_.name + " (" + place.communicator + ")";
  call_times_ = std::make_unique<CallTimes>(std::move(place), limits);
  EventMask::Instance().Want(EventMask::Need::kRuns);
  call_times_timed_ = TimesPossible(init_.ranks);
  if (call_times_timed_) EventMask::Instance().Want(EventMask::Need::kTimes);
}

void CommState::KeepJournal(journal::Journal* journal, uint32_t number, bool with_times) {
  if (runs_ == nullptr) runs_ = std::make_unique<Run[]>(kRuns);
  number_ = number;
  with_times_ = with_times && TimesPossible(init_.ranks);
  journal_ = journal;
  if (journal_ == nullptr) return;
  EventMask::Instance().Want(EventMask::Need::kCalls);
  EventMask::Instance().Want(EventMask::Need::kRuns);
  if (with_times_) EventMask::Instance().Want(EventMask::Need::kTimes);
}

Learning* CommState::Learn(std::shared_ptr<Learning> learning) {
  if (runs_ == nullptr) runs_ = std::make_unique<Run[]>(kRuns);
  learning_ = std::move(learning);
  return learning_.get();
}

void CommState::WriteBypassed(int collective, uint64_t bytes, bool captured) noexcept {
  if (journal_ == nullptr) return;
  journal::JournalRecord record;
  record.kind = journal::RecordKind::kBypassed;
  record.time_ns = WallTimeNs();
  record.communicator = number_;
  record.collective =
      collective < 0 ? journal::kNamelessCollective : static_cast<uint8_t>(collective);
  record.bytes = bytes;
  record.captured = captured;
  journal_->Add(record);
}

// Calls left from the previous group that caused no question and no launch event did not go through
// the tuner.
void CommState::NewGroup(uint64_t group) noexcept {
  const uint32_t calls = calls_;
  if (journal_ != nullptr && calls > 0 && questions_ == 0 && !launched_ && !ran_) {
    for (uint32_t i = 0; i < calls && i < kCalls; ++i) {
      WriteBypassed(call_[i].collective, call_[i].bytes, call_[i].captured);
    }
  }
  calls_ = 0;
  questions_ = 0;
  launched_ = false;
  ran_ = false;
  group_ = group;
}

void CommState::Called(const CallSeen& call) noexcept {
  const uint64_t group = call.group;
  if (group == 0 || group_ != group || questions_ > 0) NewGroup(group);
  const uint32_t calls = calls_;
  if (calls < kCalls) {
    call_[calls].collective = call.collective;
    call_[calls].bytes = call.bytes;
    call_[calls].captured = call.captured;
  }
  calls_ = calls + 1;
  if (learning_ == nullptr) return;
  if (learning_->wants_pattern() && !call.captured) {
    LearningThread::Instance().CallMade(init_.comm_id, call.collective, call.bytes);
  }
  learning_->Called(call.captured, group);
}

void CommState::Launched(uint64_t group, void* stream) noexcept {
  if (group_ == group) launched_ = true;
  if (learning_ != nullptr) learning_->Launched(group, stream);
}

void CommState::LaunchEnded() noexcept {
  if (learning_ != nullptr) learning_->LaunchEnded();
}

void CommState::Asked(const Question& question, uint32_t call, const Config& asked,
                      LearningContext* context, uint64_t index) noexcept {
  const uint32_t number = questions_;
  questions_ = number + 1;
  asking_thread_ = ThisThread();
  if (number >= kQuestions) return;
  Answered& answered = question_[number];
  answered.call = call;
  answered.collective = static_cast<int>(question.collective);
  answered.bytes = question.bytes;
  answered.algorithm = asked.algorithm;
  answered.protocol = asked.protocol;
  answered.channels = asked.channels;
  answered.context = context;
  answered.index = index;
  answered.used = false;
}

// The question that a run belongs to: the one about exactly these bytes, or the only one about this
// collective (the library may ask about several calls of a group as one).
CommState::Answered* CommState::Match(const RunSeen& run) noexcept {
  if (run.replayed || asking_thread_ != ThisThread()) return nullptr;
  const auto count = std::min<uint32_t>(questions_, kQuestions);
  Answered* only = nullptr;
  bool several = questions_ > kQuestions;
  for (uint32_t i = 0; i < count; ++i) {
    Answered& one = question_[i];
    if (one.collective != run.collective) continue;
    if (one.bytes == run.bytes && !one.used) {
      one.used = true;
      return &one;
    }
    several = several || only != nullptr;
    only = &one;
  }
  return several ? nullptr : only;
}

uint64_t CommState::RecordActual(const RunSeen& run) noexcept {
  ran_ = true;
  if (run.bypassed) {
    WriteBypassed(run.collective, run.bytes, run.replayed);
    if (call_times_ != nullptr) call_times_->CountUntimed();
    return 0;
  }
  if (runs_ == nullptr || run.collective < 0) return 0;
  if (!tracking() && call_times_ == nullptr) return 0;
  Answered* question = Match(run);
  const bool alone = question != nullptr && questions_ == 1 && question->bytes == run.bytes;
  LearningContext* context = alone ? static_cast<LearningContext*>(question->context) : nullptr;
  if (context != nullptr) {
    learning_->RecordActual(
        context, {question->algorithm, question->protocol, question->channels},
        {question->index, run.sequence, run.algorithm, run.protocol, run.channels});
  }
  const bool timed = (EventMask::Instance().Value(init_.api) & abi::kEventKernelCh) != 0;
  if (call_times_ != nullptr && !timed) call_times_->CountUntimed();
  if (journal_ == nullptr && (!timed || (context == nullptr && call_times_ == nullptr))) return 0;

  const uint64_t tag = next_tag_.fetch_add(1, std::memory_order_relaxed);
  Run& slot = runs_[tag % kRuns];
  // A run whose duration never arrived is written without it.
  if (slot.tag.exchange(0, std::memory_order_acq_rel) != 0) GiveUp(slot);
  slot.context = context;
  slot.index = context != nullptr ? static_cast<uint64_t>(question->index) : 0;
  slot.call = question != nullptr ? static_cast<uint32_t>(question->call) : 0;
  slot.time_ns = journal_ != nullptr ? WallTimeNs() : 0;
  slot.bytes = run.bytes;
  slot.sequence = run.sequence;
  slot.collective = run.collective;
  slot.algorithm = run.algorithm;
  slot.protocol = run.protocol;
  slot.channels = run.channels;
  slot.replayed = run.replayed;
  if (!timed) {
    WriteRun(slot, nullptr);
    return 0;
  }
  slot.tag.store(tag, std::memory_order_release);
  return tag;
}

void CommState::Timed(uint64_t tag, const GpuSpan& span) noexcept {
  if (runs_ == nullptr) return;
  Run& slot = runs_[tag % kRuns];
  if (slot.tag.exchange(0, std::memory_order_acq_rel) != tag) return;  // overtaken
  WriteRun(slot, &span);
  if (call_times_ != nullptr) {
    RunSeen run;
    run.collective = slot.collective;
    run.bytes = slot.bytes;
    run.algorithm = slot.algorithm;
    run.protocol = slot.protocol;
    run.channels = slot.channels;
    run.sequence = slot.sequence;
    call_times_->Count(run, static_cast<double>(span.stop_ns - span.start_ns) * 1e-9, SteadyNs());
  }
  LearningContext* context = slot.context;
  if (context != nullptr && learning_ != nullptr && !learning_->has_events()) {
    learning_->RecordTime(*context, slot.index,
                          static_cast<double>(span.stop_ns - span.start_ns) * 1e-9);
  }
}

void CommState::WriteRun(const Run& run, const GpuSpan* span) noexcept {
  if (journal_ == nullptr) return;
  journal::JournalRecord record;
  record.kind = journal::RecordKind::kRan;
  record.time_ns = run.time_ns;
  record.communicator = number_;
  record.call = run.call;
  record.collective = static_cast<uint8_t>(run.collective);
  record.bytes = run.bytes;
  record.sequence = run.sequence;
  record.algorithm = static_cast<int8_t>(run.algorithm);
  record.protocol = static_cast<int8_t>(run.protocol);
  record.channels = static_cast<int16_t>(run.channels);
  record.captured = run.replayed;
  if (span != nullptr) {
    // The journal reader takes it as the approximate end of the kernel.
    record.time_ns = WallTimeNs();
    record.gpu_start_ns = span->start_ns;
    record.seconds = static_cast<double>(span->stop_ns - span->start_ns) * 1e-9;
  }
  journal_->Add(record);
}

// Its duration never arrived.
void CommState::GiveUp(const Run& run) noexcept {
  WriteRun(run, nullptr);
  if (call_times_ != nullptr) call_times_->CountUntimed();
}

void CommState::WriteUntimed() noexcept {
  if (runs_ == nullptr) return;
  for (size_t i = 0; i < kRuns; ++i) {
    if (runs_[i].tag.exchange(0, std::memory_order_acq_rel) != 0) GiveUp(runs_[i]);
  }
}

}  // namespace diapason::plugin
