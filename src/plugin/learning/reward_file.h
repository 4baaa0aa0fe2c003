#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "learn/rewards.h"

namespace diapason::plugin {

// Follows a reward file to which a program appends. Its initial contents belong to an earlier job
// and are skipped. A file that shrinks or is replaced is read from its beginning. It must be a
// regular file owned by this user: the default one lies in /tmp, where every user can create files.
class RewardFile {
 public:
  explicit RewardFile(std::string path);

  // The lines completed since the last call. *problem: a message for the user, given once.
  std::vector<learn::RewardLine> Poll(double now, std::string* problem);

 private:
  void Open(std::string* problem);
  void Refuse(const char* what, std::string* problem);

  const std::string path_;
  Descriptor fd_;
  bool seen_ = false;  // the file has been looked at once
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t offset_ = 0;
  double next_look_ = 0;
  bool refused_ = false;
  uint64_t said_garbage_ = 0;
  learn::RewardLines lines_;
};

}  // namespace diapason::plugin
