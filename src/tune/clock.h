#pragma once

#include <chrono>
#include <functional>

namespace diapason::tune {

// Seconds since some fixed moment. Budgets are in real time, whatever is measured: simulated ranks
// have a clock of their own, and it is not the user's. Tests play a machine whose clock they set.
using TuneClock = std::function<double()>;

inline double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace diapason::tune
