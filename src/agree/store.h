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

// The default time limit of a call.

inline constexpr std::chrono::milliseconds kUsualLimit{2000};

// Where ranks agree: cells that are written once. The first proposal stands, and every caller gets
// the value that stands. A proposer that is killed half-way leaves nothing.
//
// Errors of Propose and Read are of three kinds:
//   Retryable()  the store cannot be reached now. It is unknown whether the proposal arrived; the
//   same
//                call may succeed later, and then returns the value that stands.
//   NoRoom()     the store has no space for the cell. The cell is unchanged.
//   all others   the agreement is lost: the store was emptied or replaced, or holds data that no
//   rank
//                of the job has written. This is permanent; docs/internals/agreement.md says what
//                follows.
//
// Thread-safe. Every call is bounded by its deadline, including waits for other threads of this
// process, and never waits for another rank. A file system that does not answer is not bounded: see
// file_store.cc.
class CellStore {
 public:
  virtual ~CellStore() = default;
  CellStore(const CellStore&) = delete;
  CellStore& operator=(const CellStore&) = delete;

  // The value that stands after this call: the caller's own, or that of an earlier proposer.
  virtual Result<std::string> Propose(std::string_view key, std::string_view value,
                                      Deadline deadline) = 0;
  // nullopt: the cell is empty.
  virtual Result<std::optional<std::string>> Read(std::string_view key, Deadline deadline) = 0;
  // Several cells at once, in the order of `keys`; where the store can, in one request. Each value
  // stood at some time during the call, not all of them at one.
  virtual Result<std::vector<std::optional<std::string>>> ReadMany(
      const std::vector<std::string>& keys, Deadline deadline);
  // No rank will use cells with this prefix again: the store may remove them. Errors are ignored.
  virtual void Forget(std::string_view prefix, Deadline deadline) = 0;
  // This rank will use no cell with the prefix again. Once all `members` ranks have called it, once
  // each, the space may be reused. Errors are ignored. REQUIRES: the same `members` on all ranks.
  virtual void Done(std::string_view /*prefix*/, int /*members*/, Deadline /*deadline*/) {}
  // This process lives and still needs the store: called about once a minute. Errors are ignored.
  virtual void KeepAlive(Deadline /*deadline*/) {}
  // Called at process exit, while threads may still call: the last process to leave removes the
  // job's cells.
  virtual void Leave(Deadline /*deadline*/) {}

  // The same within the limit that the store was opened with. A derived class needs `using
  // CellStore::Propose;` and so on, or hides them.
  Result<std::string> Propose(std::string_view key, std::string_view value) {
    return Propose(key, value, Usual());
  }
  Result<std::optional<std::string>> Read(std::string_view key) { return Read(key, Usual()); }
  Result<std::vector<std::optional<std::string>>> ReadMany(const std::vector<std::string>& keys) {
    return ReadMany(keys, Usual());
  }
  void Forget(std::string_view prefix) { Forget(prefix, Usual()); }

  // How full the store is, from 0 to 1; proposers that have a choice stop before it is full.
  virtual double Fullness() = 0;
  // "shared memory /dev/shm/...": for logs.
  virtual std::string Describe() const = 0;
  // Whether this object belongs to the calling process, and not to its parent before a fork.
  virtual bool Mine() const = 0;

 protected:
  explicit CellStore(std::chrono::milliseconds limit = kUsualLimit) : limit_(limit) {}
  Deadline Usual() const { return std::chrono::steady_clock::now() + limit_; }

 private:
  const std::chrono::milliseconds limit_;
};

// The store cannot be reached right now; the same call may succeed later.
bool Retryable(const Status& status);
// The store has no space for the cell.
bool NoRoom(const Status& status);

// Keys: letters, digits and "._-". Longer keys or values are refused.
inline constexpr size_t kLongestKey = 120;
inline constexpr size_t kLongestValue = 4u << 20;

struct StoreOptions {
  // "shm", "file:/a/folder", "tcp://host[:port]" or
  // "redis://[user][:password@]host[:port][/database][?password-file=/a/file]".
  std::string where;
  // For tcp://; "": that of this process (rendezvous::ReadSecret).
  std::string secret;
  // Separates the cells of different jobs; see JobIdentity.
  std::string job;
  std::chrono::milliseconds limit = kUsualLimit;  // of opening, and of calls without a deadline
  // Opens only a store that ranks of a running job have created; otherwise kNotFound. Such a
  // process may propose, but is not a rank: it keeps nothing alive and removes nothing.
  bool existing_only = false;
};
Result<std::unique_ptr<CellStore>> OpenStore(const StoreOptions& options);

// Removes what a job has left in shared memory or in a folder because its processes were killed; a
// server forgets it by itself. REQUIRES: none of its processes lives.
void RemoveJob(const std::string& where, const std::string& job);

// Names of this user's jobs in a shared-memory or folder store; at most 100. Empty if the store
// cannot list them.
std::vector<std::string> JobsIn(const std::string& where);

}  // namespace diapason::agree
