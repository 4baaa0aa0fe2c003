#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <string>

#include "base/descriptor.h"

namespace diapason::agree {

// Calls visit(name) for up to `most` names in a folder, until it returns false. Reopening the
// folder makes an NFS client revalidate it.
template <typename Visitor>
void ForEachName(int folder, int most, const Visitor& visit) {
  Descriptor again(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* listing = ::fdopendir(again.get());
  if (listing == nullptr) return;
  (void)again.Release();  // the listing closes it
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
