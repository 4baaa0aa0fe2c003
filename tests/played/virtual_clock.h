#pragma once

#include <cstdint>

// The clock of a rank in simulated time. clock_gettime is defined here, so that the plugin, which
// looks it up in the program first, reads simulated time. CLOCK_REALTIME is simulated time alone,
// on all threads. CLOCK_MONOTONIC is, on the rank's own thread, the real one plus the simulated
// time that has passed, so that waits end; other threads, which sleep by it, read the real one.
namespace played {

// From now on, with the calling thread as the rank's own.
void UseVirtualClock();
// Nanoseconds since the job began.
void SetVirtualTime(int64_t nanoseconds);

}  // namespace played
