// Ranks on many hosts agree in a Redis server. A job has one key there, a hash with the job's nonce
// and all its cells: they exist together or not at all, whether the key was deleted, has expired or
// was evicted. A script sets a cell only if it is empty and the nonce is unchanged since the rank
// joined. So a server that has lost the job's key gives an error, and never an empty cell.
//
// A restarted server may have an older state of the hash, without its newest cells. After a lost
// connection the same server process must answer again, or one that cannot have lost anything: see
// Survived(). A replica that took over may always lack the last writes.
//
// Every key has an expiry: a day, which every write and KeepAlive renew, and an hour once a rank
// has left.
#include <algorithm>

#include "agree/link_guard.h"
#include "agree/private_folder.h"
#include "agree/redis_link.h"
#include "agree/redis_server.h"
#include "agree/retry.h"
#include "agree/stores.h"
#include "agree/turn.h"
#include "base/encoding.h"

namespace diapason::agree {
namespace {

// No cell has this name: cell names never begin with a dot.
constexpr char kNonceField[] = ".nonce";

// KEYS: the job's key. ARGV: the nonce, the cell, the expiry (0: unchanged) and, to propose, a
// value.
constexpr char kCellScript[] =
    "if redis.call('HGET', KEYS[1], '.nonce') ~= ARGV[1] then return {'gone'} end "
    "local value = redis.call('HGET', KEYS[1], ARGV[2]) "
    "if value then return {'stands', value} end "
    "if ARGV[4] == nil then return {'nothing'} end "
    "redis.call('HSET', KEYS[1], ARGV[2], ARGV[4]) "
    "if ARGV[3] ~= '0' then redis.call('EXPIRE', KEYS[1], ARGV[3]) end "
    "return {'stands', ARGV[4]}";
// ARGV: the nonce and cells.
constexpr char kReadScript[] =
    "local nonce = redis.call('HGET', KEYS[1], '.nonce') "
    "if nonce ~= ARGV[1] then return {'gone'} end "
    "return {'cells', redis.call('HMGET', KEYS[1], unpack(ARGV, 2))}";
constexpr size_t kMostCellsAtOnce = 512;
// ARGV: a nonce for a new job, and the expiry. Cells without a nonce belong to no job.
constexpr char kNonceScript[] =
    "local nonce = redis.call('HGET', KEYS[1], '.nonce') "
    "if not nonce then "
    "  if redis.call('EXISTS', KEYS[1]) == 1 then return '' end "
    "  nonce = ARGV[1] "
    "  redis.call('HSET', KEYS[1], '.nonce', nonce) "
    "end "
    "redis.call('EXPIRE', KEYS[1], ARGV[2]) "
    "return nonce";
// ARGV: the nonce and the expiry.
constexpr char kExpiryScript[] =
    "if redis.call('HGET', KEYS[1], '.nonce') ~= ARGV[1] then return 0 end "
    "return redis.call('EXPIRE', KEYS[1], ARGV[2])";
// ARGV: the nonce, and cells; without cells, the whole hash.
constexpr char kForgetScript[] =
    "if redis.call('HGET', KEYS[1], '.nonce') ~= ARGV[1] then return 0 end "
    "if #ARGV == 1 then return redis.call('DEL', KEYS[1]) end "
    "for i = 2, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end "
    "return #ARGV - 1";

constexpr char kDay[] = "86400";
constexpr char kHour[] = "3600";
constexpr char kAsItIs[] = "0";
constexpr int kMostScans = 1000;

using CellValue = std::optional<std::string>;

class RedisStore : public CellStore {
 public:
  RedisStore(RedisAddress address, const StoreOptions& options)
      : CellStore(options.limit),
        guest_(options.existing_only),
        database_(address.database),
        key_(RedisJobKey(options.job)),
        link_(std::move(address)) {}

  Status Open() {
    const Deadline deadline = Usual();
    const Turn::Holder turn(&turn_, deadline);
    RETURN_IF_ERROR(link_.Resolve());
    // The server may be starting together with the job.
    return RetryUntil(deadline, [&] { return Meet(deadline); });
  }

  using CellStore::Forget;
  using CellStore::Propose;
  using CellStore::Read;
  using CellStore::ReadMany;

  Result<std::string> Propose(std::string_view key, std::string_view value,
                              Deadline deadline) override {
    if (Status fine = CheckValue(value); !fine.ok()) return fine.WithContext(Describe());
    ASSIGN_OR_RETURN(CellValue stands, Run(key, &value, deadline));
    if (stands) return *std::move(stands);
    return Unavailable(Describe() + " gave an answer that makes no sense");
  }

  Result<CellValue> Read(std::string_view key, Deadline deadline) override {
    return Run(key, nullptr, deadline);
  }

  Result<std::vector<CellValue>> ReadMany(const std::vector<std::string>& keys,
                                          Deadline deadline) override {
    for (const std::string& key : keys) {
      if (Status fine = CheckKey(key); !fine.ok()) return fine.WithContext(Describe());
    }
    std::vector<CellValue> cells;
    while (cells.size() < keys.size()) {
      RETURN_IF_ERROR(ReadSome(keys, &cells, deadline));
    }
    return cells;
  }

  void Forget(std::string_view prefix, Deadline deadline) override {
    if (guest_ || !maker_.Here()) return;
    if (!prefix.empty() && !CheckKey(prefix).ok()) return;
    const Turn::Holder turn(&turn_, deadline);
    if (!turn.held() || !Connected(deadline).ok()) return;
    last_.NoMoreUnder(prefix);
    if (prefix.empty()) {
      static_cast<void>(Script(kForgetScript, {nonce_}, deadline).ok());
      return;
    }
    // Prefixes contain no character that is special in a pattern.
    const std::string pattern = std::string(prefix) + "*";
    std::string cursor = "0";
    for (int i = 0; i < kMostScans; ++i) {
      const Result<RedisReply> page =
          link_.Command({"HSCAN", key_, cursor, "MATCH", pattern, "COUNT", "1000"}, deadline);
      if (!page.ok() || page.value().list.size() != 2) return;
      std::vector<std::string_view> words = {nonce_};
      const std::vector<RedisReply>& pairs = page.value().list[1].list;
      for (size_t field = 0; field + 1 < pairs.size(); field += 2) {
        words.emplace_back(pairs[field].text);
      }
      if (words.size() > 1 && !Script(kForgetScript, words, deadline).ok()) return;
      cursor = page.value().list[0].text;
      if (cursor == "0") return;
    }
  }

  void Done(std::string_view prefix, int /*members*/, Deadline deadline) override {
    if (!maker_.Here()) return;
    const Turn::Holder turn(&turn_, deadline);
    if (turn.held()) last_.NoMoreUnder(prefix);
  }
  void KeepAlive(Deadline deadline) override { Expire(kDay, deadline); }
  // Ranks that continue renew it.
  void Leave(Deadline deadline) override { Expire(kHour, deadline); }

  double Fullness() override { return 0; }  // a full server refuses with an error
  std::string Describe() const override {
    return Format("Redis at {}, database {}, key {}", link_.name(), database_, key_);
  }
  bool Mine() const override { return maker_.Here(); }

 private:
  // A cell that had a value when this rank last asked.
  struct Seen {
    std::string key;
    uint64_t digest = 0;
    void NoMoreUnder(std::string_view prefix) {
      if (std::string_view(key).starts_with(prefix)) key.clear();
    }
  };

  Result<RedisReply> Script(const char* script, const std::vector<std::string_view>& arguments,
                            Deadline deadline) {
    std::vector<std::string_view> words = {"EVAL", script, "1", key_};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return link_.Command(words, deadline);
  }

  void Expire(const char* seconds, Deadline deadline) {
    if (guest_ || !maker_.Here()) return;
    const Turn::Holder turn(&turn_, deadline);
    if (!turn.held() || !Connected(deadline).ok()) return;
    static_cast<void>(Script(kExpiryScript, {nonce_, seconds}, deadline).ok());
  }

  // OK unless the server is unusable for every purpose.
  Status Usable(const RedisServerFacts& facts) const {
    if (!facts.master) {
      return Unavailable(
          Format("the Redis server at {} is a replica: what ranks write does not stay in it",
                 link_.name()));
    }
    if (facts.evicts.empty()) return {};
    return Unavailable(
        Format("the Redis server at {} may throw away keys when its memory is full "
               "(maxmemory-policy {}); ranks can only agree in one that does not: set "
               "maxmemory-policy noeviction",
               link_.name(), facts.evicts));
  }

  // Identifies the server, checks whether it can be trusted, and gets the job's nonce.
  Status Meet(Deadline deadline) {
    RETURN_IF_ERROR(link_.Connect(deadline));
    ASSIGN_OR_RETURN(const RedisServerFacts facts, AskServer(&link_, deadline));
    RETURN_IF_ERROR(Usable(facts));
    const std::string mine = RandomName();
    ASSIGN_OR_RETURN(const RedisReply nonce,
                     guest_ ? link_.Command({"HGET", key_, kNonceField}, deadline)
                            : Script(kNonceScript, {mine, kDay}, deadline));
    if (guest_ && nonce.kind == RedisReply::Kind::kNothing) {
      return NotFound(Format("{}: no rank agrees there", Describe()));
    }
    if (nonce.kind != RedisReply::Kind::kText || !CheckKey(nonce.text).ok()) {
      return Unavailable(
          Format("{} holds no nonce that a rank has written; remove the key", Describe()));
    }
    nonce_ = nonce.text;
    server_ = facts;
    ASSIGN_OR_RETURN(const RedisReply loaded,
                     link_.Command({"SCRIPT", "LOAD", kCellScript}, deadline));
    script_ = loaded.text;
    return {};
  }

  Status Lost(const std::string& why) {
    lost_ = Unavailable(
        Format("the Redis server at {} was restarted or replaced; what ranks had agreed in it may "
               "be lost ({})",
               link_.name(), why));
    return lost_;
  }

  // OK if a new process of the server cannot have lost anything: every acknowledged write was on
  // its disk, no other server has replaced it, and the cells this rank knows are there.
  Status Survived(const RedisServerFacts& now, Deadline deadline) {
    if (!server_.durable || !now.durable) return Lost("it does not run with appendfsync always");
    // With replicas, it may be a restarted replica: it no longer tells.
    if (server_.replicas || now.replicas)
      return Lost("it has replicas, one of which may be this one");
    if (!server_.NeverTookOver() || !now.NeverTookOver()) return Lost("it was a replica once");
    ASSIGN_OR_RETURN(const RedisReply nonce, link_.Command({"HGET", key_, kNonceField}, deadline));
    if (nonce.text != nonce_) return Lost("the job's nonce is gone or another one");
    if (last_.key.empty()) return {};
    ASSIGN_OR_RETURN(const RedisReply cell, link_.Command({"HGET", key_, last_.key}, deadline));
    if (cell.kind != RedisReply::Kind::kText || Fnv1a64(cell.text) != last_.digest) {
      return Lost(Format("cell '{}' is gone or another one", last_.key));
    }
    return {};
  }

  // OK: the agreed cells are still there.
  Status Recognise(Deadline deadline) {
    ASSIGN_OR_RETURN(const RedisServerFacts now, AskServer(&link_, deadline));
    if (!now.master) return Lost("a replica is in its place");
    RETURN_IF_ERROR(Usable(now));
    if (now.run_id == server_.run_id) {
      // A server that was a replica in between may have lost the last writes.
      const bool same =
          now.second_id == server_.second_id && now.second_offset == server_.second_offset;
      if (same || now.NeverTookOver()) return {};
      return Lost("another server has taken its place in between");
    }
    RETURN_IF_ERROR(Survived(now, deadline));
    server_ = now;
    return {};
  }

  Status Connected(Deadline deadline) {
    if (!lost_.ok()) return lost_;
    if (link_.connected()) return {};
    // No request may be sent to a server that was not recognised.
    LinkGuard guard(&link_);
    RETURN_IF_ERROR(link_.Connect(deadline));
    RETURN_IF_ERROR(Recognise(deadline));
    guard.Keep();
    return {};
  }

  Result<RedisReply> Eval(std::string_view cell, const std::string_view* value, Deadline deadline) {
    std::vector<std::string_view> words = {
        "EVALSHA", script_, "1", key_, nonce_, cell, guest_ ? kAsItIs : kDay};
    if (value != nullptr) words.push_back(*value);
    Result<RedisReply> reply = link_.Ask(words, deadline);
    if (reply.ok() && reply.value().kind == RedisReply::Kind::kError &&
        reply.value().text.compare(0, 8, "NOSCRIPT") == 0) {
      words[0] = "EVAL";
      words[1] = kCellScript;
      reply = link_.Ask(words, deadline);
    }
    return reply;
  }

  Result<CellValue> Run(std::string_view key, const std::string_view* value, Deadline deadline) {
    for (const Status& status : {maker_.Check(), CheckKey(key)}) {
      if (!status.ok()) return status.WithContext(Describe());
    }
    const Turn::Holder turn(&turn_, deadline);
    if (!turn.held()) {
      return TimedOut(Describe() + ": other threads of this process kept it busy");
    }
    CellValue cell;
    // It does not matter whether a proposal arrived before the connection was lost: if it did, it
    // stands, and is the result.
    const Status done = RetryUntil(deadline, [&]() -> Status {
      RETURN_IF_ERROR(Connected(deadline));
      ASSIGN_OR_RETURN(const RedisReply reply, Eval(key, value, deadline));
      ASSIGN_OR_RETURN(cell, Understand(reply));
      return {};
    });
    if (!done.ok()) return done;
    if (cell) last_ = {std::string(key), Fnv1a64(*cell)};
    return cell;
  }

  // Appends the values of the next cells.
  Status ReadSome(const std::vector<std::string>& keys, std::vector<CellValue>* cells,
                  Deadline deadline) {
    if (Status mine = maker_.Check(); !mine.ok()) return mine.WithContext(Describe());
    const size_t count = std::min(keys.size() - cells->size(), kMostCellsAtOnce);
    std::vector<std::string_view> words = {"EVAL", kReadScript, "1", key_, nonce_};
    for (size_t i = 0; i < count; ++i) words.emplace_back(keys[cells->size() + i]);
    const Turn::Holder turn(&turn_, deadline);
    if (!turn.held()) {
      return TimedOut(Describe() + ": other threads of this process kept it busy");
    }
    return RetryUntil(deadline, [&]() -> Status {
      RETURN_IF_ERROR(Connected(deadline));
      ASSIGN_OR_RETURN(const RedisReply reply, link_.Command(words, deadline));
      if (!reply.list.empty() && reply.list[0].text == "gone") return Gone();
      if (reply.list.size() != 2 || reply.list[1].list.size() != count) {
        return Unavailable(Describe() + " gave an answer that makes no sense");
      }
      for (const RedisReply& one : reply.list[1].list) {
        const bool stands = one.kind == RedisReply::Kind::kText;
        cells->push_back(stands ? CellValue(one.text) : CellValue());
      }
      return {};
    });
  }

  Status Gone() const {
    return Unavailable(
        Format("{}: the job's nonce is gone or another one: the server was emptied "
               "while ranks agree in it",
               Describe()));
  }

  Result<CellValue> Understand(const RedisReply& reply) const {
    if (reply.kind == RedisReply::Kind::kError) return link_.Refused("a cell", reply.text);
    const std::string word = reply.list.empty() ? "" : reply.list[0].text;
    if (word == "gone") return Gone();
    if (word == "nothing") return CellValue();
    if (word == "stands" && reply.list.size() == 2 &&
        reply.list[1].kind == RedisReply::Kind::kText &&
        reply.list[1].text.size() <= kLongestValue) {
      return CellValue(reply.list[1].text);
    }
    return Unavailable(Describe() + " gave an answer that makes no sense");
  }

  const Maker maker_;
  const bool guest_;
  const int database_;
  const std::string key_;
  Turn turn_;  // for all that follows
  RedisLink link_;
  std::string nonce_;
  std::string script_;
  RedisServerFacts server_;
  Seen last_;
  Status lost_;
};

}  // namespace

// Braces: in a cluster, they determine the hash slot.
std::string RedisJobKey(const std::string& job) { return "diapason:{" + job + "}"; }

Result<std::unique_ptr<CellStore>> OpenRedisStore(const StoreOptions& options,
                                                  const std::string& url) {
  ASSIGN_OR_RETURN(RedisAddress address, ParseRedisAddress(url));
  RETURN_IF_ERROR(ReadPasswordFile(&address));
  auto store = std::make_unique<RedisStore>(std::move(address), options);
  RETURN_IF_ERROR(store->Open());
  return std::unique_ptr<CellStore>(std::move(store));
}

}  // namespace diapason::agree
