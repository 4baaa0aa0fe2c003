#include <algorithm>
#include <map>

#include "base/host_name.h"
#include "base/settings.h"
#include "base/text.h"
#include "comm/backend_facts.h"
#include "comm/chooser.h"
#include "comm/group_state.h"
#include "comm/launch_info.h"
#include "comm/selection.h"
#include "diapason/comm.h"
#include "rendezvous/secret.h"
#include "rendezvous/tcp_store.h"

namespace diapason {
namespace comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The store of a job with one rank: no port, no thread.
class SingleRankStore : public rendezvous::RendezvousStore {
 public:
  Status Set(const std::string& key, const std::string& value) override {
    values_[key] = value;
    return {};
  }
  Result<std::string> Get(const std::string& key, Deadline /*deadline*/) override {
    const auto found = values_.find(key);
    if (found == values_.end()) return TimedOut("no rank has set '" + key + "'");
    return found->second;
  }
  Result<std::vector<rendezvous::RankAnswer>> Collect(const std::string& /*key*/,
                                                      const std::vector<int>& /*members*/,
                                                      const std::string& value, bool /*until_loss*/,
                                                      Deadline /*deadline*/) override {
    return std::vector<rendezvous::RankAnswer>{{rendezvous::RankAnswer::State::kGiven, value, ""}};
  }
  std::vector<int> Lost(const std::string& /*group*/) override { return {}; }
  void GiveUp(const std::string& /*group*/) override {}

 private:
  std::map<std::string, std::string> values_;
};

// The options, completed from the settings and the launcher.
struct ResolvedOptions {
  GroupOptions options;
  LaunchInfo launch;
  double slow_seconds = 0.01;
};

Result<ResolvedOptions> ReadWishes(const GroupOptions& options) {
  const Settings settings = Settings::Read(ProcessEnvironment());
  if (!settings.problems().empty()) return Invalid(settings.problems()[0]);
  ResolvedOptions resolved;
  resolved.options = options;
  GroupOptions& filled = resolved.options;
  if (filled.backend.empty() || filled.backend == "auto") {
    filled.backend = settings.Text(Setting::kBackend);
  }
  std::vector<std::string> names = BackendNames();
  names.emplace_back("auto");
  if (std::find(names.begin(), names.end(), filled.backend) == names.end()) {
    return Invalid("unknown backend '" + filled.backend + "'" + Suggestion(filled.backend, names));
  }
  if (filled.timeout.count() < 0) return Invalid("a time-out cannot be negative");
  if (filled.timeout.count() == 0) {
    filled.timeout = std::chrono::seconds(settings.Number(Setting::kTimeout));
  }
  if (filled.slow_call.count() == 0) {
    filled.slow_call = milliseconds(settings.Number(Setting::kSlowCall));
  }
  resolved.slow_seconds = static_cast<double>(filled.slow_call.count()) * 1e-3;
  if (filled.cluster.empty()) filled.cluster = settings.Text(Setting::kCluster);
  if (!filled.log) filled.log = LogToStderr;
  ASSIGN_OR_RETURN(resolved.launch, FindLaunch(options, ProcessEnvironment()));
  return resolved;
}

// Derives nodes and local ranks from the hosts of all ranks in rank order.
void FillPlace(const std::vector<std::string>& hosts, RankInfo* place) {
  std::vector<std::string> seen;
  int local_rank = 0;
  int local_size = 0;
  const std::string& own = hosts[static_cast<size_t>(place->rank)];
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    if (std::find(seen.begin(), seen.end(), hosts[rank]) == seen.end()) seen.push_back(hosts[rank]);
    if (hosts[rank] != own) continue;
    ++local_size;
    if (rank < static_cast<size_t>(place->rank)) ++local_rank;
  }
  place->nodes = static_cast<int>(seen.size());
  place->local_size = local_size;
  if (place->local_rank < 0) place->local_rank = local_rank;
}

// Every rank reports a status; all get the first error.
Status Agree(rendezvous::RendezvousStore* store, const std::string& key,
             const std::vector<int>& members, const Status& mine, Deadline deadline) {
  if (store == nullptr) return mine;
  const Result<std::vector<std::string>> all =
      store->Gather(key, members, mine.ok() ? "" : "-" + mine.message(), deadline);
  if (!mine.ok()) return mine;
  if (!all.ok()) return all.status();
  for (size_t rank = 0; rank < all.value().size(); ++rank) {
    const std::string& text = all.value()[rank];
    if (!text.empty()) return Unavailable(Format("on rank {}: ", rank) + text.substr(1));
  }
  return {};
}

// Whether a rank has read its policy, and the digest. They must be the same on all ranks: ranks
// that decide differently hang or compute wrong data.
struct PolicyDigest {
  enum State : int64_t { kNone, kRead, kUnreadable };
  State state = kNone;
  uint64_t digest = 0;
};

// Names the ranks that differ, on every rank: all of them take this path, since all have the same
// sums.
Status NameDifferingRanks(GroupState* group, const PolicyDigest& known, const Status& read) {
  const int64_t mine[2] = {known.state, static_cast<int64_t>(known.digest)};
  std::vector<int64_t> all(2 * static_cast<size_t>(group->parts().place.size));
  const Status gathered = group->Run(AllGatherCall(mine, all.data(), 2, DataType::kI64));
  if (!read.ok()) return read.WithContext("policy");
  if (!gathered.ok()) return gathered;
  for (size_t rank = 0; 2 * rank < all.size(); ++rank) {
    if (all[2 * rank] == mine[0] && all[2 * rank + 1] == mine[1]) continue;
    if (all[2 * rank] == PolicyDigest::kUnreadable) {
      return Unavailable(Format("rank {} cannot read its policy; its own message says why", rank));
    }
    const char* const what =
        all[2 * rank] == PolicyDigest::kNone ? "has no policy, and this one has"
        : known.state == PolicyDigest::kNone ? "has a policy, and this one none"
                                             : "has another policy than this one";
    return Invalid(Format("rank {} {}: all need the same", rank, what));
  }
  return Internal("the ranks' policies differ, but every rank has the same digest");
}

// All ranks add a one, as a test of the backend, and in the same call parts of their digests and
// the squares of these: the digests are all equal exactly if the sum of the squares is as small as
// the sums allow.
Status Verify(GroupState* group, const PolicyDigest& known, const Status& read) {
  std::vector<int64_t> mine = {1, known.state};
  for (unsigned shift = 0; shift < 64; shift += 16) {
    mine.push_back(static_cast<int64_t>((known.digest >> shift) & 0xffffU));
  }
  const size_t parts = mine.size();
  for (size_t i = 0; i < parts; ++i) mine.push_back(mine[i] * mine[i]);
  std::vector<int64_t> sums = mine;
  const Status status =
      group->Run(AllReduceCall(sums.data(), sums.data(), sums.size(), DataType::kI64));
  if (!status.ok()) return status.WithContext("verification");
  const int64_t size = group->parts().place.size;
  if (sums[0] != size) {
    return Internal(
        Format("verification: the sum of ones over {} ranks came out as {}", size, sums[0]));
  }
  bool same = true;
  for (size_t i = 0; i < parts; ++i) {
    same = same && size * sums[parts + i] == sums[i] * sums[i];
  }
  if (!same) return NameDifferingRanks(group, known, read);
  return read.ok() ? Status() : read.WithContext("policy");
}

struct Found {
  Backend* backend = nullptr;
  std::string name;
  std::string description;
};

// For backends with their own bootstrap that the user named: nothing is agreed on before.
Result<Found> LookAlone(const std::string& name, const RankInfo& place) {
  ASSIGN_OR_RETURN(const SelectedBackend chosen, Choose({LookAround(name, place)}));
  ASSIGN_OR_RETURN(Backend* const backend, FindBackend(name));
  return Found{backend, name, chosen.description};
}

// Joins the store, and agrees with the other ranks on places and on the backend.
Result<Found> LookTogether(const ResolvedOptions& resolved, Deadline deadline, GroupParts* parts) {
  const LaunchInfo& launch = resolved.launch;
  RankInfo& place = parts->place;
  if (launch.size == 1) {
    parts->store = std::make_shared<SingleRankStore>();
  } else {
    rendezvous::StoreAddress address = launch.address;
    ASSIGN_OR_RETURN(address.secret, rendezvous::ReadSecret(ProcessEnvironment()));
    address.log = parts->log;
    ASSIGN_OR_RETURN(std::unique_ptr<rendezvous::TcpStore> store,
                     rendezvous::TcpStore::Join(address, launch.rank, launch.size, deadline));
    place.address = store->local_address();
    parts->store = std::move(store);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> hosts,
                   parts->store->Gather("hosts", parts->members, HostName(), deadline));
  FillPlace(hosts, &place);
  ASSIGN_OR_RETURN(
      const std::vector<std::string> texts,
      parts->store->Gather("findings", parts->members,
                           LookAround(resolved.options.backend, place).Encode(), deadline));
  std::vector<Findings> findings;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(Findings one, Findings::Decode(text));
    findings.push_back(std::move(one));
  }
  ASSIGN_OR_RETURN(const SelectedBackend chosen, Choose(findings));
  ASSIGN_OR_RETURN(Backend* const backend, FindBackend(chosen.backend));
  return Found{backend, chosen.backend, chosen.description};
}

Result<std::shared_ptr<GroupState>> CreateState(const GroupOptions& options) {
  ASSIGN_OR_RETURN(const ResolvedOptions read, ReadWishes(options));
  ResolvedOptions resolved = read;
  // A policy needs configurations per call.
  resolved.options.choose = resolved.options.choose || !resolved.options.policy.empty();
  const LaunchInfo& launch = resolved.launch;
  const Deadline deadline = steady_clock::now() + resolved.options.timeout;

  GroupParts parts;
  parts.place.rank = launch.rank;
  parts.place.size = launch.size;
  parts.place.local_rank = launch.local_rank;
  for (int rank = 0; rank < launch.size; ++rank) parts.members.push_back(rank);
  parts.timeout = resolved.options.timeout;
  parts.choose = resolved.options.choose;
  parts.link_peak = resolved.options.link_peak;
  parts.log = resolved.options.log;

  const std::string& wanted = resolved.options.backend;
  ASSIGN_OR_RETURN(const Found found, FactsOfBackend(wanted).own_store
                                          ? LookAlone(wanted, parts.place)
                                          : LookTogether(resolved, deadline, &parts));
  parts.backend = found.name;
  parts.description = found.description;

  Start start;
  start.place = parts.place;
  start.store = parts.store.get();
  start.name = parts.name;
  start.timeout = std::max(
      milliseconds(1), std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()));
  start.options = &resolved.options;
  start.log = parts.log;
  Result<std::unique_ptr<Communicator>> communicator = found.backend->Create(start);
  const Status created =
      Agree(parts.store.get(), "created", parts.members, communicator.status(), deadline);
  if (!created.ok()) return created.WithContext("backend " + parts.backend);
  parts.communicator = std::move(communicator).value();
  const std::string details = parts.communicator->Description();
  if (!details.empty()) parts.description = details;
  if (parts.communicator->Nodes() > 0) {
    parts.place.nodes = parts.communicator->Nodes();
    parts.place.local_rank = parts.communicator->LocalRank();
  }
  Status policy_read;
  if (!resolved.options.policy.empty()) {
    Result<std::shared_ptr<const policy::Policy>> policy =
        LoadChoices(resolved.options.policy, parts.backend, resolved.options.cluster);
    policy_read = policy.status();
    if (policy.ok()) parts.policy = std::move(policy).value();
  }
  PolicyDigest known;
  if (!resolved.options.policy.empty()) {
    known.state = policy_read.ok() ? PolicyDigest::kRead : PolicyDigest::kUnreadable;
    if (parts.policy != nullptr) known.digest = policy::Digest(*parts.policy);
  }
  rendezvous::RendezvousStore* const store = parts.store.get();
  const std::vector<int> members = parts.members;
  auto state = std::make_shared<GroupState>(std::move(parts));
  RETURN_IF_ERROR(
      Agree(store, "verified", members, Verify(state.get(), known, policy_read), deadline));
  state->Open(resolved.slow_seconds);
  return state;
}

}  // namespace
}  // namespace comm

Result<std::unique_ptr<Group>> Group::Create(const GroupOptions& options) {
  Result<std::shared_ptr<comm::GroupState>> state = comm::CreateState(options);
  if (!state.ok()) return state.status().WithContext("creating a group");
  return std::unique_ptr<Group>(new Group(std::move(state).value()));
}

}  // namespace diapason
