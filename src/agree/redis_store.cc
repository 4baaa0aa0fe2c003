// Ranks on many hosts agree in a Redis server. A cell is a key that one script sets if nobody has,
// and only while the job's nonce still is what it was when the rank came: a server that was flushed
// has neither. A server that was restarted may have the nonce and yet lack newer cells, as it
// restores a snapshot: so after a lost connection the same server process must be there again.
// Cells have no expiry while the job lives, and a server that may throw away keys without one is
// refused.
//
// A group of servers with failover is no such store: the one that takes over may lack what was
// written last. It is another process, which is noticed.
#include <algorithm>
#include <mutex>
#include <thread>

#include "agree/private_folder.h"
#include "agree/redis_link.h"
#include "agree/stores.h"

namespace diapason::agree {
namespace {

using std::chrono::steady_clock;

// KEYS: the nonce's and the cell's. ARGV: our nonce and, to propose, a value.
constexpr char kCellScript[] =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'gone'} end "
    "local value = redis.call('GET', KEYS[2]) "
    "if value then return {'stands', value} end "
    "if ARGV[2] == nil then return {'nothing'} end "
    "redis.call('SET', KEYS[2], ARGV[2]) "
    "return {'stands', ARGV[2]}";
// A nonce that is about to expire is that of a job that was forgotten.
constexpr char kNonceScript[] =
    "local value = redis.call('GET', KEYS[1]) "
    "if value and redis.call('PTTL', KEYS[1]) == -1 then return value end "
    "redis.call('SET', KEYS[1], ARGV[1]) "
    "return ARGV[1]";

// What is forgotten stays for an hour, for whoever wants to look; the nonce goes first.
constexpr char kCellExpiry[] = "3600";
constexpr char kNonceExpiry[] = "3000";
constexpr int kMostScans = 1000;
constexpr std::chrono::microseconds kFirstPause(500);
constexpr std::chrono::microseconds kLongestPause(100000);

// The value after "name:" in what INFO answers.
std::string InfoValue(const std::string& info, const std::string& name) {
  for (const std::string_view line : Split(info, '\n')) {
    if (line.compare(0, name.size(), name) == 0 && line.size() > name.size() &&
        line[name.size()] == ':') {
      return std::string(Trim(line.substr(name.size() + 1)));
    }
  }
  return "";
}

class RedisStore : public Store {
 public:
  RedisStore(RedisAddress address, const StoreOptions& options)
      : Store(options.limit),
        database_(address.database),
        // Braces: all keys of a job are in one part of a cluster.
        keys_("diapason:{" + options.job + "}:"),
        link_(std::move(address)) {}

  Status Open() {
    const std::lock_guard lock(mutex_);
    if (Status found = link_.Resolve(); !found.ok()) return found;
    const Deadline deadline = Usual();
    // The server may be about to start with the job.
    return Patiently(deadline, [&] { return Meet(deadline); });
  }

  using Store::Forget;
  using Store::Propose;
  using Store::Read;

  Result<std::string> Propose(std::string_view key, std::string_view value,
                              Deadline deadline) override {
    if (Status fine = CheckValue(value); !fine.ok()) return fine.WithContext(Describe());
    Result<std::optional<std::string>> stands = Run(key, &value, deadline);
    if (!stands.ok()) return stands.status();
    if (stands.value()) return *std::move(stands).value();
    return Unavailable(Describe() + " gave an answer that makes no sense");
  }

  Result<std::optional<std::string>> Read(std::string_view key, Deadline deadline) override {
    return Run(key, nullptr, deadline);
  }

  void Forget(std::string_view prefix, Deadline deadline) override {
    if (!maker_.Here()) return;
    if (!prefix.empty() && !CheckKey(prefix).ok()) return;
    const std::lock_guard lock(mutex_);
    if (prefix.empty() && !Try({"EXPIRE", keys_ + "nonce", kNonceExpiry}, deadline).ok()) return;
    // Keys hold no letter that a pattern would take for more than itself, but the job's braces,
    // which mean nothing in one.
    const std::string pattern = keys_ + nonce_ + ":" + std::string(prefix) + "*";
    std::string cursor = "0";
    for (int i = 0; i < kMostScans; ++i) {
      const Result<RedisReply> page =
          Try({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}, deadline);
      if (!page.ok() || page.value().list.size() != 2) return;
      for (const RedisReply& key : page.value().list[1].list) {
        if (!Try({"EXPIRE", key.text, kCellExpiry}, deadline).ok()) return;
      }
      cursor = page.value().list[0].text;
      if (cursor == "0") return;
    }
  }

  double Fullness() override { return 0; }  // a full server refuses, which is an error
  std::string Describe() const override {
    return Format("Redis at %s, database %d, keys %s*", link_.name().c_str(), database_,
                  keys_.c_str());
  }
  bool Mine() const override { return maker_.Here(); }

 private:
  // Again after a lost connection, as long as there is time.
  template <typename Step>
  static Status Patiently(Deadline deadline, const Step& step) {
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      const Status done = step();
      if (done.ok() || done.code() != ErrorCode::kIo || steady_clock::now() + pause >= deadline) {
        return done;
      }
      std::this_thread::sleep_for(pause);
    }
  }

  // Finds out who the server is, whether it can be trusted, and which nonce the job has.
  Status Meet(Deadline deadline) {
    if (Status connected = link_.Connect(deadline); !connected.ok()) return connected;
    const Result<std::string> server = Info("server", "run_id", deadline);
    if (!server.ok()) return server.status();
    run_id_ = server.value();
    const Result<std::string> most = Info("memory", "maxmemory", deadline);
    if (!most.ok()) return most.status();
    const Result<std::string> policy = Info("memory", "maxmemory_policy", deadline);
    if (!policy.ok()) return policy.status();
    if (most.value() != "0" && policy.value().compare(0, 8, "allkeys-") == 0) {
      return Unavailable(
          Format("the Redis server at %s may throw away keys when its memory is full "
                 "(maxmemory-policy %s); ranks can only agree in one that does not: set "
                 "maxmemory-policy noeviction",
                 link_.name().c_str(), policy.value().c_str()));
    }
    const Result<RedisReply> nonce =
        link_.Command({"EVAL", kNonceScript, "1", keys_ + "nonce", RandomName()}, deadline);
    if (!nonce.ok()) return nonce.status();
    if (nonce.value().kind != RedisReply::Kind::kText || !CheckKey(nonce.value().text).ok()) {
      return Unavailable(
          Format("%s holds a nonce that no rank has written; remove the key '%snonce'",
                 Describe().c_str(), keys_.c_str()));
    }
    nonce_ = nonce.value().text;
    const Result<RedisReply> loaded = link_.Command({"SCRIPT", "LOAD", kCellScript}, deadline);
    if (!loaded.ok()) return loaded.status();
    script_ = loaded.value().text;
    return {};
  }

  Result<RedisReply> Try(const std::vector<std::string>& words, Deadline deadline) {
    return link_.Command({words.begin(), words.end()}, deadline);
  }

  Result<std::string> Info(const char* section, const char* name, Deadline deadline) {
    const Result<RedisReply> info = link_.Command({"INFO", section}, deadline);
    if (!info.ok()) return info.status();
    std::string value = InfoValue(info.value().text, name);
    if (!value.empty()) return value;
    return Unavailable(
        Format("the Redis server at %s does not tell its %s; ranks cannot know "
               "whether it keeps what they write",
               link_.name().c_str(), name));
  }

  // The same server process, after a connection was lost.
  Status Reconnect(Deadline deadline) {
    if (Status connected = link_.Connect(deadline); !connected.ok()) return connected;
    const Result<std::string> server = Info("server", "run_id", deadline);
    if (server.ok() && server.value() == run_id_) return {};
    // Nobody may ask on a connection whose other end is not known.
    link_.Close();
    if (!server.ok()) return server.status();
    replaced_ = true;
    return Replaced();
  }

  Status Replaced() const {
    return Unavailable(
        Format("the Redis server at %s was restarted or replaced; what ranks had "
               "agreed in it may be lost",
               link_.name().c_str()));
  }

  Result<RedisReply> Eval(const std::string& cell, const std::string_view* value,
                          Deadline deadline) {
    const std::string nonce_key = keys_ + "nonce";
    std::vector<std::string_view> words = {"EVALSHA", script_, "2", nonce_key, cell, nonce_};
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

  Result<std::optional<std::string>> Run(std::string_view key, const std::string_view* value,
                                         Deadline deadline) {
    for (const Status& status : {maker_.Check(), CheckKey(key)}) {
      if (!status.ok()) return status.WithContext(Describe());
    }
    const std::string cell = keys_ + nonce_ + ":" + std::string(key);
    const std::lock_guard lock(mutex_);
    if (replaced_) return Replaced();
    RedisReply answer;
    // Whether a proposal was heard before the connection was lost does not matter: if it was, it
    // stands, and is what we get.
    const Status done = Patiently(deadline, [&]() -> Status {
      if (!link_.connected()) {
        if (Status back = Reconnect(deadline); !back.ok()) return back;
      }
      Result<RedisReply> reply = Eval(cell, value, deadline);
      if (!reply.ok()) return reply.status();
      answer = std::move(reply).value();
      return {};
    });
    if (!done.ok()) return done;
    return Understand(answer);
  }

  Result<std::optional<std::string>> Understand(const RedisReply& reply) const {
    if (reply.kind == RedisReply::Kind::kError) {
      return Unavailable(
          Format("the Redis server at %s refused: %s", link_.name().c_str(), reply.text.c_str()));
    }
    const std::string word = reply.list.empty() ? "" : reply.list[0].text;
    if (word == "gone") {
      return Unavailable(
          Format("%s: the job's nonce is gone or another one: the server was emptied "
                 "while ranks agree in it",
                 Describe().c_str()));
    }
    if (word == "nothing") return std::optional<std::string>();
    if (word == "stands" && reply.list.size() == 2 &&
        reply.list[1].kind == RedisReply::Kind::kText &&
        reply.list[1].text.size() <= kLongestValue) {
      return std::optional<std::string>(reply.list[1].text);
    }
    return Unavailable(Describe() + " gave an answer that makes no sense");
  }

  const Maker maker_;
  const int database_;
  const std::string keys_;
  std::string nonce_;
  std::string run_id_;
  std::string script_;
  bool replaced_ = false;
  std::mutex mutex_;
  RedisLink link_;
};

}  // namespace

Result<std::unique_ptr<Store>> OpenRedisStore(const StoreOptions& options, const std::string& url) {
  Result<RedisAddress> address = ParseRedisAddress(url);
  if (!address.ok()) return address.status();
  auto store = std::make_unique<RedisStore>(std::move(address).value(), options);
  if (const Status opened = store->Open(); !opened.ok()) return opened;
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace diapason::agree
