#include "measure/pairs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/stats.h"

namespace diapason::measure {
namespace {

constexpr size_t kFewest = 3;
// So many standard deviations are no accident among thousands of links.
constexpr double kBeyond = 4;

struct LinkGroup {
  double usual = 0;
  double scale = 0;
  std::set<size_t> slow;
};

// What is usual among the links of these indices; nothing if there are too few of them.
std::optional<LinkGroup> Usual(const std::vector<PairFigure>& pairs,
                               const std::set<size_t>& links) {
  if (links.size() < kFewest) return std::nullopt;
  std::vector<double> values;
  for (const size_t i : links) values.push_back(pairs[i].bandwidth);
  return LinkGroup{.usual = Median(values), .scale = RobustDeviation(values), .slow = {}};
}

bool IsSlow(const PairFigure& pair, const LinkGroup& group, double least) {
  const double missing = group.usual - pair.bandwidth;
  return missing > least * group.usual && missing > kBeyond * group.scale;
}

double ShareOfUsual(const std::vector<PairFigure>& pairs, const OddOne& one) {
  std::vector<double> shares;
  for (const size_t i : one.pairs) shares.push_back(pairs[i].bandwidth / one.usual);
  return Median(shares);
}

// The member that is slowest in comparison with the links of all others, if every link of it is
// slow. Half of the links of four hosts belong to one of them: the median of all links does not
// show that host.
std::optional<OddOne> SlowestMember(const std::vector<PairFigure>& pairs,
                                    const std::set<size_t>& links, double least) {
  std::map<int, std::vector<size_t>> members;
  for (const size_t i : links) {
    members[pairs[i].first].push_back(i);
    members[pairs[i].second].push_back(i);
  }
  std::optional<OddOne> slowest;
  for (const auto& [member, own] : members) {
    std::set<size_t> others = links;
    for (const size_t i : own) others.erase(i);
    const std::optional<LinkGroup> group = Usual(pairs, others);
    if (!group || own.size() < 2) continue;
    if (!std::all_of(own.begin(), own.end(),
                     [&](size_t i) { return IsSlow(pairs[i], *group, least); }))
      continue;
    OddOne one;
    one.member = member;
    one.pairs = own;
    one.usual = group->usual;
    one.same_host = pairs[own[0]].same_host;
    one.share = ShareOfUsual(pairs, one);
    if (!slowest || one.share < slowest->share) slowest = std::move(one);
  }
  return slowest;
}

LinkGroup Look(const std::vector<PairFigure>& pairs, const std::set<size_t>& links, double least) {
  LinkGroup kind = Usual(pairs, links).value_or(LinkGroup{});
  for (const size_t i : links) {
    if (IsSlow(pairs[i], kind, least)) kind.slow.insert(i);
  }
  return kind;
}

}  // namespace

std::vector<OddOne> FindOddOnes(const std::vector<PairFigure>& pairs, double least) {
  std::vector<OddOne> odd;
  for (const bool same_host : {true, false}) {
    std::set<size_t> links;
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].same_host == same_host) links.insert(i);
    }
    while (std::optional<OddOne> one = SlowestMember(pairs, links, least)) {
      for (const size_t i : one->pairs) links.erase(i);
      odd.push_back(std::move(*one));
    }
    LinkGroup kind = Look(pairs, links, least);
    while (!kind.slow.empty()) {
      // The member with the most slow links, if they are most of its links.
      std::map<int, std::pair<size_t, size_t>> members;  // slow, all
      for (const size_t i : links) {
        for (const int member : {pairs[i].first, pairs[i].second}) {
          members[member].first += kind.slow.count(i);
          ++members[member].second;
        }
      }
      const auto worst = std::max_element(
          members.begin(), members.end(),
          [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
      OddOne one;
      one.usual = kind.usual;
      one.same_host = same_host;
      const auto [slow, all] = worst->second;
      if (slow >= 2 && 2 * slow > all) {
        one.member = worst->first;
        for (const size_t i : kind.slow) {
          if (pairs[i].first == one.member || pairs[i].second == one.member) one.pairs.push_back(i);
        }
      } else {
        one.pairs = {*kind.slow.begin()};
      }
      for (const size_t i : one.pairs) kind.slow.erase(i);
      one.share = ShareOfUsual(pairs, one);
      odd.push_back(std::move(one));
    }
  }
  return odd;
}

}  // namespace diapason::measure
