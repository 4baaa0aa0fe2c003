#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"
#include "domain/vocabulary.h"
#include "policy/table.h"
#include "report/page_parts.h"

namespace diapason::report {
namespace {

// Limit on shapes that a policy names and that were not measured.
constexpr size_t kMostOtherShapes = 48;

std::optional<PageFigure> GainAt(const PageSize& size, int config) {
  const PageCell* const standard = size.Find(0);
  const PageCell* const cell = size.Find(config);
  if (standard == nullptr || cell == nullptr) return std::nullopt;
  return RatioOf(standard->time, cell->time);
}

// The evidence for a decision: verification if there is one, else the search.
void AddProofs(const PageGroup& group, PageDecision* decision) {
  if (decision->config == 0) return;
  std::set<uint64_t> verified;
  for (const PageVerified& one : group.verified) {
    if (one.bytes < decision->first || one.bytes > decision->last) continue;
    if (one.config != decision->config || !one.gain.known()) continue;
    decision->proofs.push_back({one.bytes, one.gain, true});
    verified.insert(one.bytes);
  }
  for (const PageSize& size : group.sizes) {
    if (size.bytes < decision->first || size.bytes > decision->last) continue;
    if (verified.contains(size.bytes)) continue;
    const std::optional<PageFigure> gain = GainAt(size, decision->config);
    if (gain.has_value()) decision->proofs.push_back({size.bytes, *gain, false});
  }
  std::sort(decision->proofs.begin(), decision->proofs.end(),
            [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
}

class PolicyReader {
 public:
  PolicyReader(const policy::Policy& policy, ConfigBook* configs)
      : policy_(policy), configs_(configs) {
    for (const policy::Rule& rule : policy.rules) by_line_[rule.line] = &rule;
  }

  PageMapRow RowFor(Collective collective, const Shape& shape, const std::string& label) const {
    const policy::DecisionTable table(policy_, {.shape = shape});
    PageMapRow row;
    row.label = label;
    for (const policy::ShownRange& range :
         policy::ShowRanges(table, policy_, {.collective = collective})) {
      PageDecision decision;
      decision.first = range.first;
      decision.last = range.last;
      decision.why = "no row matches: the library decides";
      if (range.entry != nullptr) {
        const Config config = range.entry->config();
        decision.config = configs_->NumberOf(policy_.library, collective, config);
        decision.line = range.entry->line;
        decision.why = Format("line {}", decision.line);
        if (config.IsDefault()) decision.why += ": leaves the choice to the library";
        const auto rule = by_line_.find(decision.line);
        if (rule != by_line_.end()) {
          decision.row = policy::RuleText(policy_.library, *rule->second);
          decision.remark = rule->second->remark;
        }
      }
      row.decisions.push_back(std::move(decision));
    }
    return row;
  }

  // Shapes of its rows, without those in `known`.
  std::vector<PageMapRow> OtherRows(
      const std::set<std::tuple<int, int64_t, int64_t>>& known) const {
    std::set<std::tuple<int, int64_t, int64_t>> shapes;
    for (const policy::Rule& rule : policy_.rules) {
      const auto collective = static_cast<int>(rule.collective);
      const bool any = rule.nodes == policy::kAny || rule.ranks == policy::kAny;
      const bool met =
          any ? std::any_of(known.begin(), known.end(),
                            [&](const auto& one) {
                              return std::get<0>(one) == collective &&
                                     rule.MatchesShape({std::get<1>(one), std::get<2>(one)});
                            })
              : known.contains({collective, rule.nodes, rule.ranks});
      if (!met) shapes.insert({collective, rule.nodes, rule.ranks});
    }
    std::vector<PageMapRow> rows;
    for (const auto& [collective, nodes, ranks] : shapes) {
      if (rows.size() == kMostOtherShapes) break;
      const auto which = static_cast<Collective>(collective);
      const auto number = [](int64_t value, const char* noun) {
        return value == policy::kAny
                   ? std::string("any number of ") + noun + "s"
                   : Count(static_cast<size_t>(std::max<int64_t>(value, 0)), noun);
      };
      rows.push_back(RowFor(which, {nodes, ranks},
                            std::string(CollectiveName(which)) + ", " + number(ranks, "rank") +
                                " on " + number(nodes, "node")));
    }
    return rows;
  }

 private:
  const policy::Policy& policy_;
  ConfigBook* configs_;
  std::map<int, const policy::Rule*> by_line_;
};

bool IsCollective(const PageGroup& group) {
  return group.context.kind == dataset::Point::Kind::kCollective;
}

// The group's collective in the policy's library; nullopt if it has none.
std::optional<Collective> CollectiveFor(const policy::Policy& policy, const PageGroup& group,
                                        const PagePlace& place) {
  if (!place.library.empty() && place.library != LibraryName(policy.library)) return std::nullopt;
  const Result<Collective> collective = ParseCollective(policy.library, group.context.collective);
  if (!collective.ok()) return std::nullopt;
  return collective.value();
}

PageMap PolicyMap(const PageInput::NamedPolicy& named, ConfigBook* configs, const PageData& data) {
  const policy::Policy& policy = named.policy;
  PageMap map;
  map.name = named.name;
  map.origin = policy.header.origin;
  map.digest = policy::DigestText(policy::Digest(policy));
  map.rules = policy.rules.size();
  const PolicyReader reader(policy, configs);
  std::set<std::tuple<int, int64_t, int64_t>> known;
  for (size_t i = 0; i < data.groups.size(); ++i) {
    const PageGroup& group = data.groups[i];
    if (!IsCollective(group)) continue;
    const std::optional<Collective> collective =
        CollectiveFor(policy, group, data.places[group.place]);
    if (!collective.has_value()) continue;
    const Shape shape{group.context.nodes, group.context.ranks};
    known.insert({static_cast<int>(*collective), shape.nodes, shape.ranks});
    PageMapRow row = reader.RowFor(*collective, shape, group.label);
    row.group = static_cast<int>(i);
    for (PageDecision& decision : row.decisions) AddProofs(group, &decision);
    map.rows.push_back(std::move(row));
  }
  for (PageMapRow& row : reader.OtherRows(known)) map.rows.push_back(std::move(row));
  return map;
}

std::string WhyOf(const PageSize& size) {
  switch (size.certainty) {
    case Certainty::kClear:
      return "faster than the default, and the intervals are apart";
    case Certainty::kFew:
      return size.chosen > 0 ? "faster than the default, from few samples"
                             : "too few samples to leave the default for";
    case Certainty::kTie:
      if (size.cells.size() == 1) return "nothing but the default was measured";
      return size.cells.front().config == 0
                 ? "the default is the fastest of those measured"
                 : "a tie: the data do not tell the best from the default";
    case Certainty::kAlone:
      break;
  }
  return "the default was not measured";
}

// Adjacent sizes with the same choice are one decision.
PageMap DataMap(const PageData& data) {
  PageMap map;
  for (size_t i = 0; i < data.groups.size(); ++i) {
    const PageGroup& group = data.groups[i];
    if (!IsCollective(group)) continue;
    PageMapRow row;
    row.label = group.label;
    row.group = static_cast<int>(i);
    for (const PageSize& size : group.sizes) {
      if (size.chosen < 0) continue;
      const std::string why = WhyOf(size);
      if (!row.decisions.empty() && row.decisions.back().config == size.chosen &&
          row.decisions.back().why == why) {
        row.decisions.back().last = size.bytes;
        continue;
      }
      row.decisions.push_back({size.bytes, size.bytes, size.chosen, 0, "", "", why, {}});
    }
    for (PageDecision& decision : row.decisions) AddProofs(group, &decision);
    if (!row.decisions.empty()) map.rows.push_back(std::move(row));
  }
  return map;
}

// The first policy's choice if it decides, else the choice of the data.
void SetChosen(const PageMap& map, PageData* data) {
  for (const PageMapRow& row : map.rows) {
    if (row.group < 0) continue;
    for (PageSize& size : data->groups[static_cast<size_t>(row.group)].sizes) {
      for (const PageDecision& decision : row.decisions) {
        if (size.bytes >= decision.first && size.bytes <= decision.last) {
          size.chosen = decision.config;
        }
      }
    }
  }
}

int RunAt(const PageMapRow& row, uint64_t bytes) {
  for (const PageDecision& decision : row.decisions) {
    if (bytes >= decision.first && bytes <= decision.last) return decision.config;
  }
  return 0;
}

// A verification of "the policy" as a whole: the samples contain only its name.
bool IsWholePolicy(const std::string& environment) {
  return environment.starts_with("DIAPASON_POLICY=");
}

// `rows`: the decisions of each policy for the group's library.
void JudgeGroup(const std::vector<PageMapRow>& rows, bool empty, const ConfigBook& configs,
                PageGroup* group) {
  const auto decide = [&](uint64_t bytes) {
    int& decided = group->decided[bytes];
    for (const PageMapRow& row : rows) {
      if (decided == 0) decided = RunAt(row, bytes);
    }
  };
  for (const PageSize& size : group->sizes) decide(size.bytes);
  for (PageVerified& one : group->verified) {
    decide(one.bytes);
    if (one.config == 0) {
      if (one.verdict == "left alone" && group->decided[one.bytes] != 0) {
        one.verdict = "default only";
      }
      continue;
    }
    one.kept = IsWholePolicy(configs.EnvironmentOf(one.config))
                   ? !empty
                   : std::any_of(rows.begin(), rows.end(), [&](const PageMapRow& row) {
                       return RunAt(row, one.bytes) == one.config;
                     });
    if (!one.kept && one.verdict != "failed") one.verdict = "not kept";
  }
}

}  // namespace

void JudgeByPolicies(const std::vector<PageInput::NamedPolicy>& policies, ConfigBook* configs,
                     PageData* data) {
  for (PageGroup& group : data->groups) {
    std::vector<PageMapRow> rows;
    bool empty = true;
    for (const PageInput::NamedPolicy& named : policies) {
      const std::optional<Collective> collective =
          CollectiveFor(named.policy, group, data->places[group.place]);
      if (!collective.has_value()) continue;
      const Shape shape{group.context.nodes, group.context.ranks};
      rows.push_back(PolicyReader(named.policy, configs).RowFor(*collective, shape, ""));
      empty = empty && named.policy.rules.empty();
    }
    if (!rows.empty()) JudgeGroup(rows, empty, *configs, &group);
  }
}

void AddMaps(const std::vector<PageInput::NamedPolicy>& policies, ConfigBook* configs,
             PageData* data) {
  PageMap supported = DataMap(*data);
  for (const PageInput::NamedPolicy& named : policies) {
    data->maps.push_back(PolicyMap(named, configs, *data));
  }
  if (!data->maps.empty()) SetChosen(data->maps.front(), data);
  if (!supported.rows.empty()) data->maps.push_back(std::move(supported));
  for (PageGroup& group : data->groups) {
    for (PageSize& size : group.sizes) {
      const PageCell* const chosen = size.Find(size.chosen);
      if (chosen == nullptr) continue;
      const PageCell& best = size.cells.front();
      size.lost_chosen = chosen == &best ? PageFigure{best.time.samples, 1, {1, 1}}
                                         : RatioOf(chosen->time, best.time);
    }
  }
}

}  // namespace diapason::report
