#pragma once

#include <string>
#include <vector>

#include "base/root_fs.h"

namespace diapason::host {

// `path` with every symbolic link resolved, absolute ones within the tree's root. If a component
// does not exist, the path as far as it can be resolved; at most 40 links.
std::string RealPath(const RootFs& tree, const std::string& path);

// The paths that match a pattern, in order: '*' is any text within one name. At most 256.
std::vector<std::string> Expand(const RootFs& tree, const std::string& pattern);

}  // namespace diapason::host
