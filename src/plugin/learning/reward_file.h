#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "learn/rewards.h"

namespace diapason::plugin {

// Follows a reward file that a program appends to. What is in it at first is of an earlier job and
// is skipped. A file that shrinks or is replaced is read from its beginning. It must be a regular
// file of this user's: the default one lies in /tmp, where anybody can put anything.
class RewardFile {
 public:
  explicit RewardFile(std::string path);
  ~RewardFile();
  RewardFile(const RewardFile&) = delete;
  RewardFile& operator=(const RewardFile&) = delete;

  // The lines that have been completed since the last time. *problem: something a user should know,
  // said once.
  std::vector<learn::RewardLine> Poll(double now, std::string* problem);

 private:
  void Open(std::string* problem);
  void Close();

  const std::string path_;
  int fd_ = -1;
  bool seen_ = false;  // the first look has been taken
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t offset_ = 0;
  double next_look_ = 0;
  bool refused_ = false;
  uint64_t said_garbage_ = 0;
  learn::RewardLines lines_;
};

}  // namespace diapason::plugin
