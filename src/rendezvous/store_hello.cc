// Which processes may join: the part of StoreServer that handles new connections.
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "base/version.h"
#include "rendezvous/peer_user.h"
#include "rendezvous/store_server.h"

namespace diapason::rendezvous {
namespace {

constexpr size_t kLongestWord = 64;

// A word of an unauthenticated process, safe for a message.
std::string Printable(const std::string& word) {
  std::string text = word.substr(0, kLongestWord);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

std::string Newcomer(const Hello& hello) {
  return Format("rank {} (host {}, process {})", hello.rank, Printable(hello.host), hello.process);
}

// Certainly another user of this host. Root may act for any user, and does not count.
bool IsAnotherUsers(const Socket& socket) {
  const std::optional<uid_t> user = PeerUser(socket);
  return user.has_value() && *user != ::geteuid() && *user != 0;
}

}  // namespace

std::string StoreServer::Who(int rank) const {
  const Rank& one = ranks_[static_cast<size_t>(rank)];
  if (one.state != Rank::State::kAbsent) {
    return Format("rank {} (host {}, process {})", rank, one.host, one.process);
  }
  if (one.refused.empty()) return Format("rank {}", rank);
  return Format("rank {} (turned away: {})", rank, one.refused);
}

std::string StoreServer::WhyNot(const Hello& hello) const {
  const std::string newcomer = Newcomer(hello);
  const auto ranks = static_cast<uint64_t>(size_);
  if (hello.version != kVersion) {
    return Format("{} runs diapason {} and rank 0 {}", newcomer, Printable(hello.version),
                  kVersion);
  }
  if (hello.size != ranks) {
    return Format("{} was started for {} ranks and rank 0 for {}", newcomer, hello.size, size_);
  }
  if (hello.rank >= ranks) {
    return Format("{} does not exist among {} ranks", newcomer, size_);
  }
  if (ranks_[hello.rank].state != Rank::State::kPresent) return "";
  const int rank = static_cast<int>(hello.rank);
  return Format("rank {} was started twice: {} and {}", rank, Who(rank), newcomer);
}

void StoreServer::Hear(Connection* connection, const Hello& hello) {
  if (options_.secret.empty() && IsAnotherUsers(connection->socket)) {
    TurnAway(connection, "it belongs to another user of this host");
    return;
  }
  if (hello.token != options_.token) {
    Judge(connection, FrameKind::kRefused,
          "another job listens on this port: set MASTER_PORT to a free one", hello);
    return;
  }
  const std::string why = WhyNot(hello);
  if (!why.empty()) {
    Refuse(static_cast<RankConnection*>(connection), hello, why);
    return;
  }
  const Rank::State state = ranks_[hello.rank].state;
  if (state == Rank::State::kLeft || state == Rank::State::kLost) {
    // This group is over for that rank: it waits for the next one on this port.
    Judge(connection, FrameKind::kLater, "", hello);
    return;
  }
  Admit(static_cast<RankConnection*>(connection), hello);
}

void StoreServer::Refuse(RankConnection* connection, const Hello& hello, const std::string& why) {
  NoteTurnedAway(*connection, why);
  if (hello.rank < ranks_.size()) ranks_[hello.rank].refused = why;
  Judge(connection, FrameKind::kRefused, why, hello);
  // While ranks are still joining, a rank that does not fit means that the job was started wrongly;
  // but only if it knows the secret. Without a secret any process can claim to be a rank.
  if (arrived_ == size_ || options_.secret.empty()) return;
  fatal_ = why;
  AnswerAll();
}

void StoreServer::Admit(RankConnection* connection, const Hello& hello) {
  connection->rank = static_cast<int>(hello.rank);
  ranks_[hello.rank] = {Rank::State::kPresent, Printable(hello.host), hello.process, ""};
  ++arrived_;
  Judge(connection, FrameKind::kFine, "", hello);
}

}  // namespace diapason::rendezvous
