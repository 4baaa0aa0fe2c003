#include "measure/pairs.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/stats.h"

namespace diapason::measure {
namespace {

constexpr size_t kFewest = 3;
// So many standard deviations are no accident among thousands of links.
constexpr double kBeyond = 4;

struct LinkGroup {
  double usual = 0;
  std::set<size_t> slow;
};

LinkGroup Look(const std::vector<PairFigure>& pairs, bool same_host, double least) {
  LinkGroup kind;
  std::vector<double> values;
  for (const PairFigure& pair : pairs) {
    if (pair.same_host == same_host) values.push_back(pair.bandwidth);
  }
  if (values.size() < kFewest) return kind;
  kind.usual = Median(values);
  const double scale = RobustDeviation(values);
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].same_host != same_host) continue;
    const double missing = kind.usual - pairs[i].bandwidth;
    if (missing > least * kind.usual && missing > kBeyond * scale) kind.slow.insert(i);
  }
  return kind;
}

}  // namespace

std::vector<OddOne> FindOddOnes(const std::vector<PairFigure>& pairs, double least) {
  std::vector<OddOne> odd;
  for (const bool same_host : {true, false}) {
    LinkGroup kind = Look(pairs, same_host, least);
    while (!kind.slow.empty()) {
      // The member with the most slow links, if they are most of its links.
      std::map<int, std::pair<size_t, size_t>> members;  // slow, all
      for (size_t i = 0; i < pairs.size(); ++i) {
        if (pairs[i].same_host != same_host) continue;
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
      std::vector<double> shares;
      for (const size_t i : one.pairs) {
        shares.push_back(pairs[i].bandwidth / kind.usual);
        kind.slow.erase(i);
      }
      one.share = Median(shares);
      odd.push_back(std::move(one));
    }
  }
  return odd;
}

}  // namespace diapason::measure
