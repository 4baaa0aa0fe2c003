#include "agree/redis_server.h"

#include "base/text.h"

namespace diapason::agree {
namespace {

// The value after "name:" in the reply to INFO.
std::string InfoValue(const std::string& info, const std::string& name) {
  for (const std::string_view line : Split(info, '\n')) {
    if (line.compare(0, name.size(), name) == 0 && line.size() > name.size() &&
        line[name.size()] == ':') {
      return std::string(Trim(line.substr(name.size() + 1)));
    }
  }
  return "";
}

// Values of one section of INFO; keeps the first error.
class InfoSection {
 public:
  InfoSection(RedisLink* link, const char* name, Deadline deadline) : link_(link) {
    const Result<RedisReply> info = link->Command({"INFO", name}, deadline);
    if (info.ok()) text_ = info.value().text;
    status_ = info.status();
  }
  std::string Value(const char* name) {
    std::string value = InfoValue(text_, name);
    if (value.empty() && status_.ok()) {
      status_ = Unavailable(
          Format("the Redis server at {} does not tell its {}; ranks cannot know whether it keeps "
                 "what they write",
                 link_->name(), name));
    }
    return value;
  }
  const Status& status() const { return status_; }

 private:
  RedisLink* link_;
  std::string text_;
  Status status_;
};

// Whether every write is on the disk before it is acknowledged. A server that does not tell counts
// as not durable.
Result<bool> Durable(RedisLink* link, Deadline deadline) {
  InfoSection persistence(link, "persistence", deadline);
  if (!persistence.status().ok()) return persistence.status();
  if (persistence.Value("aof_enabled") != "1") return false;
  ASSIGN_OR_RETURN(const RedisReply reply, link->Ask({"CONFIG", "GET", "appendfsync"}, deadline));
  return reply.list.size() == 2 && reply.list[1].text == "always";
}

}  // namespace

bool RedisServerFacts::NeverTookOver() const {
  return second_id.find_first_not_of('0') == std::string::npos && second_offset == "-1";
}

Result<RedisServerFacts> AskServer(RedisLink* link, Deadline deadline) {
  RedisServerFacts facts;
  InfoSection server(link, "server", deadline);
  facts.run_id = server.Value("run_id");
  if (!server.status().ok()) return server.status();
  InfoSection replication(link, "replication", deadline);
  facts.master = replication.Value("role") == "master";
  facts.second_id = replication.Value("master_replid2");
  facts.second_offset = replication.Value("second_repl_offset");
  facts.replicas = replication.Value("connected_slaves") != "0";
  if (!replication.status().ok()) return replication.status();
  InfoSection memory(link, "memory", deadline);
  const std::string policy = memory.Value("maxmemory_policy");
  if (memory.Value("maxmemory") != "0" && policy != "noeviction") facts.evicts = policy;
  if (!memory.status().ok()) return memory.status();
  ASSIGN_OR_RETURN(const bool durable, Durable(link, deadline));
  facts.durable = durable;
  return facts;
}

}  // namespace diapason::agree
