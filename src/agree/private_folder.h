#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace diapason::agree {

// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Descriptor() { Reset(-1); }
  int get() const { return fd_; }

 private:
  void Reset(int fd);

  int fd_ = -1;
};

// Opens the folder `name` in the folder `parent`, and makes it first if it is not there. Refused
// unless it is a real directory of this user's that nobody else may enter: what others can write,
// others can make ranks disagree with. `shown` is its path, for messages.
Result<Descriptor> OpenPrivateFolder(int parent, const std::string& name, const std::string& shown);

// The same of one that is there; kNotFound where there is none.
Result<Descriptor> OpenExistingFolder(int parent, const std::string& name,
                                      const std::string& shown);

// What is wrong with a file that should be a regular one of this user's; "" when nothing is.
std::string NotOurs(const struct stat& info);

// Whether `name` in `folder` still is the file with this status.
bool StillNamed(int folder, const std::string& name, const struct stat& info);

// Of the system's; good enough to be different everywhere, not for secrets.
uint64_t RandomWord();
std::string RandomName();  // 16 hexadecimal digits

// Letters, digits and "._-", not over-long, and no leading dot, which is ours.
Status CheckKey(std::string_view key);
Status CheckValue(std::string_view value);
Status CheckJob(std::string_view job);

}  // namespace diapason::agree
