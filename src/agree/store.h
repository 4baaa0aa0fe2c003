#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason::agree {

// Where ranks agree: cells that are written once. Whoever proposes first has its value stand, and
// everybody gets the value that stands. A proposer that is killed half-way leaves nothing.
//
// An error means that this rank cannot know what the others see: the store cannot be reached, was
// emptied or replaced, or holds what nobody of the job has written. There is no way back from that;
// docs/agreement.md says what follows.
//
// Any thread may call at any time. Every call is bounded: it never waits for another rank.
class Store {
 public:
  virtual ~Store() = default;
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // The value that stands after this call: ours, or that of who was first.
  virtual Result<std::string> Propose(std::string_view key, std::string_view value) = 0;
  // Nothing yet: nullopt.
  virtual Result<std::optional<std::string>> Read(std::string_view key) = 0;
  // Cells under this prefix will not be asked for again by anybody: they may go. Never an error.
  virtual void Forget(std::string_view prefix) = 0;
  // How full the store is, from 0 to 1; who may still choose stops proposing before it is full.
  virtual double Fullness() = 0;
  // The process ends while threads may still call: what the last one out should remove, goes.
  virtual void Leave() {}
  // "shared memory /dev/shm/...": for logs.
  virtual std::string Describe() const = 0;
  // Whether this object belongs to the calling process, and not to the one it was forked from.
  virtual bool Mine() const = 0;
};

// Keys: letters, digits and "._-". Longer keys or values are refused.
inline constexpr size_t kLongestKey = 120;
inline constexpr size_t kLongestValue = 4u << 20;

struct StoreOptions {
  // "shm", "file:/a/folder" or "redis://[user][:password@]host[:port][/database]".
  std::string where;
  // Keeps the cells of different jobs apart; see JobIdentity.
  std::string job;
  std::chrono::milliseconds limit{2000};  // of every call
};
Result<std::unique_ptr<Store>> OpenStore(const StoreOptions& options);

}  // namespace diapason::agree
