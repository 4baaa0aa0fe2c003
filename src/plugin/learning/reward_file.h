#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "learn/rewards.h"

namespace diapason::plugin {

// Follows a reward file to which a program appends. What it contains when this object is made
// belongs to an earlier job and is skipped: make it with the communicator, before its first call. A
// file that shrinks or is replaced is read from its beginning. It must be a regular file owned by
// this user: the default one lies in /tmp, where every user can create files.
class RewardFile {
 public:
  explicit RewardFile(std::string path);

  // Adds the lines completed since the last call. False: it is too early to look again. *problem: a
  // message for the user, given once.
  bool Poll(double now, std::vector<learn::RewardLine>* lines, std::string* problem);

  const std::string& path() const { return path_; }
  // Whether it has been there, and could be read.
  bool found() const { return found_; }

 private:
  void Open();
  void Refuse(const char* what);

  const std::string path_;
  Descriptor fd_;
  bool seen_ = false;  // the file has been looked at once
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t offset_ = 0;
  double next_look_ = 0;
  bool refused_ = false;
  bool found_ = false;
  std::string problem_;  // not given yet
  uint64_t said_garbage_ = 0;
  learn::RewardLines lines_;
};

}  // namespace diapason::plugin
