// The functions of diapason.h, for programs that look up the plugin in their process.
#include "base/version.h"
#include "diapason/diapason.h"
#include "plugin/abi/abi.h"
#include "plugin/learning/learning_thread.h"
#include "plugin/learning/process_journal.h"
#include "plugin/tuner/agreement.h"
#include "plugin/tuner/pin.h"

using diapason::plugin::LearningThread;
using diapason::plugin::PinnedChoice;

DIAPASON_EXPORT const char* diapason_version(void) { return diapason::kVersion; }

DIAPASON_EXPORT int diapason_pin(int algorithm, int protocol, int channels) {
  return PinnedChoice::Instance().Set(algorithm, protocol, channels) ? 0 : -1;
}

DIAPASON_EXPORT void diapason_unpin(void) { PinnedChoice::Instance().Clear(); }

DIAPASON_EXPORT void diapason_pin_counts(unsigned long long* asked, unsigned long long* applied) {
  if (asked != nullptr) *asked = PinnedChoice::Instance().asked();
  if (applied != nullptr) *applied = PinnedChoice::Instance().applied();
}

DIAPASON_EXPORT void diapason_step(void) {
  try {
    diapason::plugin::JournalStep();
    LearningThread::Instance().Step();
  } catch (...) {  // no memory: one iteration is not counted
  }
}

DIAPASON_EXPORT void diapason_rehearse(int on) { diapason::plugin::SetRehearsal(on != 0); }

DIAPASON_EXPORT int diapason_report(const char* collective, unsigned long long bytes,
                                    double milliseconds) {
  try {
    const diapason::Result<diapason::Collective> parsed = diapason::ParseCollective(
        diapason::Library::kNccl, collective == nullptr ? "" : collective);
    if (!parsed.ok() || !(milliseconds > 0) || !(milliseconds < 1e9)) return -1;
    return LearningThread::Instance().Report(parsed.value(), bytes, milliseconds / 1e3) ? 0 : 1;
  } catch (...) {
    return -1;
  }
}
