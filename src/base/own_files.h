#pragma once

#include <string>

namespace diapason {

// The full name of a file that was built or installed with us: in DIAPASON_LIB_DIR if that is set,
// else beside the program or library this code is part of, or in lib/ beside its folder. "" when it
// is in none of them; `why_not` then says what kept the search from finding it, and is empty where
// the file was simply not built or installed.
std::string FindBesideUs(const std::string& file, std::string* why_not = nullptr);

}  // namespace diapason
