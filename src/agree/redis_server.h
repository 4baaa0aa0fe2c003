#pragma once

#include <string>

#include "agree/redis_link.h"

namespace diapason::agree {

// The properties of a server that decide whether ranks can rely on it.
struct RedisServerFacts {
  std::string run_id;  // of its process
  bool master = false;
  // The replication id it took over from another server: it has never become master by failover if
  // these are "000..." and "-1".
  std::string second_id;
  std::string second_offset;
  bool replicas = false;  // it has replicas that could replace it
  std::string evicts;     // its eviction policy; "" if it evicts nothing
  bool durable = false;   // acknowledged writes are on its disk

  bool NeverTookOver() const;
};

// Queries all of them. A server that does not tell is kUnavailable, except about durability: then
// it counts as not durable.
Result<RedisServerFacts> AskServer(RedisLink* link, Deadline deadline);

}  // namespace diapason::agree
