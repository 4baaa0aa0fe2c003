#pragma once

#include <atomic>

namespace diapason::plugin {

// Set by the env plugin when it has answered this file for NCCL_PROFILER_PLUGIN: the profiler half
// then stands where the library would have looked for a profiler of the site. Any thread.
inline constinit std::atomic<bool> g_answered_for_profiler{false};

}  // namespace diapason::plugin
