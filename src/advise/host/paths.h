#pragma once

#include <string>
#include <vector>

#include "advise/tree.h"

namespace diapason::advise {

// `path` with every symbolic link in it followed, absolute ones below the tree's root and not
// beyond it. The path as far as it can be followed, where something is not there; at most 40 links.
std::string RealPath(const Tree& tree, const std::string& path);

// The paths that a pattern stands for, in order: '*' is any text within one name. At most 256.
std::vector<std::string> Expand(const Tree& tree, const std::string& pattern);

}  // namespace diapason::advise
