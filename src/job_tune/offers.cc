#include "job_tune/offers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

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

void AddJournal(const JournalContents& contents, AllOffered* all) {
  const std::vector<uint32_t> partners = journal::JoinRuns(contents);
  for (size_t i = 0; i < contents.records.size(); ++i) {
    const JournalRecord& record = contents.records[i];
    const journal::JournalComm* comm = contents.Find(record.communicator);
    if (comm == nullptr || record.collective == journal::kNamelessCollective) continue;
    Offered& offered = (*all)[{comm->library, static_cast<Collective>(record.collective),
                               SizeBand(record.bytes), comm->shape.nodes, comm->shape.ranks}];
    if (record.kind == RecordKind::kDecision) AddTable(record, &offered);
    if (record.kind != RecordKind::kRan || partners[i] == journal::kNoPartner) continue;
    if (!journal::AskedOf(contents.records[partners[i]]).IsDefault()) continue;
    const Config ran = journal::ConfigOf(record);
    if (!ran.IsDefault()) ++offered.by_default[{ran.algorithm, ran.protocol, ran.channels}];
  }
}

void AddPairs(const Offered& offered, int library_version, SearchContext* context) {
  size_t most = 0;
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

std::string WhyUntried(const job_profile::CallClass& one) {
  if (one.collective == journal::kNamelessCollective) {
    return "the library asks no tuner about this collective";
  }
  if (one.captured >= one.Untried() - one.captured) return "its calls are captured in CUDA graphs";
  if (one.bypassed >= one.in_groups + one.broadcasts) {
    return "the library takes a path on which it asks no tuner";
  }
  return one.broadcasts > one.in_groups ? "broadcasts of library 2.29 and later"
                                        : "groups of several calls, of library 2.29 and later";
}

// The classes of a profile, those of one context together.
std::vector<TunedContext> ContextsOf(const job_profile::JobProfile& profile) {
  std::vector<TunedContext> contexts;
  for (const job_profile::CallClass& one : profile.classes) {
    const job_profile::Role& role = profile.roles[one.role];
    if (one.calls_per_iteration <= 0) continue;
    const bool untried =
        2 * one.Untried() > one.calls || one.collective == journal::kNamelessCollective;
    JobContext context{role.library, static_cast<Collective>(one.collective), one.band, role.shape};
    const std::string why = untried ? WhyUntried(one) : "";
    auto at = std::find_if(contexts.begin(), contexts.end(), [&](const TunedContext& known) {
      return known.context == context && known.untried == why;
    });
    if (at == contexts.end()) {
      contexts.emplace_back();
      at = contexts.end() - 1;
      at->context = context;
      at->untried = why;
      at->least_bytes = one.least_bytes;
    }
    at->least_bytes = std::min(at->least_bytes, one.least_bytes);
    at->most_bytes = std::max(at->most_bytes, one.most_bytes);
    at->calls_per_iteration += one.calls_per_iteration;
    at->seconds += one.times.total;
  }
  return contexts;
}

}  // namespace

JobOffers FindOffers(const job_profile::JobProfile& profile,
                     const std::vector<JournalContents>& journals, double least_share) {
  AllOffered offered;
  for (const JournalContents& one : journals) AddJournal(one, &offered);
  std::vector<TunedContext> found = ContextsOf(profile);
  double seconds = 0;
  double calls = 0;
  for (const TunedContext& one : found) {
    seconds += one.seconds;
    calls += one.calls_per_iteration;
  }
  const bool timed = seconds > 0 && profile.iteration > 0;
  const auto weight = [&](const TunedContext& one) {
    return timed ? one.seconds / profile.iteration : one.calls_per_iteration / calls;
  };
  std::stable_sort(found.begin(), found.end(), [&](const TunedContext& a, const TunedContext& b) {
    return weight(a) > weight(b);
  });
  JobOffers offers;
  std::vector<TunedContext> others;
  for (TunedContext& one : found) {
    if (one.untried.empty() && weight(one) < least_share) {
      one.untried =
          Format("less than {:g} % of the {}", 100 * least_share, timed ? "iteration" : "calls");
    } else if (one.untried.empty() && offers.contexts.size() == kMostContexts) {
      one.untried = Format("the {} kinds of calls with most time are tried", kMostContexts);
    }
    SearchContext context;
    context.context = one.context;
    if (one.untried.empty()) {
      int version = 0;
      for (const job_profile::Role& role : profile.roles) {
        version = std::max(version, role.library_version);
      }
      AddPairs(offered[KeyOf(one.context)], version, &context);
      context.channel_counts =
          one.context.collective != Collective::kAllGather || version < kNewScheduler;
      const bool alone = context.offered.size() <= 1 && context.by_default.channels <= 1;
      if (alone) one.untried = "the library offers nothing else";
    }
    if (!one.untried.empty()) {
      others.push_back(std::move(one));
      continue;
    }
    offers.contexts.push_back(std::move(context));
    offers.all.push_back(std::move(one));
  }
  offers.all.insert(offers.all.end(), others.begin(), others.end());
  return offers;
}

}  // namespace diapason::job_tune
