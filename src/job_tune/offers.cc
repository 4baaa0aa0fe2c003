#include "job_tune/offers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/stats.h"
#include "base/text.h"
#include "domain/schedule.h"
#include "journal/joined.h"

namespace diapason::job_tune {
namespace {

using journal::JournalContents;
using journal::JournalRecord;
using journal::RecordKind;

// As the library marks a pair that it pushes away without taking it off the table, in microseconds.
constexpr float kPushedAway = 1e9f;
// From 2.29 on an answer with LL switches between two kinds of kernels.
constexpr int kNewScheduler = 22900;

using ContextKey = std::tuple<Library, Collective, int, int64_t, int64_t>;
ContextKey KeyOf(const JobContext& context) {
  return {context.library, context.collective, context.band, context.shape.nodes,
          context.shape.ranks};
}

// What the ranks say about one context.
struct Offered {
  bool begun = false;
  int algorithms = 0;
  int protocols = 0;
  std::vector<float> costs;  // by pair; -1: some rank does not offer it
  std::map<std::tuple<int, int, int>, size_t> by_default;  // what ran by itself, and how often
  Config by_table;                                         // the library's own pair, as it said
  std::vector<double> run_seconds;                         // of runs that were timed
  size_t captured = 0;                                     // questions, of the rank with most
  uint64_t least_bytes = UINT64_MAX;                       // of these
  uint64_t most_bytes = 0;
};

bool IsOffered(float cost) { return cost >= 0 && cost < kPushedAway; }

void AddTable(const JournalRecord& record, Offered* offered) {
  const int algorithms = record.table_algorithms;
  const int protocols = record.table_protocols;
  if (algorithms == 0 || protocols == 0) return;
  if (!offered->begun) {
    offered->begun = true;
    offered->algorithms = algorithms;
    offered->protocols = protocols;
    offered->costs.assign(record.table, record.table + algorithms * protocols);
  }
  if (offered->algorithms != algorithms || offered->protocols != protocols) return;
  for (size_t i = 0; i < offered->costs.size(); ++i) {
    if (!IsOffered(record.table[i])) offered->costs[i] = -1;
  }
}

using AllOffered = std::map<ContextKey, Offered>;

void AddDecision(const JournalRecord& record, Offered* offered) {
  AddTable(record, offered);
  if (record.default_algorithm != kKeep) {
    offered->by_table = {record.default_algorithm, record.default_protocol, 0};
  }
  if (!record.captured) return;
  offered->least_bytes = std::min(offered->least_bytes, record.bytes);
  offered->most_bytes = std::max(offered->most_bytes, record.bytes);
}

void AddJournal(const JournalContents& contents, AllOffered* all) {
  const std::vector<uint32_t> partners = journal::JoinRuns(contents);
  std::map<ContextKey, size_t> captured;
  for (size_t i = 0; i < contents.records.size(); ++i) {
    const JournalRecord& record = contents.records[i];
    const journal::JournalComm* comm = contents.Find(record.communicator);
    if (comm == nullptr || record.collective == journal::kNamelessCollective) continue;
    const ContextKey key{comm->library, static_cast<Collective>(record.collective),
                         SizeBand(record.bytes), comm->shape.nodes, comm->shape.ranks};
    Offered& offered = (*all)[key];
    if (record.kind == RecordKind::kDecision) {
      AddDecision(record, &offered);
      if (record.captured) ++captured[key];
    }
    if (record.kind != RecordKind::kRan) continue;
    if (record.seconds > 0) offered.run_seconds.push_back(record.seconds);
    // A replay names no question. Captured calls are left to the library while a job is looked at.
    const bool known = partners[i] != journal::kNoPartner;
    if (known ? !journal::AskedOf(contents.records[partners[i]]).IsDefault() : !record.captured) {
      continue;
    }
    const Config ran = journal::ConfigOf(record);
    if (!ran.IsDefault()) ++offered.by_default[{ran.algorithm, ran.protocol, ran.channels}];
  }
  for (const auto& [key, count] : captured) {
    (*all)[key].captured = std::max((*all)[key].captured, count);
  }
}

void AddPairs(const Offered& offered, int library_version, SearchContext* context) {
  size_t most = 0;
  context->by_default = offered.by_table;
  for (const auto& [config, count] : offered.by_default) {
    if (count <= most) continue;
    most = count;
    context->by_default = {std::get<0>(config), std::get<1>(config), std::get<2>(config)};
  }
  double cheapest = 0;
  for (const float cost : offered.costs) {
    if (cost > 0 && (cheapest == 0 || cost < cheapest)) cheapest = cost;
  }
  for (int a = 0; a < offered.algorithms; ++a) {
    for (int p = 0; p < offered.protocols; ++p) {
      const auto pair =
          static_cast<size_t>(a) * static_cast<size_t>(offered.protocols) + static_cast<size_t>(p);
      const float cost = offered.costs[pair];
      if (!IsOffered(cost) || !PairExists(context->context.collective, a, p)) continue;
      if (p == kLl && library_version >= kNewScheduler) continue;
      context->offered.push_back({{a, p, 0}, cost > 0 && cheapest > 0 ? cost / cheapest : 0});
    }
  }
}

// Why calls of a class cannot be tried at all; "" if they can be.
std::string WhyUntried(const job_profile::CallClass& one) {
  if (one.collective == journal::kNamelessCollective) {
    return "the library asks no tuner about this collective";
  }
  const uint64_t never = one.Untried() - one.captured;
  if (2 * one.Untried() <= one.calls || one.captured >= never) return "";
  if (one.bypassed >= one.in_groups + one.broadcasts) {
    return "the library takes a path on which it asks no tuner";
  }
  return one.broadcasts > one.in_groups ? "broadcasts of library 2.29 and later"
                                        : "groups of several calls, of library 2.29 and later";
}

// A context, and the time of one of its calls; 0: not known.
struct FoundContext {
  TunedContext tuned;
  double per_call = 0;
  double weight = 0;
};

double PerCall(const TunedContext& one, const Offered& offered) {
  if (one.seconds > 0) return one.seconds / one.calls_per_iteration;
  if (!offered.run_seconds.empty()) return Median(offered.run_seconds);
  double cheapest = 0;  // microseconds
  for (const float cost : offered.costs) {
    if (cost > 0 && (cheapest == 0 || cost < cheapest)) cheapest = cost;
  }
  return cheapest * 1e-6;
}

// The classes of a profile, those of one context together.
std::vector<FoundContext> ContextsOf(const job_profile::JobProfile& profile) {
  std::vector<FoundContext> contexts;
  for (const job_profile::CallClass& one : profile.classes) {
    const job_profile::Role& role = profile.roles[one.role];
    if (one.calls_per_iteration <= 0) continue;
    const JobContext context{role.library, static_cast<Collective>(one.collective), one.band,
                             role.shape};
    const std::string why = WhyUntried(one);
    const bool by_launches = why.empty() && 2 * one.Untried() > one.calls && one.captured > 0;
    auto at = std::find_if(contexts.begin(), contexts.end(), [&](const FoundContext& known) {
      return known.tuned.context == context && known.tuned.untried == why &&
             known.tuned.by_launches == by_launches;
    });
    if (at == contexts.end()) {
      at = contexts.emplace(contexts.end());
      at->tuned.context = context;
      at->tuned.untried = why;
      at->tuned.by_launches = by_launches;
      at->tuned.least_bytes = one.least_bytes;
    }
    TunedContext& tuned = at->tuned;
    tuned.least_bytes = std::min(tuned.least_bytes, one.least_bytes);
    tuned.most_bytes = std::max(tuned.most_bytes, one.most_bytes);
    tuned.calls_per_iteration += one.calls_per_iteration;
    tuned.seconds += one.times.total;
  }
  return contexts;
}

// Those of graphs whose replays are not reported.
void AddUnseen(const AllOffered& all, std::vector<FoundContext>* contexts) {
  for (const auto& [key, offered] : all) {
    if (offered.captured == 0) continue;
    const auto known =
        std::find_if(contexts->begin(), contexts->end(), [&key = key](const FoundContext& one) {
          return one.tuned.untried.empty() && KeyOf(one.tuned.context) == key;
        });
    if (known != contexts->end()) {
      known->tuned.also_captured = true;
      continue;
    }
    FoundContext added;
    const auto& [library, collective, band, nodes, ranks] = key;
    added.tuned.context = {library, collective, band, {nodes, ranks}};
    added.tuned.by_launches = added.tuned.also_captured = added.tuned.unseen = true;
    added.tuned.least_bytes = offered.least_bytes;
    added.tuned.most_bytes = offered.most_bytes;
    added.tuned.calls_per_iteration = static_cast<double>(offered.captured);
    contexts->push_back(std::move(added));
  }
}

double Share(const FoundContext& one, LookShares::Of of) {
  if (of == LookShares::Of::kTime) return one.tuned.seconds;
  return one.tuned.calls_per_iteration * (of == LookShares::Of::kCalls ? 1 : one.per_call);
}

// Sets the weights, by which contexts are sorted and the small ones left out.
LookShares Weigh(const job_profile::JobProfile& profile, std::vector<FoundContext>* found) {
  const auto any = [&](const auto& holds) {
    return std::any_of(found->begin(), found->end(), holds);
  };
  LookShares shares;
  const bool timed =
      profile.iteration > 0 && any([](const FoundContext& one) { return one.tuned.seconds > 0; }) &&
      !any([](const FoundContext& one) { return one.tuned.by_launches && one.tuned.seconds <= 0; });
  using Of = LookShares::Of;
  shares.of = timed                                                            ? Of::kTime
              : any([](const FoundContext& one) { return one.per_call <= 0; }) ? Of::kCalls
                                                                               : Of::kEstimatedTime;
  double sum = 0;
  for (const FoundContext& one : *found) sum += Share(one, shares.of);
  for (FoundContext& one : *found) {
    const double part = Share(one, shares.of) / sum;
    one.weight = timed ? one.tuned.seconds / profile.iteration : part;
    if (!one.tuned.untried.empty()) shares.untried += part;
    if (one.tuned.by_launches) shares.by_launches += part;
  }
  std::stable_sort(found->begin(), found->end(), [](const FoundContext& a, const FoundContext& b) {
    return a.weight > b.weight;
  });
  for (const FoundContext& one : *found) {
    const std::string& why = one.tuned.untried;
    const bool known =
        std::find(shares.reasons.begin(), shares.reasons.end(), why) != shares.reasons.end();
    if (!why.empty() && !known) shares.reasons.push_back(why);
  }
  return shares;
}

std::string WhyTooSmall(const FoundContext& one, LookShares::Of of, double least_share) {
  if (one.weight >= least_share) return "";
  const char* whole = of == LookShares::Of::kTime    ? "iteration"
                      : of == LookShares::Of::kCalls ? "calls"
                                                     : "collective time, by estimates";
  return Format("less than {:g} % of the {}", 100 * least_share, whole);
}

}  // namespace

JobOffers FindOffers(const job_profile::JobProfile& profile,
                     const std::vector<JournalContents>& journals, double least_share) {
  AllOffered offered;
  for (const JournalContents& one : journals) AddJournal(one, &offered);
  std::vector<FoundContext> found = ContextsOf(profile);
  AddUnseen(offered, &found);
  for (FoundContext& one : found) {
    one.per_call = PerCall(one.tuned, offered[KeyOf(one.tuned.context)]);
  }
  int version = 0;
  for (const job_profile::Role& role : profile.roles) {
    version = std::max(version, role.library_version);
  }
  JobOffers offers;
  offers.shares = Weigh(profile, &found);
  std::vector<TunedContext> captured;
  std::vector<TunedContext> others;
  for (FoundContext& one : found) {
    TunedContext& tuned = one.tuned;
    std::vector<SearchContext>& kind = tuned.by_launches ? offers.by_launches : offers.contexts;
    const size_t most = tuned.by_launches ? kMostByLaunches : kMostContexts;
    if (tuned.untried.empty()) tuned.untried = WhyTooSmall(one, offers.shares.of, least_share);
    if (tuned.untried.empty() && kind.size() == most) {
      tuned.untried = Format("the {} kinds of {} with most time are tried", most,
                             tuned.by_launches ? "captured calls" : "calls");
    }
    SearchContext context;
    context.context = tuned.context;
    if (tuned.untried.empty()) {
      AddPairs(offered[KeyOf(tuned.context)], version, &context);
      context.channel_counts =
          tuned.context.collective != Collective::kAllGather || version < kNewScheduler;
      const bool alone = context.offered.size() <= 1 && context.by_default.channels <= 1;
      if (alone) tuned.untried = "the library offers nothing else";
    }
    if (!tuned.untried.empty()) {
      others.push_back(std::move(tuned));
      continue;
    }
    kind.push_back(std::move(context));
    (tuned.by_launches ? captured : offers.all).push_back(std::move(tuned));
  }
  offers.all.insert(offers.all.end(), captured.begin(), captured.end());
  offers.all.insert(offers.all.end(), others.begin(), others.end());
  return offers;
}

}  // namespace diapason::job_tune
