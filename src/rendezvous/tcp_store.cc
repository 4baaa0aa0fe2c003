#include "rendezvous/tcp_store.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/host_name.h"
#include "base/text.h"
#include "base/version.h"

namespace diapason::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The store replies to a waiting request after this time at the latest, and is asked again: other
// threads can send in between.
constexpr milliseconds kTurn{100};
constexpr milliseconds kLongestTurn{1000};
// A mutex is not fair: without this, a waiting thread would take it again before the others wake
// up.
constexpr milliseconds kPause{1};
// What rank 0 may take to reply beyond the requested wait.
constexpr milliseconds kPatience{10000};
// And beyond the caller's own deadline.
constexpr milliseconds kLastPatience{1000};
// What it may take to admit this rank: thousands may come at once.
constexpr milliseconds kAdmission{60000};
constexpr milliseconds kRetry{50};

// How long rank 0 may keep a request of a rank among so many: an answer names all of them, and
// rank 0 answers each rank once in this time.
milliseconds TurnOf(size_t ranks, Deadline deadline) {
  const milliseconds turn =
      std::clamp(milliseconds(static_cast<int64_t>(ranks)), kTurn, kLongestTurn);
  return std::min(turn, milliseconds(MillisecondsTo(deadline)));
}

// The deadline for a reply to a request that may wait for `turn`.
Deadline AnswerBy(milliseconds turn, Deadline deadline) {
  return std::min(steady_clock::now() + turn + kPatience, deadline + kLastPatience);
}

Result<Socket> ListenOnOneOf(const StoreAddress& address, int* port) {
  Status last = Unavailable("no port");
  for (int i = 0; i < address.ports; ++i) {
    *port = address.port + i;
    Result<Socket> socket = ListenOn(address.host, *port);
    if (socket.ok() || socket.status().code() != ErrorCode::kUnavailable) return socket;
    last = socket.status();
  }
  return Unavailable(
      last.message() +
      ". Another program, or another group of this one, uses it: set MASTER_PORT to a free port");
}

}  // namespace

Result<std::unique_ptr<TcpStore>> TcpStore::Join(const StoreAddress& address, int rank, int size,
                                                 Deadline deadline) {
  std::unique_ptr<TcpStore> store(new TcpStore(rank, size));
  int first = address.port;
  int last = address.port + address.ports - 1;
  if (rank == 0) {
    RETURN_IF_ERROR(store->Serve(address, &first));
    last = first;
  }
  Status status = TimedOut("no answer in time");
  Status said;  // the last message of a store, which says more than a closed connection
  do {
    for (int port = first; port <= last; ++port) {
      bool again = false;
      // A silent listener must not use up the time of the other ports.
      const Deadline now = steady_clock::now();
      const Deadline attempt =
          std::min(deadline, now + (last > first ? milliseconds(2000) : kPatience));
      status = store->Greet(address, port, attempt, std::min(deadline, now + kAdmission), &again);
      if (status.ok()) return store;
      const bool silent = status.code() == ErrorCode::kTimeout && !said.ok();
      if (store->link_.open() && !silent) said = status;
      store->link_.Close();
      if (!again) return status;
    }
    std::this_thread::sleep_for(std::min<steady_clock::duration>(
        kRetry, std::max(deadline - steady_clock::now(), steady_clock::duration::zero())));
  } while (steady_clock::now() < deadline);
  return TimedOut(
      Format("rank 0 has not arrived: rank {} found no store of this job at {} port {} "
             "({}). Is rank 0 running, and are MASTER_ADDR and MASTER_PORT the same on "
             "every rank?",
             rank, address.host, address.port, (said.ok() ? status : said).message()));
}

Status TcpStore::Serve(const StoreAddress& address, int* port) {
  ASSIGN_OR_RETURN(Socket listener, ListenOnOneOf(address, port));
  StoreServerOptions options;
  options.size = size_;
  options.token = address.token;
  options.secret = address.secret;
  options.address = StoreName(address.host, *port);
  options.log = address.log;
  server_ = std::make_unique<StoreServer>(std::move(listener), std::move(options));
  return {};
}

Status TcpStore::Greet(const StoreAddress& address, int port, Deadline deadline, Deadline reply_by,
                       bool* again) {
  *again = true;
  if (const Status connected = link_.Connect(address.host, port, deadline); !connected.ok()) {
    *again = connected.code() != ErrorCode::kNotFound;
    return connected;
  }
  local_address_ = LocalAddress(link_.socket());
  Hello hello;
  hello.version = kVersion;
  hello.token = address.token;
  hello.rank = static_cast<uint64_t>(rank_);
  hello.size = static_cast<uint64_t>(size_);
  hello.host = HostName();
  hello.process = static_cast<uint64_t>(getpid());
  const Result<Frame> verdict = link_.Greet(
      std::move(hello), {address.secret, StoreName(address.host, port), ""}, deadline, reply_by);
  if (!verdict.ok()) {
    return verdict.status().code() == ErrorCode::kPeerLost && !address.secret.empty()
               ? Unavailable(
                     "the store there closed the connection: it has another secret, or "
                     "another MASTER_ADDR")
               : verdict.status();
  }
  if (verdict.value().kind == FrameKind::kFine) return {};
  if (verdict.value().kind == FrameKind::kLater) {
    return Unavailable("an earlier group of this job still holds the port");
  }
  const std::string& text = verdict.value().body;
  *again = address.ports > 1 && text.find("another job") != std::string::npos;
  return Invalid(text);
}

TcpStore::~TcpStore() {
  const std::lock_guard lock(mutex_);
  if (link_.open()) {
    const Status sent = link_.Send(FrameWriter(FrameKind::kGoodbye).Take(),
                                   steady_clock::now() + milliseconds(1000));
    static_cast<void>(sent);  // a lost peer needs no goodbye
  }
  link_.Close();
}

Status TcpStore::Unreachable(const Status& status) {
  if (rank_0_left_) return PeerLost("rank 0, which keeps the store, has left the group");
  if (status.code() == ErrorCode::kPeerLost) {
    lost_.insert(0);
    return PeerLost("rank 0, which keeps the store, has ended");
  }
  return status.WithContext("rank 0's store does not answer");
}

bool TcpStore::NoteNotice(FrameKind kind, const std::string& body) {
  FrameReader reader(body);
  if (kind == FrameKind::kLostNotice) {
    lost_.insert(static_cast<int>(reader.Number()));
  } else if (kind == FrameKind::kGaveUpNotice) {
    const int rank = static_cast<int>(reader.Number());
    gave_up_.emplace(std::string(reader.Text()), rank);
  } else if (kind == FrameKind::kGoodbyeNotice) {
    rank_0_left_ = true;
  } else {
    return false;
  }
  return true;
}

Result<TcpStore::Reply> TcpStore::ReadAnswer(Deadline deadline) {
  for (;;) {
    ASSIGN_OR_RETURN(Reply reply, link_.Receive(deadline));
    if (!NoteNotice(reply.kind, reply.body)) return reply;
  }
}

Result<TcpStore::Reply> TcpStore::Ask(const std::string& frame, Deadline deadline) {
  if (!link_.open()) return Unreachable(PeerLost(""));
  const Status sent = link_.Send(frame, deadline);
  Result<Reply> reply = sent.ok() ? ReadAnswer(deadline) : Result<Reply>(sent);
  if (!reply.ok()) {
    // A late reply would be taken for that to the next request.
    link_.Close();
    return Unreachable(reply.status());
  }
  if (reply.value().kind == FrameKind::kRefused) {
    return Invalid(std::string(FrameReader(reply.value().body).Text()));
  }
  return reply;
}

Status TcpStore::Set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  return Ask(FrameWriter(FrameKind::kSet).Text(key).Text(value).Take(),
             steady_clock::now() + kPatience)
      .status();
}

Result<std::string> TcpStore::Get(const std::string& key, Deadline deadline) {
  for (;;) {
    const milliseconds turn = TurnOf(static_cast<size_t>(size_), deadline);
    {
      const std::lock_guard lock(mutex_);
      ASSIGN_OR_RETURN(const Reply reply, Ask(FrameWriter(FrameKind::kGet)
                                                  .Text(key)
                                                  .Number(static_cast<uint64_t>(turn.count()))
                                                  .Take(),
                                              AnswerBy(turn, deadline)));
      if (reply.kind == FrameKind::kFine) {
        return std::string(FrameReader(reply.body).Text());
      }
    }
    if (steady_clock::now() >= deadline) return TimedOut("no rank has set '" + key + "'");
    std::this_thread::sleep_for(kPause);
  }
}

Result<std::vector<RankAnswer>> TcpStore::Collect(const std::string& key,
                                                  const std::vector<int>& members,
                                                  const std::string& value, bool until_loss,
                                                  Deadline deadline) {
  bool first = true;
  std::vector<RankAnswer> last;
  for (;;) {
    const milliseconds turn = TurnOf(members.size(), deadline);
    std::vector<RankAnswer> answers(members.size());
    {
      const std::lock_guard lock(mutex_);
      const Result<Reply> reply = Ask(FrameWriter(FrameKind::kCollect)
                                          .Text(key)
                                          .Ranks(members)
                                          .Number(first ? 1 : 0)
                                          .Text(first ? value : "")
                                          .Number(until_loss ? 1 : 0)
                                          .Number(static_cast<uint64_t>(turn.count()))
                                          .Take(),
                                      AnswerBy(turn, deadline));
      if (!reply.ok() && rank_0_left_ && !last.empty()) return last;
      if (!reply.ok()) return reply.status();
      FrameReader reader(reply.value().body);
      const uint64_t count = reader.Number();
      for (RankAnswer& answer : answers) {
        answer.state = static_cast<RankAnswer::State>(reader.Number());
        answer.value = reader.Text();
        answer.who = reader.Text();
      }
      if (!reader.ok() || count != members.size()) {
        return Internal("rank 0's store sent an answer to another question");
      }
    }
    first = false;
    bool missing = false;
    bool gone = false;
    for (const RankAnswer& answer : answers) {
      missing = missing || answer.state == RankAnswer::State::kMissing;
      gone = gone || answer.state == RankAnswer::State::kLost ||
             answer.state == RankAnswer::State::kLeft;
    }
    if (!missing || (gone && until_loss) || steady_clock::now() >= deadline) return answers;
    last = std::move(answers);
    std::this_thread::sleep_for(kPause);
  }
}

std::vector<int> TcpStore::Lost(const std::string& group) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return {};  // another thread is asking, and processes the notices
  if (link_.open()) {
    const Status got = link_.ReadArrived();
    Reply reply;
    bool damaged = false;
    while (link_.Take(&reply, &damaged)) NoteNotice(reply.kind, reply.body);
    if (!got.ok() && got.code() == ErrorCode::kPeerLost) {
      link_.Close();
      if (!rank_0_left_) lost_.insert(0);
    }
  }
  std::set<int> lost = lost_;
  for (const auto& [name, rank] : gave_up_) {
    if (name == group && rank != rank_) lost.insert(rank);
  }
  return {lost.begin(), lost.end()};
}

void TcpStore::GiveUp(const std::string& group) {
  const std::lock_guard lock(mutex_);
  if (!link_.open()) return;
  const Status sent = link_.Send(FrameWriter(FrameKind::kGiveUp).Text(group).Take(),
                                 steady_clock::now() + milliseconds(1000));
  static_cast<void>(sent);  // a rank that cannot be told will notice by itself
}

}  // namespace diapason::rendezvous
