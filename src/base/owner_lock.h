#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace diapason {

// Says that this process alone works on something (a folder, a run of a store), by a lock on a
// small file beside it that names the process. The lock ends with the process however that ends,
// or with this object, which also removes the file: a file that a killed process has left behind
// locks nothing. Programs that this process starts do not inherit it.
//
// One thread at a time. It works between hosts where their file system has locks.
class OwnerLock {
 public:
  // kUnavailable, naming the process, its host and since when, if another one has it: `what` begins
  // the sentence ("the folder 'x'"). Nothing is changed then. kIo if the file cannot be made.
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
