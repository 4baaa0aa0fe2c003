#include "journal/match.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::journal {
namespace {

constexpr size_t kMostLabels = 8;

}  // namespace

std::string Matcher::Group::Text() const {
  std::string text = Format("communicator 0x{:x}", id);
  if (!name.empty()) text += " (" + name + ")";
  if (generation > 0) text += Format(", number {} with this id", generation + 1);
  return text;
}

std::vector<Matcher::Place> Matcher::Add(const std::string& name, const JournalContents& contents) {
  // One process may have several ranks of a communicator: these are not generations.
  std::map<std::tuple<uint64_t, Library, int64_t, int64_t, int>, uint32_t> seen;
  std::vector<Place> places;
  for (const JournalComm& communicator : contents.communicators) {
    const Shape& shape = communicator.shape;
    const uint32_t generation = seen[{communicator.id, communicator.library, shape.nodes,
                                      shape.ranks, communicator.rank}]++;
    const Key key{communicator.id, communicator.library, shape.nodes, shape.ranks, generation};
    const auto [at, fresh] = by_key_.emplace(key, groups_.size());
    if (fresh) {
      Group group;
      group.id = communicator.id;
      group.generation = generation;
      group.library = communicator.library;
      group.library_version = communicator.library_version;
      group.shape = shape;
      groups_.push_back(std::move(group));
    }
    Group& group = groups_[at->second];
    if (group.name.empty()) group.name = communicator.name;
    Member member;
    member.journal = journals_;
    member.communicator = communicator.number;
    member.rank = communicator.rank;
    member.label = communicator.rank < 0 ? name : Format("rank {}", communicator.rank);
    member.host = contents.host;
    member.digest = communicator.digest;
    member.ended = contents.ended;
    member.complete = contents.ended && contents.dropped == 0 && contents.bad_lines == 0;
    places.push_back({at->second, group.members.size()});
    group.members.push_back(std::move(member));
  }
  ++journals_;
  return places;
}

std::string RanksText(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    // Two consecutive ranks read better as a list.
    if (last == i + 1) last = i;
    parts.push_back(last == i ? Format("{}", ranks[i]) : Format("{}-{}", ranks[i], ranks[last]));
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + Join(parts, ", ");
}

std::string MembersText(const std::vector<const Matcher::Member*>& members) {
  std::vector<int> ranks;
  std::vector<std::string> labels;
  for (const Matcher::Member* member : members) {
    ranks.push_back(member->rank);
    labels.push_back(member->label);
  }
  if (std::all_of(ranks.begin(), ranks.end(), [](int rank) { return rank >= 0; })) {
    return RanksText(std::move(ranks));
  }
  const size_t more = labels.size() > kMostLabels ? labels.size() - kMostLabels : 0;
  labels.resize(labels.size() - more);
  return Join(labels, ", ") + (more > 0 ? Format(" and {} more", more) : "");
}

}  // namespace diapason::journal
