#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "mpi_tune/contexts.h"

namespace diapason::mpi_tune {

// What a search of the calls alone has found for one context: the configurations that gave a time,
// the fastest first.
struct AloneFinding {
  struct Tried {
    Config config;
    double gain = 0;  // over the library's own choice, by the medians
  };
  std::vector<Tried> ranked;
  size_t failed = 0;  // configurations that gave none
  std::string why;    // nothing was measured
};

// Runs each context's call alone with all its candidates, on ranks of our own that mpirun starts on
// this host: as many as the communicator has. `seconds` are for all of them together. `goes_on`
// false ends it in good order.
Result<std::vector<AloneFinding>> SearchAlone(const std::vector<Context>& contexts, double seconds,
                                              const std::function<bool()>& goes_on);

}  // namespace diapason::mpi_tune
