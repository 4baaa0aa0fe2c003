// Env plugin API v2: NCCL 2.30.7 and later. Brings a logger.
#include "plugin/abi/env_abi.h"
#include "plugin/env/env_answers.h"

namespace diapason::plugin {
namespace {

int Init(uint8_t, uint8_t, uint8_t, const char*, abi::Logger logger) noexcept {
  PrepareAnswers(logger);
  return abi::kSuccess;
}

// Earlier answers stay valid: the library's threads may still read them.
int Finalize() noexcept { return abi::kSuccess; }

}  // namespace

DIAPASON_EXPORT const abi::EnvV2 ncclEnvPlugin_v2;
const abi::EnvV2 ncclEnvPlugin_v2 = {"diapason", Init, Finalize, AnswerEnvironment};

}  // namespace diapason::plugin
