#pragma once

namespace diapason::bench {

// Prints how often a gain is confirmed whose launches vary, and how often it would be by its rounds
// alone.
void PrintLaunches();

}  // namespace diapason::bench
