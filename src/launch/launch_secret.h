#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/status.h"

namespace diapason::launch {

// The secret of one launch, in a file that only this user can read: in a folder of its own below
// TMPDIR, /tmp or /dev/shm, the first of them that can be written. The ranks are told its name
// (DIAPASON_SECRET_FILE). Both are removed when this is, or by Remove(), or by the keeper, where
// the launcher is killed. One thread.
class LaunchSecret {
 public:
  LaunchSecret() = default;
  ~LaunchSecret() { Remove(); }
  LaunchSecret(const LaunchSecret&) = delete;
  LaunchSecret& operator=(const LaunchSecret&) = delete;

  // Draws the secret and writes it. Fails where no folder can be written, or there is no random
  // number to be had.
  Status Make();
  // Safe to call in a forked process, and again.
  void Remove() const;
  // "" before Make.
  const std::string& path() const { return path_; }

 private:
  Status MakeIn(const std::string& place, const std::string& secret);

  std::string folder_;
  std::string path_;
  Descriptor lock_;  // on the folder: programs that clean /tmp leave alone what is locked
};

}  // namespace diapason::launch
