#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace diapason::agree {

// Calls visit(name) for up to `most` names in a folder, until it returns false. Reopening the
// folder makes an NFS client revalidate it.
template <typename Visitor>
void ForEachName(int folder, int most, const Visitor& visit) {
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return;
  DIR* listing = ::fdopendir(again);
  if (listing == nullptr) {
    ::close(again);
    return;
  }
  for (int i = 0; i < most;) {
    const dirent* entry = ::readdir(listing);
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    ++i;
    if (!visit(name)) break;
  }
  ::closedir(listing);
}

}  // namespace diapason::agree
