#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace diapason::agree {

// When a call must have returned, whatever has become of it.

inline constexpr std::chrono::milliseconds kUsualLimit{2000};

// Where ranks agree: cells that are written once. Whoever proposes first has its value stand, and
// everybody gets the value that stands. A proposer that is killed half-way leaves nothing.
//
// Errors of Propose and Read are of three kinds:
//   Retryable()  the store cannot be reached now. Whether a proposal was heard is not known; the
//                same call may succeed later, and then gives what stands.
//   NoRoom()     the store has no room for the cell. The cell is as it was.
//   all others   what was agreed is lost: the store was emptied or replaced, or holds what no rank
//                of the job has written. There is no way back; docs/internals/agreement.md says
//                what follows.
//
// Any thread may call at any time. Every call is bounded by its deadline, and never waits for
// another rank; waiting for another thread of this process counts too. A file system that does not
// answer has no bound: see file_store.cc.
class CellStore {
 public:
  virtual ~CellStore() = default;
  CellStore(const CellStore&) = delete;
  CellStore& operator=(const CellStore&) = delete;

  // The value that stands after this call: ours, or that of who was first.
  virtual Result<std::string> Propose(std::string_view key, std::string_view value,
                                      Deadline deadline) = 0;
  // Nothing yet: nullopt.
  virtual Result<std::optional<std::string>> Read(std::string_view key, Deadline deadline) = 0;
  // No rank asks for cells under this prefix again: they may go. Never an error.
  virtual void Forget(std::string_view prefix, Deadline deadline) = 0;
  // This rank asks for no cell under the prefix again. Once all `members` ranks have said so, each
  // of them once, the room may be used for other cells. Never an error.
  // REQUIRES: the same `members` on all of them.
  virtual void Done(std::string_view /*prefix*/, int /*members*/, Deadline /*deadline*/) {}
  // This process lives, and still needs the store: called about once a minute. Never an error.
  virtual void KeepAlive(Deadline /*deadline*/) {}
  // The process ends while threads may still call: what the last one out should remove, goes.
  virtual void Leave(Deadline /*deadline*/) {}

  // The same within the limit that the store was opened with. A deriving class says
  // `using Store::Propose;` and so on, or hides them.
  Result<std::string> Propose(std::string_view key, std::string_view value) {
    return Propose(key, value, Usual());
  }
  Result<std::optional<std::string>> Read(std::string_view key) { return Read(key, Usual()); }
  void Forget(std::string_view prefix) { Forget(prefix, Usual()); }

  // How full the store is, from 0 to 1; who may still choose stops proposing before it is full.
  virtual double Fullness() = 0;
  // "shared memory /dev/shm/...": for logs.
  virtual std::string Describe() const = 0;
  // Whether this object belongs to the calling process, and not to the one it was forked from.
  virtual bool Mine() const = 0;

 protected:
  explicit CellStore(std::chrono::milliseconds limit = kUsualLimit) : limit_(limit) {}
  Deadline Usual() const { return std::chrono::steady_clock::now() + limit_; }

 private:
  const std::chrono::milliseconds limit_;
};

// The store cannot be reached right now; the same call may succeed later.
bool Retryable(const Status& status);
// The store has no room for the cell.
bool NoRoom(const Status& status);

// Keys: letters, digits and "._-". Longer keys or values are refused.
inline constexpr size_t kLongestKey = 120;
inline constexpr size_t kLongestValue = 4u << 20;

struct StoreOptions {
  // "shm", "file:/a/folder" or
  // "redis://[user][:password@]host[:port][/database][?password-file=/a/file]".
  std::string where;
  // Keeps the cells of different jobs apart; see JobIdentity.
  std::string job;
  std::chrono::milliseconds limit = kUsualLimit;  // of opening, and of calls without a deadline
  // Opens only what ranks of a running job have made, and is kNotFound otherwise. Such a process
  // may propose, but keeps nothing alive and removes nothing: it is no rank.
  bool existing_only = false;
};
Result<std::unique_ptr<CellStore>> OpenStore(const StoreOptions& options);

// Names of this user's jobs in a store of shared memory or of a folder; at most 100 of them. Empty
// where a store cannot tell.
std::vector<std::string> JobsIn(const std::string& where);

}  // namespace diapason::agree
