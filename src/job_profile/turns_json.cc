#include "job_profile/turns_json.h"

#include <nlohmann/json.hpp>

namespace diapason::job_profile {

using nlohmann::ordered_json;

ordered_json TurnComparisonJson(const TurnComparison& compared) {
  const bool decided = compared.Decided();
  ordered_json json = {{"verdict", compared.Verdict()},
                       {"decided", decided},
                       {"rank", compared.rank},
                       {"default_iterations", compared.default_iterations},
                       {"policy_iterations", compared.policy_iterations},
                       {"mixed_iterations", compared.mixed_iterations},
                       {"default_us", compared.default_seconds * 1e6},
                       {"policy_us", compared.policy_seconds * 1e6},
                       {"changes", compared.log_gains.size()},
                       {"log_gains", compared.log_gains},
                       {"gain", decided ? ordered_json(compared.gain) : ordered_json()},
                       {"low", decided ? ordered_json(compared.low) : ordered_json()},
                       {"high", decided ? ordered_json(compared.high) : ordered_json()}};
  if (!compared.trouble.empty()) json["note"] = compared.trouble;
  return json;
}

}  // namespace diapason::job_profile
