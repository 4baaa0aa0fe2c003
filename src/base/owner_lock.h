#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace diapason {

// Marks this process as the only user of something (a folder, a run in a store), by a lock on a
// small file beside it that names the process. The lock ends with the process, however that ends,
// or with this object, which also removes the file: a file left by a killed process locks nothing.
// Child processes do not inherit it.
//
// Not thread-safe. Works between hosts if their file system supports locks.
class OwnerLock {
 public:
  // kUnavailable if another process holds the lock; the message names it, its host and since when,
  // and begins with `what` ("the folder 'x'"). Nothing is changed then. kIo if the file cannot be
  // created.
  static Result<std::unique_ptr<OwnerLock>> Take(const std::string& path, const std::string& what);
  ~OwnerLock();
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;

 private:
  OwnerLock(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

}  // namespace diapason
