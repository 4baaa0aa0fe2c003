#pragma once

namespace diapason::doctor {

// The text of targets/four-gpu-nvlink.toml, which is compiled in: the targets of the short test.
extern const char* const kGoals;

}  // namespace diapason::doctor
