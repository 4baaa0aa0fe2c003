#include <algorithm>
#include <map>

#include "base/settings.h"
#include "base/text.h"
#include "comm/chooser.h"
#include "comm/group_state.h"
#include "comm/place.h"
#include "comm/selection.h"
#include "comm/tcp_store.h"
#include "diapason/comm.h"

namespace diapason {
namespace comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The store of a job of one rank: no port, no thread.
class LonelyStore : public Store {
 public:
  Status Set(const std::string& key, const std::string& value) override {
    values_[key] = value;
    return {};
  }
  Result<std::string> Get(const std::string& key, Deadline /*deadline*/) override {
    const auto found = values_.find(key);
    if (found == values_.end()) return TimedOut("nobody has set '" + key + "'");
    return found->second;
  }
  Result<std::vector<Answer>> Collect(const std::string& /*key*/,
                                      const std::vector<int>& /*members*/, const std::string& value,
                                      bool /*until_loss*/, Deadline /*deadline*/) override {
    return std::vector<Answer>{{Answer::State::kGiven, value, ""}};
  }
  std::vector<int> Lost(const std::string& /*group*/) override { return {}; }
  void GiveUp(const std::string& /*group*/) override {}

 private:
  std::map<std::string, std::string> values_;
};

// Options with everything filled in that settings and launcher say.
struct Wishes {
  GroupOptions options;
  Launch launch;
  double slow_seconds = 0.01;
};

Result<Wishes> ReadWishes(const GroupOptions& options) {
  const Settings settings = Settings::Read(ProcessEnvironment());
  if (!settings.problems().empty()) return Invalid(settings.problems()[0]);
  Wishes wishes;
  wishes.options = options;
  GroupOptions& filled = wishes.options;
  if (filled.backend.empty() || filled.backend == "auto") {
    filled.backend = settings.Text(Setting::kBackend);
  }
  std::vector<std::string> names = PreferredBackends();
  names.insert(names.end(), {"sim", "auto"});
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
  wishes.slow_seconds = static_cast<double>(filled.slow_call.count()) * 1e-3;
  if (filled.cluster.empty()) filled.cluster = settings.Text(Setting::kCluster);
  if (!filled.log) filled.log = LogToStderr;
  Result<Launch> launch = FindLaunch(options, ProcessEnvironment());
  if (!launch.ok()) return launch.status();
  wishes.launch = std::move(launch).value();
  return wishes;
}

// Hosts of all ranks in rank order -> who is where.
void FillPlace(const std::vector<std::string>& hosts, Place* place) {
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

// Every rank says how something went; all get the first bad news.
Status Agree(Store* store, const std::string& key, const std::vector<int>& members,
             const Status& mine, Deadline deadline) {
  if (store == nullptr) return mine;
  const Result<std::vector<std::string>> all =
      store->Gather(key, members, mine.ok() ? "" : "-" + mine.message(), deadline);
  if (!mine.ok()) return mine;
  if (!all.ok()) return all.status();
  for (size_t rank = 0; rank < all.value().size(); ++rank) {
    const std::string& text = all.value()[rank];
    if (!text.empty()) return Unavailable(Format("on rank %zu: ", rank) + text.substr(1));
  }
  return {};
}

// All ranks add a one: what every later call relies on.
Status Verify(GroupState* group) {
  float one = 1;
  const Status status = group->Run(AllReduceCall(&one, &one, 1, DataType::kF32));
  if (!status.ok()) return status.WithContext("verification");
  if (one != static_cast<float>(group->parts().place.size)) {
    return Internal(Format("verification: the sum of ones over %d ranks came out as %g",
                           group->parts().place.size, static_cast<double>(one)));
  }
  return {};
}

// All ranks have read the same policy: who decides differently hangs or computes wrong data.
Status SamePolicy(GroupState* group, const Status& read, uint64_t digest) {
  const int64_t mine[2] = {read.ok() ? 1 : 0, static_cast<int64_t>(digest)};
  std::vector<int64_t> all(2 * static_cast<size_t>(group->parts().place.size));
  const Status gathered = group->Run(AllGatherCall(mine, all.data(), 2, DataType::kI64));
  if (!read.ok()) return read.WithContext("policy");
  if (!gathered.ok()) return gathered;
  for (size_t rank = 0; 2 * rank < all.size(); ++rank) {
    if (all[2 * rank] != 1) {
      return Unavailable(Format("rank %zu cannot read its policy; its own message says why", rank));
    }
    if (all[2 * rank + 1] != mine[1]) {
      return Invalid(Format("rank %zu has another policy than this one: all need the same", rank));
    }
  }
  return {};
}

struct Found {
  Backend* backend = nullptr;
  std::string name;
  std::string description;
};

// Backends that bring their own bootstrap, named by the user: nothing is agreed before.
Result<Found> LookAlone(const std::string& name, const Place& place) {
  const Result<Chosen> chosen = Choose({LookAround(name, place)});
  if (!chosen.ok()) return chosen.status();
  const Result<Backend*> backend = FindBackend(name);
  if (!backend.ok()) return backend.status();
  return Found{backend.value(), name, chosen.value().description};
}

// Joins the store, and agrees with the other ranks on places and on the backend.
Result<Found> LookTogether(const Wishes& wishes, Deadline deadline, GroupParts* parts) {
  const Launch& launch = wishes.launch;
  Place& place = parts->place;
  if (launch.size == 1) {
    parts->store = std::make_shared<LonelyStore>();
  } else {
    Result<std::unique_ptr<TcpStore>> store =
        TcpStore::Join(launch.address, launch.rank, launch.size, deadline);
    if (!store.ok()) return store.status();
    place.address = store.value()->local_address();
    parts->store = std::move(store).value();
  }
  const Result<std::vector<std::string>> hosts =
      parts->store->Gather("hosts", parts->members, HostName(), deadline);
  if (!hosts.ok()) return hosts.status();
  FillPlace(hosts.value(), &place);
  const Result<std::vector<std::string>> texts = parts->store->Gather(
      "findings", parts->members, LookAround(wishes.options.backend, place).Encode(), deadline);
  if (!texts.ok()) return texts.status();
  std::vector<Findings> findings;
  for (const std::string& text : texts.value()) {
    Result<Findings> one = Findings::Decode(text);
    if (!one.ok()) return one.status();
    findings.push_back(std::move(one).value());
  }
  const Result<Chosen> chosen = Choose(findings);
  if (!chosen.ok()) return chosen.status();
  const Result<Backend*> backend = FindBackend(chosen.value().backend);
  if (!backend.ok()) return backend.status();
  return Found{backend.value(), chosen.value().backend, chosen.value().description};
}

Result<std::shared_ptr<GroupState>> CreateState(const GroupOptions& options) {
  const Result<Wishes> read = ReadWishes(options);
  if (!read.ok()) return read.status();
  Wishes wishes = read.value();
  // A policy chooses for its calls.
  wishes.options.choose = wishes.options.choose || !wishes.options.policy.empty();
  const Launch& launch = wishes.launch;
  const Deadline deadline = steady_clock::now() + wishes.options.timeout;

  GroupParts parts;
  parts.place.rank = launch.rank;
  parts.place.size = launch.size;
  parts.place.local_rank = launch.local_rank;
  for (int rank = 0; rank < launch.size; ++rank) parts.members.push_back(rank);
  parts.timeout = wishes.options.timeout;
  parts.choose = wishes.options.choose;
  parts.link_peak = wishes.options.link_peak;
  parts.log = wishes.options.log;

  const std::string& wanted = wishes.options.backend;
  const bool alone = wanted == "sim" || wanted == "mpi";
  const Result<Found> found =
      alone ? LookAlone(wanted, parts.place) : LookTogether(wishes, deadline, &parts);
  if (!found.ok()) return found.status();
  parts.backend = found.value().name;
  parts.description = found.value().description;

  Start start;
  start.place = parts.place;
  start.store = parts.store.get();
  start.name = parts.name;
  start.timeout = std::max(
      milliseconds(1), std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()));
  start.options = &wishes.options;
  start.log = parts.log;
  Result<std::unique_ptr<Communicator>> communicator = found.value().backend->Create(start);
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
  if (!wishes.options.policy.empty()) {
    Result<std::shared_ptr<const policy::Policy>> policy =
        LoadChoices(wishes.options.policy, parts.backend, wishes.options.cluster);
    policy_read = policy.status();
    if (policy.ok()) parts.policy = std::move(policy).value();
  }
  const uint64_t digest = parts.policy == nullptr ? 0 : policy::Digest(*parts.policy);
  Store* const store = parts.store.get();
  const std::vector<int> members = parts.members;
  auto state = std::make_shared<GroupState>(std::move(parts));
  const Status verified = Agree(store, "verified", members, Verify(state.get()), deadline);
  if (!verified.ok()) return verified;
  if (!wishes.options.policy.empty()) {
    const Status same = SamePolicy(state.get(), policy_read, digest);
    if (!same.ok()) return same;
  }
  state->Open(wishes.slow_seconds);
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
