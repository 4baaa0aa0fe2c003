// Requests of ranks: the part of StoreServer that keeps values and replies.
#include <algorithm>

#include "base/text.h"
#include "rendezvous/store.h"
#include "rendezvous/store_server.h"

namespace diapason::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kStoredForEachRank = size_t{1} << 20U;
// Beyond the largest reply: a rank with this much unread data has stopped reading.
constexpr size_t kMostUnreadNotices = size_t{1} << 20U;

std::string CollectKey(const std::string& key, int rank) {
  return key + "/" + std::to_string(rank);
}

}  // namespace

void StoreServer::Wait(RankConnection* connection, FrameKind kind, uint64_t limit) {
  connection->waits_for = kind;
  connection->deadline = steady_clock::now() + milliseconds(std::min<uint64_t>(limit, 60000));
  TryAnswer(connection, false);
}

// False: the limit is reached; the rank has been told.
bool StoreServer::Keep(RankConnection* connection, const std::string& key,
                       const std::string& value) {
  const auto found = values_.find(key);
  const size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
  const size_t after = stored_ - before + key.size() + value.size();
  if (after > options_.stored + kStoredForEachRank * ranks_.size()) {
    Fail(connection, Format("rank 0's store is full: rank {}'s value of {} bytes is too much",
                            connection->rank, value.size()));
    return false;
  }
  stored_ = after;
  values_[key] = value;
  return true;
}

void StoreServer::Handle(Connection* from, FrameKind kind, const std::string& body) {
  auto* const connection = static_cast<RankConnection*>(from);
  FrameReader reader(body);
  switch (kind) {
    case FrameKind::kSet: {
      const std::string key(reader.Text());
      const std::string value(reader.Text());
      if (!reader.ok()) break;
      if (!Keep(connection, key, value)) return;
      Send(connection, FrameWriter(FrameKind::kFine).Take());
      AnswerAll();
      return;
    }
    case FrameKind::kGet: {
      connection->key = reader.Text();
      const uint64_t limit = reader.Number();
      if (!reader.ok()) break;
      Wait(connection, kind, limit);
      return;
    }
    case FrameKind::kCollect: {
      connection->key = reader.Text();
      connection->members = reader.Ranks(static_cast<uint64_t>(size_));
      const bool has_value = reader.Number() != 0;
      const std::string value(reader.Text());
      connection->until_loss = reader.Number() != 0;
      const uint64_t limit = reader.Number();
      if (!reader.ok()) break;
      connection->first_missing = 0;
      if (has_value) {
        if (!Keep(connection, CollectKey(connection->key, connection->rank), value)) return;
        AnswerAll();
      }
      Wait(connection, kind, limit);
      return;
    }
    case FrameKind::kGiveUp: {
      const std::string group(reader.Text());
      if (!reader.ok()) break;
      Tell(FrameWriter(FrameKind::kGaveUpNotice)
               .Number(static_cast<uint64_t>(connection->rank))
               .Text(group)
               .Take());
      return;
    }
    case FrameKind::kGoodbye:
      ranks_[static_cast<size_t>(connection->rank)].state = Rank::State::kLeft;
      ++gone_;
      CloseWhenSent(connection);
      AnswerAll();
      return;
    default:
      break;
  }
  Drop(connection);
}

bool StoreServer::Collected(RankConnection* connection, bool at_deadline) {
  bool missing = false;
  bool gone = false;
  size_t& first = connection->first_missing;
  for (size_t i = first; i < connection->members.size(); ++i) {
    const int member = connection->members[i];
    if (values_.contains(CollectKey(connection->key, member))) {
      if (i == first) ++first;
      continue;
    }
    const Rank::State state = ranks_[static_cast<size_t>(member)].state;
    if (state == Rank::State::kLost || state == Rank::State::kLeft) {
      gone = true;
    } else {
      missing = true;
      // The reply waits for this rank's answer, unless one that is gone would end the wait.
      if ((!connection->until_loss || gone_ == 0) && !at_deadline) break;
    }
  }
  return !missing || at_deadline || (gone && connection->until_loss);
}

std::string StoreServer::Collection(const RankConnection& connection) const {
  FrameWriter answer(FrameKind::kFine);
  answer.Number(connection.members.size());
  for (const int member : connection.members) {
    const auto found = values_.find(CollectKey(connection.key, member));
    const Rank::State state = ranks_[static_cast<size_t>(member)].state;
    RankAnswer::State said = RankAnswer::State::kMissing;
    if (found != values_.end()) {
      said = RankAnswer::State::kGiven;
    } else if (state == Rank::State::kLost) {
      said = RankAnswer::State::kLost;
    } else if (state == Rank::State::kLeft) {
      said = RankAnswer::State::kLeft;
    }
    answer.Number(static_cast<uint64_t>(said));
    answer.Text(found != values_.end() ? found->second : "");
    answer.Text(said == RankAnswer::State::kGiven ? "" : Who(member));
  }
  return answer.Take();
}

void StoreServer::TryAnswer(RankConnection* connection, bool at_deadline) {
  const FrameKind kind = connection->waits_for;
  if (kind == FrameKind::kHello) return;
  if (!fatal_.empty()) {
    Fail(connection, fatal_);
    return;
  }
  std::string answer;
  if (kind == FrameKind::kGet) {
    const auto found = values_.find(connection->key);
    if (found == values_.end() && !at_deadline) return;
    answer = found != values_.end() ? FrameWriter(FrameKind::kFine).Text(found->second).Take()
                                    : FrameWriter(FrameKind::kNotYet).Take();
  } else {
    if (!Collected(connection, at_deadline)) return;
    answer = Collection(*connection);
  }
  if (answer.size() > kAnswerLimit) {
    Fail(connection, Format("what the ranks have said under '{}' is too long for one answer: {} "
                            "bytes",
                            connection->key, answer.size()));
    return;
  }
  connection->waits_for = FrameKind::kHello;
  Send(connection, answer);
}

void StoreServer::Fail(RankConnection* connection, const std::string& why) {
  connection->closing = true;
  connection->waits_for = FrameKind::kHello;
  Send(connection, FrameWriter(FrameKind::kRefused).Text(why).Take());
}

void StoreServer::AnswerAll() {
  ForEach([&](RankConnection* connection) { TryAnswer(connection, false); });
}

void StoreServer::Tell(const std::string& frame) {
  ForEach([&](RankConnection* connection) {
    if (connection->rank < 0 || connection->closing) return;
    if (connection->pending() > kAnswerLimit + kMostUnreadNotices) {
      Drop(connection);
    } else {
      Send(connection, frame);
    }
  });
}

}  // namespace diapason::rendezvous
