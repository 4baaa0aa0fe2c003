#pragma once

#include <string>
#include <vector>

#include "base/root_fs.h"

namespace diapason::host {

// `path` with every symbolic link in it followed, absolute ones below the tree's root and not
// beyond it. The path as far as it can be followed, where something is not there; at most 40 links.
std::string RealPath(const RootFs& tree, const std::string& path);

// The paths that a pattern stands for, in order: '*' is any text within one name. At most 256.
std::vector<std::string> Expand(const RootFs& tree, const std::string& pattern);

}  // namespace diapason::host
