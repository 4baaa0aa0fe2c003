#pragma once

#include <string>

#include "agree/redis_link.h"

namespace diapason::agree {

// What a server says about itself, as far as it decides whether ranks can rely on it.
struct RedisServerFacts {
  std::string run_id;  // of its process
  bool master = false;
  // Another server's history that it has taken over: no failover has made it master where these are
  // "000..." and "-1".
  std::string second_id;
  std::string second_offset;
  bool replicas = false;  // servers that could take its place
  std::string evicts;     // the policy by which it throws keys away; "" where it does not
  bool durable = false;   // what it has acknowledged is on its disk

  bool NeverTookOver() const;
};

// Asks for all of it. A server that does not tell is kUnavailable; but for what makes it durable,
// which it then is not.
Result<RedisServerFacts> AskServer(RedisLink* link, Deadline deadline);

}  // namespace diapason::agree
