#include "plugin/profiler/second_profiler.h"

#include "plugin/profiler/event_handle.h"
#include "plugin/profiler/event_links.h"
#include "plugin/profiler/event_mask.h"
#include "plugin/profiler/event_versions.h"
#include "plugin/profiler/observer_table.h"
#include "plugin/profiler/second_library.h"

namespace diapason::plugin {
namespace {

using Link = EventLinks::Link;
using Visit = ObserverTable::Visit;

constexpr int kFirstApiWithCalls = 5;

// The second profiler's mask word, for the whole process as in the library. It may keep the address
// and write to it at any time.
constinit int g_mask = 0;
// The mask that was last passed on, so that a change is noticed.
constinit std::atomic<int> g_seen{0};
constinit std::atomic<int> g_communicators{0};

int WantedNow(const SecondLibrary& second) noexcept {
  return EffectiveMask(second.api, __atomic_load_n(&g_mask, __ATOMIC_RELAXED));
}

// What the library is asked for on its behalf. A profiler that wants nothing may change its mind,
// which is noticed at the next event: so there must be one.
int BitsFor(int mask, int api) noexcept {
  if (mask != 0) return mask;
  return api >= kFirstApiWithCalls ? abi::kEventGroupApi : abi::kEventGroup;
}

int ReadMask(const SecondLibrary& second, int api) noexcept {
  const int mask = WantedNow(second);
  if (g_seen.exchange(mask, std::memory_order_relaxed) != mask) {
    EventMask::Instance().WantForSecond(BitsFor(mask, api));
  }
  return mask;
}

bool IsCaptured(int api, uint64_t type, const void* event) noexcept {
  if (api < kFirstApiWithCalls) return false;
  const auto* newer = static_cast<const abi::EventV5*>(event);
  if (type == abi::kEventCollApi) return newer->coll_api.captured;
  if (type == abi::kEventP2pApi) return newer->p2p_api.captured;
  return type == abi::kEventGroupApi && newer->group_api.captured;
}

EventLinks::Kind KindOf(int api, uint64_t type, const void* event) noexcept {
  constexpr uint64_t kCalls = abi::kEventGroup | abi::kEventColl | abi::kEventP2p |
                              abi::kEventGroupApi | abi::kEventCollApi | abi::kEventP2pApi |
                              abi::kEventKernelLaunch | abi::kEventCeColl;
  if (IsCaptured(api, type, event)) return EventLinks::Kind::kCaptured;
  return (type & kCalls) != 0 ? EventLinks::Kind::kCall : EventLinks::Kind::kPart;
}

// The parent as the second profiler knows it; NULL: it does not.
struct Parent {
  bool known = false;
  Link link;
};
Parent FindParent(void* handle) noexcept {
  Parent parent;
  parent.known = EventLinks::Read(handle, &parent.link);
  return parent;
}

// Whether the library would have told the second profiler, had that been alone: some children come
// only if their parent has a handle.
bool NeedsParent(int api, uint64_t type) noexcept {
  if (type == abi::kEventCeSync || type == abi::kEventCeBatch) return true;
  return api < kFirstApiWithCalls && (type == abi::kEventColl || type == abi::kEventP2p);
}

// A network operation that this process carries out for another one (PXN): its context and its
// parent are values of that process.
bool IsForeignOp(int api, uint64_t type, const void* event) noexcept {
  if (type != abi::kEventProxyOp) return false;
  const pid_t pid = api >= kFirstApiWithCalls
                        ? static_cast<const abi::EventV5*>(event)->proxy_op.pid
                        : static_cast<const abi::EventV1*>(event)->proxy_op.pid;
  return pid != OwnProcess();
}

bool IsForeign(const Link& link) noexcept {
  return link.context == 0 && g_communicators.load() > 0;
}

// Starts the event in the second profiler. The result is the library's handle.
void* Begin(const SecondLibrary& second, void* second_context, AnyEvent* event,
            EventLinks::Kind kind, Link link) noexcept {
  // Before the event begins: one that has no place could never be stopped.
  const uint64_t place = EventLinks::Claim(kind);
  if (place == 0) return link.own;
  second.start_event(second_context, &link.second, event);
  if (link.second == nullptr) {
    EventLinks::Abandon(place);
    return link.own;
  }
  return EventLinks::Publish(place, link);
}

}  // namespace

SecondProfiler::Started SecondProfiler::Start(const ProfilerInit& init) noexcept {
  Started result;
  const SecondLibrary* second = OpenSecondLibrary(init);
  if (second == nullptr || second->api > init.api) return result;
  if (!second->Init(init, &g_mask, &result.context)) {
    if (g_communicators.load() == 0) __atomic_store_n(&g_mask, 0, __ATOMIC_RELAXED);
    return {};
  }
  result.started = true;
  g_communicators.fetch_add(1);
  active_.store(true);
  const int mask = WantedNow(*second);
  g_seen.store(mask, std::memory_order_relaxed);
  EventMask::Instance().WantForSecond(BitsFor(mask, init.api));
  second->SayOnce(init, mask);
  return result;
}

void SecondProfiler::Finish(void* second_context) noexcept {
  const SecondLibrary* second = UsedSecondLibrary();
  if (second == nullptr) return;
  // As the library does: no context, no end.
  if (second_context != nullptr) second->finalize(second_context);
  if (g_communicators.fetch_sub(1) == 1) EventMask::Instance().WantForSecond(0);
}

void* SecondProfiler::OwnHandle(void* handle) noexcept {
  if (!EventLinks::IsLink(handle)) return handle;
  Link link;
  return EventLinks::Read(handle, &link) ? link.own : nullptr;
}

void* SecondProfiler::StartEvent(int api, void* context, const void* event, void* own) noexcept {
  const SecondLibrary* second = UsedSecondLibrary();
  if (second == nullptr || api < second->api) return own;
  const uint64_t type = TypeOfEvent(api, event);
  void* library_parent = static_cast<const abi::EventV5*>(event)->parent;  // alike in all versions
  const bool foreign_op = IsForeignOp(api, type, event);
  const Parent parent = foreign_op ? Parent() : FindParent(library_parent);
  Link link;
  link.own = own;
  // The library decides once per call which events it tells: so do the children of an event.
  const int now = ReadMask(*second, api);
  link.mask = parent.known ? parent.link.mask : now;
  if (!IsToldOf(type, link.mask) || (NeedsParent(api, type) && !parent.known)) return own;
  Parents parents;
  parents.parent = foreign_op ? library_parent : parent.link.second;
  AnyEvent converted;
  if (foreign_op || (parent.known && parent.link.context == 0)) {
    const bool passes =
        g_communicators.load() > 0 && ConvertEvent(api, second->api, event, parents, &converted);
    return passes ? Begin(*second, context, &converted, EventLinks::Kind::kPart, link) : own;
  }
  if (!ReadHandle(context, HandleKind::kContext, &link.context)) return own;
  const Visit communicator(link.context);
  if (!communicator || !communicator->has_second) return own;
  parents.group = FindParent(ParentGroupOf(api, event)).link.second;
  if (!ConvertEvent(api, second->api, event, parents, &converted)) return own;
  return Begin(*second, communicator->second_context, &converted, KindOf(api, type, event), link);
}

void SecondProfiler::StopEvent(void* handle) noexcept {
  const SecondLibrary* second = UsedSecondLibrary();
  Link link;
  if (second == nullptr || !EventLinks::Read(handle, &link)) return;
  {
    const Visit communicator(link.context);
    if (communicator || IsForeign(link)) second->stop_event(link.second);
  }
  EventLinks::Stop(handle);
}

void SecondProfiler::RecordState(int api, void* handle, int state, const void* arguments) noexcept {
  const SecondLibrary* second = UsedSecondLibrary();
  Link link;
  if (second == nullptr || !EventLinks::Read(handle, &link)) return;
  AnyState converted;
  void* passed = nullptr;
  if (!ConvertState(api, second->api, state, arguments, &converted, &passed)) return;
  const Visit communicator(link.context);
  if (communicator || IsForeign(link)) second->record_state(link.second, state, passed);
}

}  // namespace diapason::plugin
