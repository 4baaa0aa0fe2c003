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
}  // namespace diapason::plugin

DIAPASON_EXPORT const diapason::plugin::abi::EnvV2 ncclEnvPlugin_v2;
const diapason::plugin::abi::EnvV2 ncclEnvPlugin_v2 = {"diapason", diapason::plugin::Init,
                                                       diapason::plugin::Finalize,
                                                       diapason::plugin::AnswerEnvironment};
