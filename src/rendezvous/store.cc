#include "rendezvous/store.h"

#include "base/text.h"

namespace diapason::rendezvous {
namespace {

// "rank 1, rank 2 and 7 more have not arrived"
std::string Sentence(const std::vector<RankAnswer>& answers, RankAnswer::State state,
                     const char* one, const char* several) {
  constexpr size_t kNamed = 16;
  std::vector<std::string> names;
  for (const RankAnswer& answer : answers) {
    if (answer.state == state) names.push_back(answer.who);
  }
  if (names.empty()) return "";
  if (names.size() == 1) return names[0] + " " + one;
  if (names.size() > kNamed) {
    const size_t more = names.size() - kNamed;
    names.resize(kNamed);
    return Join(names, ", ") + Format(" and {} more ", more) + several;
  }
  const std::string last = names.back();
  names.pop_back();
  return Join(names, ", ") + " and " + last + " " + several;
}

}  // namespace

std::string Missing(const std::vector<RankAnswer>& answers) {
  std::vector<std::string> sentences;
  for (std::string& sentence : std::vector<std::string>{
           Sentence(answers, RankAnswer::State::kLost, "has ended", "have ended"),
           Sentence(answers, RankAnswer::State::kLeft, "has left", "have left"),
           Sentence(answers, RankAnswer::State::kMissing, "has not arrived", "have not arrived")}) {
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  }
  return Join(sentences, "; ");
}

Result<std::vector<std::string>> RendezvousStore::Gather(const std::string& key,
                                                         const std::vector<int>& members,
                                                         const std::string& value,
                                                         Deadline deadline) {
  ASSIGN_OR_RETURN(const std::vector<RankAnswer> answers,
                   Collect(key, members, value, true, deadline));
  const std::string missing = Missing(answers);
  if (!missing.empty()) {
    for (const RankAnswer& answer : answers) {
      if (answer.state == RankAnswer::State::kLost || answer.state == RankAnswer::State::kLeft) {
        return PeerLost(missing);
      }
    }
    return TimedOut(missing);
  }
  std::vector<std::string> values;
  values.reserve(answers.size());
  for (const RankAnswer& answer : answers) values.push_back(answer.value);
  return values;
}

}  // namespace diapason::rendezvous
