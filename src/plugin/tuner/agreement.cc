#include "plugin/tuner/agreement.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "agree/job.h"
#include "base/environment.h"
#include "base/mutex_lock.h"
#include "base/text.h"
#include "plugin/abi/fork_safe.h"
#include "plugin/learning/communicator.h"
#include "plugin/learning/learning_thread.h"
#include "policy/inline.h"

namespace diapason::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kAgreesFromApi = 5;
constexpr std::string_view kNoPolicy = "none";

constexpr const char* kWhyNotWithRas =
    "nothing is learned: from 2.31 on the RAS client can change the events of a running job, by "
    "which ranks count calls, at another call on every rank; NCCL_RAS_ENABLE=0 on all ranks allows "
    "learning";

constexpr milliseconds kShortLimit{2000};
constexpr milliseconds kLeaveLimit{1000};
constexpr milliseconds kOpenPause{100};
std::atomic<bool> g_waited_in_vain{false};
std::atomic<bool> g_on_several_hosts{false};
std::atomic<bool> g_rehearsal{false};

// Never deleted: Learning objects keep pointers to them, and calls may come until the process ends.
ProcessStores g_stores;

__attribute__((destructor)) void LeaveAtExit() {
  const auto deadline = std::chrono::steady_clock::now() + kLeaveLimit;
  if (g_stores.background == nullptr || !g_stores.background->Mine()) return;
  g_stores.background->Leave(deadline);
  if (g_stores.calls != g_stores.background) g_stores.calls->Leave(deadline);
}

Result<ProcessStores> OpenProcessStores(const std::string& where, const std::string& job) {
  const MutexLock lock(&Locks().store);
  if (g_stores.background != nullptr && g_stores.background->Mine()) return g_stores;
  agree::StoreOptions options;
  options.where = where;
  options.job = job;
  ASSIGN_OR_RETURN(std::unique_ptr<agree::CellStore> background, agree::OpenStore(options));
  ProcessStores stores;
  stores.background = background.get();
  stores.calls = stores.background;
  std::unique_ptr<agree::CellStore> second;
  // Over a network, a call must not wait for a background request.
  if (where.starts_with("redis:") || where.starts_with("tcp:")) {
    ASSIGN_OR_RETURN(std::unique_ptr<agree::CellStore> calls, agree::OpenStore(options));
    second = std::move(calls);
    stores.calls = second.get();
  }
  static_cast<void>(background.release());
  static_cast<void>(second.release());
  g_stores = stores;
  return g_stores;
}

// Retries, because a server may start together with the job; the other ranks wait as long for this
// one.
Result<ProcessStores> OpenPatiently(const std::string& where, const std::string& job,
                                    milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    Result<ProcessStores> stores = OpenProcessStores(where, job);
    if (stores.ok() || !agree::Retryable(stores.status()) ||
        std::chrono::steady_clock::now() >= deadline) {
      return stores;
    }
    std::this_thread::sleep_for(kOpenPause);
  }
}

enum class Purpose { kNone, kVerify, kShare, kLearn };

// Whether the ranks of a communicator share this host's memory.
enum class OnThisHost { kNo, kMaybe, kAll };

OnThisHost RanksOnThisHost(const CommInit& init) {
  const bool one_node = init.shape.nodes == 1;
  switch (agree::LauncherSpread(ProcessEnvironment())) {
    case agree::JobSpread::kOneHost:
      // A launcher may have been started once per group of hosts.
      return one_node ? OnThisHost::kAll : OnThisHost::kMaybe;
    case agree::JobSpread::kSeveralHosts:
      // A rack with one NVLink domain is one node of several hosts.
      return one_node ? OnThisHost::kMaybe : OnThisHost::kNo;
    case agree::JobSpread::kUnknown:
      break;
  }
  // Ranks of one host can be configured as several nodes (NCCL_HOSTID).
  return one_node ? OnThisHost::kAll : OnThisHost::kMaybe;
}

// `acts`: even a rank in observe mode changes what runs, by a chained tuner or RCCL's rule.
Purpose PurposeOf(const Settings& settings, const CommInit& init, const OwnPolicy& own, bool acts) {
  const std::string& mode = settings.Text(Setting::kMode);
  // The library never asks about a communicator of one rank.
  if ((mode == "observe" && !acts) || init.shape.ranks < 2) return Purpose::kNone;
  if (mode == "learn" || mode == "compare" || mode == "tune") return Purpose::kLearn;
  if (settings.IsSet(Setting::kStore)) return Purpose::kShare;
  const bool verifiable = (own.named || acts) && init.api >= kAgreesFromApi &&
                          !g_rehearsal.load() && RanksOnThisHost(init) != OnThisHost::kNo;
  return verifiable ? Purpose::kVerify : Purpose::kNone;
}

// The digest of this rank's own policy, which ranks compare.
std::string PolicyWord(const OwnPolicy& own) {
  if (own.policy.has_value()) return policy::DigestText(policy::Digest(*own.policy));
  return own.named ? "refused" : std::string(kNoPolicy);
}

agree::JoinRequest Request(const Settings& settings, const CommInit& init, const Host& host) {
  agree::JoinRequest request;
  request.comm_id = init.comm_id;
  request.ranks = static_cast<int>(init.shape.ranks);
  request.limit = seconds(settings.Number(Setting::kJoinLimit));
  // A job has many communicators; a missing rank should not cost each of them the full limit.
  if (g_waited_in_vain.load()) request.limit = std::min(request.limit, kShortLimit);
  request.patience = StorePatience(settings);
  request.say = [log = HostLog(init.logger, host)](const std::string& text) { log.Warn(text); };
  return request;
}

// Reads the policy for all ranks from the chosen offer.
Status TakePolicy(const std::string& offer, const Host& host, Agreement* agreement) {
  if (offer == kNoPolicy) return {};
  Result<policy::Policy> policy = policy::DecodeInline(offer);
  // Other ranks may be able to read it.
  if (!policy.ok()) return policy.status().WithContext("the agreed policy");
  if (policy.value().library != host.library) {
    return Unavailable("the agreed policy is for another library");
  }
  agreement->policy = std::move(policy).value();
  return {};
}

// What follows from the outcome of joining.
Agreement Concluded(const Result<agree::JoinOutcome>& joined, Purpose purpose, const Host& host,
                    Agreement agreement) {
  if (!joined.ok()) {
    agreement.kind = Agreement::Kind::kLost;
    agreement.why = joined.status().message();
    return agreement;
  }
  if (joined.value().alone) {
    g_on_several_hosts.store(true);
    return Agreement();
  }
  if (!joined.value().together) {
    g_waited_in_vain.store(true);
    agreement.why = joined.value().why_not;
    if (purpose == Purpose::kVerify) {
      agreement.why +=
          " (the ranks of one host verify in shared memory that they apply the same policy; "
          "DIAPASON_STORE names another place)";
    }
    return agreement;
  }
  if (const Status taken = TakePolicy(joined.value().offer, host, &agreement); !taken.ok()) {
    agreement.kind = Agreement::Kind::kLost;
    agreement.why = taken.message();
    return agreement;
  }
  agreement.kind = Agreement::Kind::kTogether;
  agreement.learn = purpose == Purpose::kLearn;
  agreement.prefix = joined.value().prefix;
  return agreement;
}

}  // namespace

void SetRehearsal(bool on) noexcept { g_rehearsal.store(on); }

milliseconds StorePatience(const Settings& settings) {
  return seconds(settings.Number(Setting::kStorePatience));
}

Agreement Agree(const Settings& settings, const CommInit& init, const Host& host,
                const CommState* communicator, DecisionInputs inputs, const OwnPolicy& own,
                agree::JoinProgress* progress) {
  Agreement agreement;
  Purpose purpose = PurposeOf(settings, init, own, !inputs.chain.empty() || inputs.tree_ll_rule);
  if (purpose == Purpose::kNone) return agreement;
  if (purpose == Purpose::kLearn && inputs.ras_changes_events) {
    purpose = Purpose::kShare;
    agreement.why_no_learn = kWhyNotWithRas;
  }
  if (init.api < kAgreesFromApi) {
    agreement.why = Format(
        "tuner API v{} tells too little to agree or to learn, which need library 2.28 or later",
        init.api);
    return agreement;
  }
  // Ranks of other hosts never join and use their own settings; so does a rank that cannot meet the
  // ranks of its own host.
  const bool maybe_alone =
      purpose == Purpose::kVerify && RanksOnThisHost(init) == OnThisHost::kMaybe;
  if (maybe_alone && g_on_several_hosts.load()) return agreement;
  const auto failed = [&](std::string why) {
    if (maybe_alone) return Agreement();
    agreement.why = std::move(why);
    return agreement;
  };
  agreement.kind = Agreement::Kind::kOff;
  if (purpose != Purpose::kVerify &&
      (communicator == nullptr || communicator->profiler_api() < kAgreesFromApi ||
       communicator->rank() < 0)) {
    agreement.why =
        "the profiler half is not loaded, so this rank does not know which one it is: set "
        "NCCL_PROFILER_PLUGIN to the same file as NCCL_TUNER_PLUGIN";
    return agreement;
  }
  agreement.job = agree::JobIdentity(ProcessEnvironment());
  const std::string where =
      settings.IsSet(Setting::kStore) ? settings.Text(Setting::kStore) : "shm";
  if (agreement.job == agree::kNoJob && ProcessEnvironment().Get("NCCL_COMM_ID").has_value()) {
    return failed(
        "with NCCL_COMM_ID every job has the same communicator ids, and no variable says which "
        "job this is: set DIAPASON_JOB, the same on every rank and different for every job");
  }
  agree::JoinRequest request = Request(settings, init, host);
  const Result<ProcessStores> stores = OpenPatiently(where, agreement.job, request.limit);
  // This rank has not registered, so no other rank can go ahead.
  if (!stores.ok()) return failed(stores.status().message());
  agreement.stores = stores.value();
  if (where != "shm") LearningThread::Instance().KeepStore(agreement.stores.background);

  if (purpose == Purpose::kVerify) {
    // Each rank uses its own policy, and may or may not have the profiler half.
    inputs.policy = PolicyWord(own);
    inputs.profiler_api = 0;
    inputs.ras_changes_events = false;
    request.rank = agree::kUnknownRank;
    if (maybe_alone) {
      request.limit = std::min(request.limit, kShortLimit);
      request.missing = agree::JoinRequest::Missing::kGoAlone;
    }
  } else {
    request.rank = communicator->rank();
  }
  request.alike = inputs.Words();
  request.offer =
      own.policy.has_value() ? policy::EncodeInline(*own.policy) : std::string(kNoPolicy);
  const auto joined = agree::Join(agreement.stores.calls, request, progress);
  return Concluded(joined, purpose, host, std::move(agreement));
}

}  // namespace diapason::plugin
