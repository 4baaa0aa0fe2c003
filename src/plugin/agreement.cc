#include "plugin/agreement.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "agree/job.h"
#include "agree/join.h"
#include "base/environment.h"
#include "base/mutex_lock.h"
#include "base/text.h"
#include "base/version.h"
#include "plugin/communicator.h"
#include "plugin/fork_safe.h"
#include "policy/inline.h"

namespace diapason::plugin {
namespace {

constexpr int kLearnsFromApi = 5;
constexpr int kProtocol =
    1;  // of what ranks write into the store; ranks of different ones stay off
constexpr std::string_view kNoPolicy = "none";

constexpr std::chrono::milliseconds kShortLimit{2000};
std::atomic<bool> g_waited_in_vain{false};

// Never deleted: learnings keep pointers to it, and calls may come until the very end.
agree::Store* g_store = nullptr;

__attribute__((destructor)) void LeaveAtExit() {
  if (g_store == nullptr || !g_store->Mine()) return;
  g_store->Leave(std::chrono::steady_clock::now() + kShortLimit);
}

Result<agree::Store*> ProcessStore(const std::string& where, const std::string& job) {
  const MutexLock lock(&Locks().store);
  if (g_store != nullptr && g_store->Mine()) return g_store;
  agree::StoreOptions options;
  options.where = where;
  options.job = job;
  Result<std::unique_ptr<agree::Store>> store = agree::OpenStore(options);
  if (!store.ok()) return store.status();
  g_store = std::move(store).value().release();
  return g_store;
}

// What must be the same on every rank for all of them to decide alike.
std::string Alike(const Settings& settings, const Birth& birth, const Host& host,
                  const Communicator& communicator) {
  return Format(
      "plugin=%s protocol=%d library=%s version=%d tuner=v%d profiler=v%d nodes=%lld mode=%s "
      "numerics=%s regbuff=%d allgather_channels=%d chain=%d",
      kVersion, kProtocol, std::string(LibraryName(host.library)).c_str(), host.version, birth.api,
      communicator.profiler_api(), static_cast<long long>(birth.shape.nodes),
      settings.Text(Setting::kMode).c_str(), settings.Text(Setting::kNumerics).c_str(),
      settings.Flag(Setting::kRegBuff) ? 1 : 0, settings.Flag(Setting::kAllGatherChannels) ? 1 : 0,
      settings.IsSet(Setting::kChain) ? 1 : 0);
}

}  // namespace

Agreement Agree(const Settings& settings, const Birth& birth, const Host& host,
                const Communicator* communicator, const std::optional<policy::Policy>& own) {
  Agreement agreement;
  const bool wants_to_learn = settings.Text(Setting::kMode) == "learn";
  const bool stored = settings.IsSet(Setting::kStore);
  // A communicator of one rank is never asked about anything.
  if ((!wants_to_learn && !stored) || settings.Text(Setting::kMode) == "observe" ||
      birth.shape.ranks < 2) {
    return agreement;
  }
  if (birth.api < kLearnsFromApi) {
    agreement.why = Format("tuner API v%d tells too little to agree or to learn", birth.api);
    return agreement;
  }
  agreement.kind = Agreement::Kind::kOff;
  if (communicator == nullptr || communicator->profiler_api() < kLearnsFromApi ||
      communicator->rank() < 0) {
    agreement.why =
        "the profiler half is not loaded, so this rank does not know which one it is: set "
        "NCCL_PROFILER_PLUGIN to the same file as NCCL_TUNER_PLUGIN";
    return agreement;
  }
  agreement.job = agree::JobIdentity(ProcessEnvironment());
  const std::string where = stored ? settings.Text(Setting::kStore) : "shm";
  if (where != "shm" && agreement.job == agree::kNoJob &&
      ProcessEnvironment().Get("NCCL_COMM_ID").has_value()) {
    agreement.why =
        "with NCCL_COMM_ID every job has the same communicator ids, and nothing here says which "
        "job "
        "this is: set DIAPASON_JOB, the same on every rank and different for every job";
    return agreement;
  }
  const Result<agree::Store*> store = ProcessStore(where, agreement.job);
  if (!store.ok()) {
    // Nothing has been registered, so no other rank can go ahead.
    agreement.why = store.status().message();
    return agreement;
  }
  agreement.store = store.value();

  agree::JoinRequest request;
  request.comm_id = birth.comm_id;
  request.rank = communicator->rank();
  request.ranks = static_cast<int>(birth.shape.ranks);
  request.alike = Alike(settings, birth, host, *communicator);
  request.offer = own.has_value() ? policy::EncodeInline(*own) : std::string(kNoPolicy);
  request.limit = std::chrono::seconds(settings.Number(Setting::kJoinLimit));
  // A job has many communicators; a rank that never comes should not cost each of them the limit.
  if (g_waited_in_vain.load()) request.limit = std::min(request.limit, kShortLimit);
  const Result<agree::JoinOutcome> joined = agree::Join(agreement.store, request);
  if (!joined.ok()) {
    agreement.kind = Agreement::Kind::kLost;
    agreement.why = joined.status().message();
    return agreement;
  }
  if (!joined.value().together) {
    g_waited_in_vain.store(true);
    agreement.why = joined.value().why_not;
    return agreement;
  }
  if (joined.value().offer != kNoPolicy) {
    Result<policy::Policy> policy = policy::DecodeInline(joined.value().offer);
    if (!policy.ok() || policy.value().library != host.library) {
      // The others may be able to read it.
      agreement.kind = Agreement::Kind::kLost;
      agreement.why = policy.ok() ? "the agreed policy is for another library"
                                  : "the agreed policy: " + policy.status().message();
      return agreement;
    }
    agreement.policy = std::move(policy).value();
  }
  agreement.kind = Agreement::Kind::kTogether;
  agreement.learn = wants_to_learn;
  agreement.prefix = joined.value().prefix;
  return agreement;
}

}  // namespace diapason::plugin
