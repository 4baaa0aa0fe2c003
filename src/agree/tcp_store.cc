// Ranks on many hosts agree in a server of diapason's own (cell_server/): `diapason run` and
// `diapason tune` start one, `diapason store` is one.
//
// The job has a nonce there, which the server draws when the first rank opens the job and which
// vanishes with the cells. After a lost connection the client names the nonce that it knows. A
// server that has another one, or none, has lost the cells: the store is lost for ever.
//
// The server acknowledges a write when it is on its disk, so that a server that was restarted with
// its file has everything that any rank was told. In case it was restarted with an older copy of
// its file, every reply has the number of writes that the job has seen: one that is smaller than an
// earlier one means that writes were lost.
//
// One request is on its way at a time; a client that repeats one after a lost connection gets the
// value that stands, whether or not its first attempt arrived.
#include <atomic>

#include "agree/cell_protocol.h"
#include "agree/host_port.h"
#include "agree/link_guard.h"
#include "agree/private_folder.h"
#include "agree/retry.h"
#include "agree/stores.h"
#include "agree/turn.h"
#include "base/environment.h"
#include "base/host_name.h"
#include "base/version.h"
#include "rendezvous/frame_link.h"
#include "rendezvous/secret.h"

namespace diapason::agree {
namespace {

using rendezvous::Frame;
using rendezvous::FrameKind;
using rendezvous::FrameWriter;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Cells = std::vector<std::optional<std::string>>;

constexpr size_t kMostAddresses = 8;
// How long an object that is destroyed tries to say so.
constexpr milliseconds kLeaveLimit{500};

class TcpStore : public CellStore {
 public:
  TcpStore(TcpAddress address, std::string secret, const StoreOptions& options)
      : CellStore(options.limit),
        guest_(options.existing_only),
        job_(options.job),
        address_(std::move(address)),
        secret_(std::move(secret)) {}

  // In a forked child the connection and the job belong to the parent.
  ~TcpStore() override {
    try {
      Leave(steady_clock::now() + kLeaveLimit);
    } catch (...) {  // no memory: the server notices that the client is gone
    }
  }

  Status Open() {
    const Deadline deadline = Usual();
    const Turn::Holder turn(&turn_, deadline);
    // Only the system bounds the time of this step, so it is done once.
    const Result<std::vector<std::string>> found = rendezvous::NumericAddresses(address_.host);
    if (!found.ok()) return IoError(Describe() + ": " + found.status().message());
    addresses_ = found.value();
    if (addresses_.size() > kMostAddresses) addresses_.resize(kMostAddresses);
    // The server may be starting together with the job.
    return RetryUntil(deadline, [&] { return Connected(deadline); });
  }

  using CellStore::Forget;
  using CellStore::Propose;
  using CellStore::Read;
  using CellStore::ReadMany;

  Result<std::string> Propose(std::string_view key, std::string_view value,
                              Deadline deadline) override {
    for (const Status& status : {CheckKey(key), CheckValue(value)}) {
      if (!status.ok()) return status.WithContext(Describe());
    }
    ASSIGN_OR_RETURN(CellReply reply,
                     Run(FrameWriter(FrameKind::kPropose).Text(key).Text(value).Take(), deadline));
    if (reply.cells.size() == 1 && reply.cells[0]) return *std::move(reply.cells[0]);
    return NoSense();
  }

  Result<std::optional<std::string>> Read(std::string_view key, Deadline deadline) override {
    ASSIGN_OR_RETURN(Cells cells, ReadMany({std::string(key)}, deadline));
    return std::move(cells[0]);
  }

  Result<Cells> ReadMany(const std::vector<std::string>& keys, Deadline deadline) override {
    for (const std::string& key : keys) {
      if (Status fine = CheckKey(key); !fine.ok()) return fine.WithContext(Describe());
    }
    Cells cells;
    while (cells.size() < keys.size()) {
      ASSIGN_OR_RETURN(CellReply reply, Run(EncodeReadCells(keys, cells.size()), deadline));
      if (reply.cells.empty() || reply.cells.size() > keys.size() - cells.size()) return NoSense();
      for (std::optional<std::string>& cell : reply.cells) cells.push_back(std::move(cell));
    }
    return cells;
  }

  void Forget(std::string_view prefix, Deadline deadline) override {
    if (!prefix.empty() && !CheckKey(prefix).ok()) return;
    Tell(FrameWriter(FrameKind::kForget).Text(prefix).Take(), Repeat::kOnce, deadline);
  }
  void Done(std::string_view prefix, int members, Deadline deadline) override {
    if (members <= 0 || !CheckKey(prefix).ok()) return;
    Tell(FrameWriter(FrameKind::kDone).Text(prefix).Number(static_cast<uint64_t>(members)).Take(),
         Repeat::kNever, deadline);
  }
  void KeepAlive(Deadline deadline) override {
    Tell(FrameWriter(FrameKind::kKeepAlive).Take(), Repeat::kOnce, deadline);
  }
  void Leave(Deadline deadline) override {
    Tell(FrameWriter(FrameKind::kLeave).Take(), Repeat::kOnce, deadline);
  }

  double Fullness() override { return fullness_.load(); }
  std::string Describe() const override {
    return Format("the store at {}, job {}", TcpUrl(address_), job_);
  }
  bool Mine() const override { return maker_.Here(); }

 private:
  // What a repetition does not change is sent again where the first connection turns out to be
  // broken. No more often: the caller does not depend on it.
  enum class Repeat { kNever, kOnce };
  void Tell(const std::string& frame, Repeat repeat, Deadline deadline) {
    if (guest_ || !maker_.Here()) return;
    const Turn::Holder turn(&turn_, deadline);
    if (!turn.held() || nonce_.empty()) return;
    for (int i = repeat == Repeat::kOnce && link_.open() ? 0 : 1; i < 2; ++i) {
      if (!Connected(deadline).ok() || Ask(frame, deadline).ok()) return;
    }
  }

  Result<CellReply> Run(const std::string& frame, Deadline deadline) {
    if (Status mine = maker_.Check(); !mine.ok()) return mine.WithContext(Describe());
    const Turn::Holder turn(&turn_, deadline);
    if (!turn.held()) {
      return TimedOut(Describe() + ": other threads of this process kept it busy");
    }
    CellReply reply;
    const Status done = RetryUntil(deadline, [&]() -> Status {
      RETURN_IF_ERROR(Connected(deadline));
      ASSIGN_OR_RETURN(reply, Ask(frame, deadline));
      return {};
    });
    if (!done.ok()) return done;
    return reply;
  }

  Status Unreachable(const std::string& why) {
    link_.Close();
    return IoError(Describe() + ": " + why);
  }
  Status WrongSecret() const {
    return Unavailable(Format(
        "{}: its server refused the secret of this process, on {}: it has another one. "
        "DIAPASON_SECRET_FILE (or DIAPASON_SECRET) must be the same for the server and every "
        "rank",
        Describe(), HostName()));
  }
  Status NoSense() const { return Unavailable(Describe() + " gave an answer that makes no sense"); }
  Status Lost(const std::string& why) {
    link_.Close();
    lost_ = Unavailable(Format("{}: {}; what the ranks agreed on is lost", Describe(), why));
    return lost_;
  }

  Status Connected(Deadline deadline) {
    if (!lost_.ok()) return lost_;
    if (link_.open()) return {};
    Status met = Unreachable("its host has no address");
    // No request may be sent to a server that was not recognised.
    LinkGuard guard(&link_);
    for (size_t i = 0; i < addresses_.size(); ++i) {
      // Divides the time, so that an address that does not answer leaves some for the others.
      const auto now = steady_clock::now();
      const auto share = std::max(deadline - now, steady_clock::duration::zero()) /
                         static_cast<int>(addresses_.size() - i);
      met = Meet(addresses_[i], now + share);
      if (met.ok() || !Retryable(met)) break;
    }
    if (met.ok()) guard.Keep();
    return met;
  }

  // Connects, authenticates and opens the job.
  Status Meet(const std::string& numeric, Deadline deadline) {
    if (const Status connected = link_.Connect(numeric, address_.port, deadline); !connected.ok()) {
      return Unreachable(connected.message());
    }
    rendezvous::Hello hello;
    hello.version = kVersion;
    hello.token = job_;
    hello.host = HostName();
    hello.process = static_cast<uint64_t>(::getpid());
    const Result<Frame> verdict =
        link_.Greet(std::move(hello), {secret_, kCellServerName, ""}, deadline, deadline);
    if (!verdict.ok()) {
      // A rank with a wrong secret is told so at once. Once the server was met, a program that
      // cannot prove to be that server says nothing about it.
      if (verdict.status().code() == ErrorCode::kInvalid && nonce_.empty()) return WrongSecret();
      return Unreachable(verdict.status().code() == ErrorCode::kPeerLost
                             ? "it closed the connection: it has another secret, or has just ended"
                             : verdict.status().message());
    }
    if (verdict.value().kind != FrameKind::kFine) {
      return Unavailable(Describe() + ": " + verdict.value().body);
    }
    ASSIGN_OR_RETURN(const CellReply reply,
                     Ask(EncodeOpenJob({client_, guest_, nonce_}), deadline));
    if (!CheckKey(reply.nonce).ok()) return NoSense();
    nonce_ = reply.nonce;
    return {};
  }

  Result<CellReply> Ask(const std::string& frame, Deadline deadline) {
    if (steady_clock::now() >= deadline) return Unreachable("it did not answer in time");
    // A late reply would be taken for that to the next request.
    LinkGuard guard(&link_);
    const Status sent = link_.Send(frame, deadline);
    const Result<Frame> answer = sent.ok() ? link_.Receive(deadline) : Result<Frame>(sent);
    if (!answer.ok()) return Unreachable(answer.status().message());
    guard.Keep();
    CellReply reply;
    if (answer.value().kind != FrameKind::kCells || !ReadCellReply(answer.value().body, &reply)) {
      return Lost("it gave an answer that makes no sense");
    }
    return Judge(std::move(reply));
  }

  Result<CellReply> Judge(CellReply reply) {
    switch (reply.outcome) {
      case CellOutcome::kGone:
        return Lost("the job's nonce is gone or another one: the server was emptied or replaced");
      case CellOutcome::kUnknownJob:
        return NotFound(Describe() + ": no rank agrees there");
      case CellOutcome::kNoRoom:
        return OutOfRoom(Describe() + " is full");
      case CellOutcome::kLater:
        return IoError(Describe() + ": the server cannot write its file now");
      case CellOutcome::kRefused:
        return Unavailable(Describe() + " refused the request");
      case CellOutcome::kFine:
        break;
    }
    if (reply.writes < writes_) {
      return Lost(Format("it has {} writes of this job, and had {}", reply.writes, writes_));
    }
    writes_ = reply.writes;
    fullness_.store(reply.fullness);
    return reply;
  }

  const Maker maker_;
  const bool guest_;
  const std::string job_;
  const TcpAddress address_;
  const std::string secret_;
  const uint64_t client_ = RandomWord();
  std::atomic<double> fullness_{0};
  Turn turn_;  // for all that follows
  std::vector<std::string> addresses_;
  rendezvous::FrameLink link_;
  std::string nonce_;  // of the job; "": it was not opened yet
  uint64_t writes_ = 0;
  Status lost_;
};

}  // namespace

Result<std::unique_ptr<CellStore>> OpenTcpStore(const StoreOptions& options,
                                                const std::string& url) {
  ASSIGN_OR_RETURN(TcpAddress address, ParseTcpAddress(url));
  std::string secret = options.secret;
  if (secret.empty()) {
    ASSIGN_OR_RETURN(secret, rendezvous::ReadSecret(ProcessEnvironment()));
  }
  if (secret.empty()) {
    return Invalid(
        Format("the store at {} needs the job's secret: set DIAPASON_SECRET_FILE on "
               "every rank, or let `diapason run` start the job",
               TcpUrl(address)));
  }
  auto store = std::make_unique<TcpStore>(std::move(address), std::move(secret), options);
  RETURN_IF_ERROR(store->Open());
  return std::unique_ptr<CellStore>(std::move(store));
}

}  // namespace diapason::agree
