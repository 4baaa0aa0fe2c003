#include "cell_server/cell_server.h"

#include <algorithm>

#include "agree/private_folder.h"
#include "agree/store.h"
#include "base/text.h"
#include "base/version.h"

namespace diapason::cell_server {
namespace {

using agree::CellOutcome;
using agree::CellReply;
using rendezvous::FrameKind;
using rendezvous::FrameReader;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kRemovalEvery{10};
// A reply to kRead ends behind the value that makes it longer than this.
constexpr size_t kMostValues = size_t{4} << 20U;
// Requests wait for the file when this much is not written yet.
constexpr size_t kMostUnwritten = kMostBatch / 2;
// Communicators of a job that some of its ranks have finished; the others keep their cells.
constexpr size_t kMostDone = 100000;
// The file is rewritten when it is larger than twice what is alive, and this.
constexpr uint64_t kLeastRewritten = uint64_t{16} << 20U;

rendezvous::FrameServerOptions ConnectionOptions(const CellServerOptions& options) {
  rendezvous::FrameServerOptions wanted;
  wanted.secret = options.secret;
  wanted.address = agree::kCellServerName;
  wanted.hello_limit = options.hello_limit;
  wanted.connections = options.connections;
  wanted.who = "store";
  wanted.unproven = "its secret is another one than that of this store";
  wanted.tell_unproven = true;
  wanted.log = options.log;
  return wanted;
}

}  // namespace

CellServer::CellServer(rendezvous::Socket listener, CellServerOptions options)
    : FrameServer(std::move(listener), ConnectionOptions(options)), options_(std::move(options)) {}

Result<std::unique_ptr<CellServer>> CellServer::Open(rendezvous::Socket listener,
                                                     CellServerOptions options) {
  if (options.secret.empty()) return Invalid("a store's server needs a secret");
  std::unique_ptr<CellServer> server(new CellServer(std::move(listener), std::move(options)));
  RETURN_IF_ERROR(server->Load());
  return server;
}

Status CellServer::Load() {
  table_ = CellTable();
  log_.reset();  // releases its lock
  if (options_.file.empty()) return {};
  Result<CellLog> log = CellLog::Open(
      options_.file, [this](std::string_view record) { return table_.Apply(record); });
  if (!log.ok()) return log.status();
  log_ = std::move(log).value();
  return {};
}

Status CellServer::Run() {
  RETURN_IF_ERROR(Serve());
  return failed_;
}

void CellServer::Hear(Connection* connection, const rendezvous::Hello& hello) {
  if (hello.version != kVersion) {
    Judge(connection, FrameKind::kRefused,
          Format("the server runs diapason {}, and this rank another version", kVersion), hello);
    return;
  }
  if (!agree::CheckJob(hello.token).ok()) {
    Judge(connection, FrameKind::kRefused, "a job cannot have this name", hello);
    return;
  }
  static_cast<Client*>(connection)->job = hello.token;
  Judge(connection, FrameKind::kFine, "", hello);
}

bool CellServer::Ready(const Connection& connection) const {
  if (static_cast<const Client&>(connection).answered) return false;
  if (log_ && log_->buffered() > kMostUnwritten) return false;
  return FrameServer::Ready(connection);
}

void CellServer::Handle(Connection* connection, FrameKind kind, const std::string& body) {
  auto* const client = static_cast<Client*>(connection);
  ++requests_;
  client->reply = CellReply();
  if (!Answer(client, kind, body)) {
    TurnAway(client, "it sends what no client sends");
    return;
  }
  client->answered = true;
  answered_.push_back(client);
  if (log_ && log_->buffered() > kMostUnwritten) stopped_taking_ = true;
}

bool CellServer::Answer(Client* client, FrameKind kind, const std::string& body) {
  if (kind == FrameKind::kOpenJob) return OpenJob(client, body);
  if (client->nonce_of_job.empty()) return false;
  CellJob* const job = JobOf(*client);
  if (job == nullptr) {
    client->reply.outcome = CellOutcome::kGone;
    return true;
  }
  job->used = steady_clock::now();
  switch (kind) {
    case FrameKind::kPropose:
      return Propose(client, job, body);
    case FrameKind::kRead:
      return Read(client, job, body);
    case FrameKind::kForget:
    case FrameKind::kDone:
      if (client->guest) break;
      if (kind == FrameKind::kDone) return Done(client, job, body);
      {
        FrameReader reader(body);
        const std::string_view prefix = reader.Text();
        if (!reader.ok()) return false;
        Change(ForgetRecord(client->job, prefix));
      }
      return true;
    case FrameKind::kKeepAlive:
      return true;
    case FrameKind::kLeave:
      if (client->guest) break;
      Leave(client);
      return true;
    default:
      return false;
  }
  client->reply.outcome = CellOutcome::kRefused;
  return true;
}

CellJob* CellServer::JobOf(const Client& client) {
  CellJob* const job = client.nonce_of_job.empty() ? nullptr : table_.Find(client.job);
  return job != nullptr && job->nonce == client.nonce_of_job ? job : nullptr;
}

bool CellServer::OpenJob(Client* client, const std::string& body) {
  agree::OpenJobRequest request;
  if (!agree::ReadOpenJob(body, &request) || !client->nonce_of_job.empty()) return false;
  CellJob* job = table_.Find(client->job);
  if (!request.nonce.empty() && (job == nullptr || job->nonce != request.nonce)) {
    client->reply.outcome = CellOutcome::kGone;
    return true;
  }
  if (job == nullptr && request.guest) {
    client->reply.outcome = CellOutcome::kUnknownJob;
    return true;
  }
  if (job == nullptr) {
    if (table_.jobs().size() >= options_.jobs || table_.bytes() >= options_.stored) {
      client->reply.outcome = CellOutcome::kNoRoom;
      return true;
    }
    Change(JobRecord(client->job, agree::RandomName() + agree::RandomName(), 0));
    job = table_.Find(client->job);
  }
  client->guest = request.guest;
  client->id = request.client;
  client->nonce_of_job = job->nonce;
  if (!request.guest && !job->members.contains(request.client)) {
    Change(MemberRecord(client->job, request.client));
  }
  ++job->connections;
  job->used = steady_clock::now();
  client->reply.nonce = job->nonce;
  return true;
}

bool CellServer::Propose(Client* client, CellJob* job, const std::string& body) {
  FrameReader reader(body);
  const std::string key(reader.Text());
  const std::string_view value = reader.Text();
  if (!reader.ok()) return false;
  if (const auto stands = job->cells.find(key); stands != job->cells.end()) {
    client->reply.cells.emplace_back(stands->second);
  } else if (!agree::CheckKey(key).ok() || !agree::CheckValue(value).ok()) {
    client->reply.outcome = CellOutcome::kRefused;
  } else if (table_.bytes() + CellTable::CellBytes(key, value) > options_.stored) {
    client->reply.outcome = CellOutcome::kNoRoom;
  } else {
    Change(CellRecord(client->job, key, value));
    client->reply.cells.emplace_back(value);
  }
  return true;
}

bool CellServer::Read(Client* client, CellJob* job, const std::string& body) {
  std::vector<std::string> keys;
  if (!agree::ReadReadCells(body, &keys)) return false;
  size_t bytes = 0;
  for (const std::string& key : keys) {
    if (bytes > kMostValues) break;
    const auto stands = job->cells.find(key);
    if (stands == job->cells.end()) {
      client->reply.cells.emplace_back();
    } else {
      client->reply.cells.emplace_back(stands->second);
      bytes += stands->second.size();
    }
  }
  return true;
}

// The cells of a communicator are removed when all of its ranks have said that they are done.
bool CellServer::Done(Client* client, CellJob* job, const std::string& body) {
  FrameReader reader(body);
  const std::string prefix(reader.Text());
  const uint64_t members = reader.Number();
  if (!reader.ok() || !agree::CheckKey(prefix).ok()) return false;
  if (!job->done.contains(prefix) && job->done.size() >= kMostDone) return true;
  if (++job->done[prefix] < members) return true;
  job->done.erase(prefix);
  Change(ForgetRecord(client->job, prefix));
  return true;
}

void CellServer::Leave(Client* client) {
  Change(LeftRecord(client->job, client->id));
  if (table_.Find(client->job)->members.empty()) Change(RemoveRecord(client->job));
}

void CellServer::Closed(Connection* connection) {
  auto* const client = static_cast<Client*>(connection);
  if (CellJob* const job = JobOf(*client); job != nullptr && job->connections > 0) {
    --job->connections;
    job->used = steady_clock::now();
  }
  client->nonce_of_job.clear();
}

void CellServer::Change(const std::string& record) {
  // Made by this class, and checked before.
  static_cast<void>(table_.Apply(record).ok());
  if (log_) log_->Append(record);
}

// False: the changes of this round are undone.
bool CellServer::Commit() {
  if (!log_) return true;
  const Status done = log_->Commit();
  if (done.ok()) return true;
  if (options_.log) options_.log("diapason: store: " + done.message());
  if (done.code() == ErrorCode::kInternal) {
    failed_ = done;
  } else {
    Undo();
  }
  return false;
}

// The table as the file has it.
void CellServer::Undo() {
  failed_ = Load();
  if (!failed_.ok()) return;
  for (const auto& [fd, connection] : connections()) {
    auto* const client = static_cast<Client*>(connection.get());
    if (CellJob* const job = JobOf(*client); job != nullptr && client->socket.open()) {
      ++job->connections;
    }
  }
}

void CellServer::SendReplies() {
  std::vector<Client*> ready;
  ready.swap(answered_);
  const double fullness =
      std::min(1.0, static_cast<double>(table_.bytes()) / static_cast<double>(options_.stored));
  for (Client* const client : ready) {
    client->answered = false;
    if (!client->socket.open()) continue;
    if (const CellJob* const job = JobOf(*client)) client->reply.writes = job->writes;
    client->reply.fullness = fullness;
    Send(client, agree::EncodeCellReply(client->reply));
    client->reply = CellReply();
  }
  // A request may be here already that came behind the answered one.
  for (Client* const client : ready) TakeFrames(client);
  if (!std::exchange(stopped_taking_, false)) return;
  for (const auto& [fd, connection] : connections()) TakeFrames(connection.get());
}

Deadline CellServer::EndRound(Deadline now) {
  if (now >= next_removal_) {
    next_removal_ = now + kRemovalEvery;
    RemoveUnused(now);
  }
  if (!Commit()) {
    if (!failed_.ok()) {
      // What a client was not told, it cannot rely on.
      Stop();
      return now;
    }
    for (Client* const client : answered_) {
      client->reply = CellReply();
      client->reply.outcome = CellOutcome::kLater;
    }
  }
  SendReplies();
  if (log_) RewriteIfLarge();
  return answered_.empty() ? next_removal_ : now;
}

void CellServer::RemoveUnused(Deadline now) {
  std::vector<std::string> unused;
  for (const auto& [name, job] : table_.jobs()) {
    const seconds limit = job.left ? options_.unused_after_leave : options_.unused;
    if (job.connections == 0 && now - job.used >= limit) unused.push_back(name);
  }
  for (const std::string& name : unused) Change(RemoveRecord(name));
}

void CellServer::RewriteIfLarge() {
  // What this round has begun is not in the file yet.
  if (!answered_.empty() || log_->size() < 2 * table_.bytes() + kLeastRewritten) return;
  const Status done = log_->Rewrite([this](const auto& add) { table_.Snapshot(add); });
  if (done.ok()) return;
  if (options_.log) options_.log("diapason: store: " + done.message());
  if (done.code() != ErrorCode::kInternal) return;
  failed_ = done;
  Stop();
}

}  // namespace diapason::cell_server
