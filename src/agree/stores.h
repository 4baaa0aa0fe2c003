#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "agree/store.h"
#include "base/text.h"

namespace diapason::agree {

// The stores that OpenStore chooses from.

struct ShmOptions {
  std::string root = "/dev/shm";
  // Bytes, all reserved at creation. A container has 64 MB in /dev/shm by default, and the library
  // needs most of it.
  uint64_t bytes = uint64_t{16} << 20;
};
Result<std::unique_ptr<CellStore>> OpenShmStore(const StoreOptions& options, const ShmOptions& shm);
Result<std::unique_ptr<CellStore>> OpenFileStore(const StoreOptions& options,
                                                 const std::string& folder);
Result<std::unique_ptr<CellStore>> OpenTcpStore(const StoreOptions& options,
                                                const std::string& url);
Result<std::unique_ptr<CellStore>> OpenRedisStore(const StoreOptions& options,
                                                  const std::string& url);

// The key of a job in a Redis server: a hash of its nonce and its cells.
std::string RedisJobKey(const std::string& job);

// Remembers which process created a store: a forked child inherits it, and must not touch what its
// parent still uses.
class Maker {
 public:
  bool Here() const { return pid_ == ::getpid(); }
  Status Check() const {
    if (Here()) return {};
    return Unavailable(
        Format("process {} was forked from {}, which has opened this store, and "
               "cannot use it; only a process that opens one itself can",
               static_cast<int>(::getpid()), static_cast<int>(pid_)));
  }

 private:
  pid_t pid_ = ::getpid();
};

}  // namespace diapason::agree
