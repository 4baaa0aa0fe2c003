#pragma once

#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace diapason {

// A file descriptor that its owner closes; it may be none (-1).
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = other.Release();
    }
    return *this;
  }
  ~Descriptor() { Close(); }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Close() {
    if (open()) ::close(Release());
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};
// Both ends are closed by exec. `flags` (O_NONBLOCK) are those of both ends.
Result<Pipe> MakePipe(int flags = 0);

// Writes everything. 0, or an errno.
int WriteAll(int fd, std::string_view text);

// Milliseconds until the deadline, for poll(); 0 if it has passed, at most 1000 s.
int MillisecondsTo(Deadline deadline);

}  // namespace diapason
