// Env plugin API v1: NCCL 2.28.7 to 2.30.
#include "plugin/abi/env_abi.h"
#include "plugin/env/env_answers.h"

namespace diapason::plugin {
namespace {

int Init(uint8_t, uint8_t, uint8_t, const char*) noexcept {
  PrepareAnswers(nullptr);
  return abi::kSuccess;
}

// Earlier answers stay valid: the library's threads may still read them.
int Finalize() noexcept { return abi::kSuccess; }

}  // namespace

DIAPASON_EXPORT const abi::EnvV1 ncclEnvPlugin_v1;
const abi::EnvV1 ncclEnvPlugin_v1 = {"diapason", Init, Finalize, AnswerEnvironment};

}  // namespace diapason::plugin
