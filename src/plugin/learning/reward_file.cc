#include "plugin/learning/reward_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

namespace diapason::plugin {
namespace {

constexpr double kLookInterval = 0.002;  // seconds between reads
constexpr size_t kMostPerPoll = 1 << 20;

}  // namespace

RewardFile::RewardFile(std::string path) : path_(std::move(path)) {
  Open();
  seen_ = true;
}

void RewardFile::Refuse(const char* what) {
  if (!refused_) problem_ = "the reward file " + path_ + " is " + what + " and is not read";
  refused_ = true;
}

void RewardFile::Open() {
  fd_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (!fd_.open() || ::fstat(fd_.get(), &info) != 0) {
    if (errno == ELOOP) Refuse("a symbolic link");
    return fd_.Close();
  }
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) {
    Refuse("not a regular file of this user");
    return fd_.Close();
  }
  // The initial contents belong to an earlier job.
  found_ = true;
  offset_ = seen_ ? 0 : info.st_size;
  device_ = info.st_dev;
  inode_ = info.st_ino;
  lines_.Restart();
}

bool RewardFile::Poll(double now, std::vector<learn::RewardLine>* lines, std::string* problem) {
  if (now < next_look_) return false;
  next_look_ = now + kLookInterval;
  if (!fd_.open()) Open();
  *problem = std::move(problem_);
  problem_.clear();
  struct stat info;
  if (!fd_.open() || ::fstat(fd_.get(), &info) != 0) return true;
  if (info.st_size < offset_) {
    offset_ = 0;
    lines_.Restart();
  }
  char buffer[65536];
  for (size_t taken = 0; taken < kMostPerPoll;) {
    const ssize_t got = ::pread(fd_.get(), buffer, sizeof(buffer), offset_);
    if (got <= 0) break;
    offset_ += got;
    taken += static_cast<size_t>(got);
    const std::vector<learn::RewardLine> some =
        lines_.Feed(std::string_view(buffer, static_cast<size_t>(got)));
    lines->insert(lines->end(), some.begin(), some.end());
  }
  // Rotated: the rest of the old file has just been read.
  const bool there = ::lstat(path_.c_str(), &info) == 0;
  if (!there || info.st_dev != device_ || info.st_ino != inode_) fd_.Close();
  // Reported for the first line and then at every tenfold.
  if (lines_.garbage() > 0 && lines_.garbage() >= 10 * said_garbage_) {
    said_garbage_ = lines_.garbage();
    *problem = Format(
        "{} lines of the reward file {} are not "
        "'collType,nBytes,nNodes,nRanks,latency_ms[,call[,calls]]' and were skipped",
        said_garbage_, path_);
  }
  return true;
}

}  // namespace diapason::plugin
