#pragma once

#include <string>

namespace diapason {

// The full path of a file that was built or installed with this program or library: in
// DIAPASON_LIB_DIR if set, else beside it, or in lib/ beside its folder. "" if it is in none of
// them; `why_not` then gives the error that stopped the search, or is empty if the file simply does
// not exist.
std::string FindBesideUs(const std::string& file, std::string* why_not = nullptr);

}  // namespace diapason
