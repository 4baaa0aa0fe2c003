#pragma once

#include <vector>

#include "policy/parse.h"
#include "policy/policy.h"

namespace diapason::policy {

// Warnings about valid rows that have no effect, or less than they say: shadowed by an earlier row,
// naming a pair that no machine runs, depending on regBuff, or setting channels where that is not
// safe.
std::vector<Diagnostic> CheckRules(const Policy& policy);

}  // namespace diapason::policy
