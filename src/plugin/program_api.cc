// The calls of diapason.h, for programs that find the plugin in their process.
#include "base/version.h"
#include "diapason/diapason.h"
#include "plugin/abi.h"
#include "plugin/pin.h"

using diapason::plugin::Pin;

DIAPASON_EXPORT const char* diapason_version(void) { return diapason::kVersion; }

DIAPASON_EXPORT int diapason_pin(int algorithm, int protocol, int channels) {
  return Pin::Instance().Set(algorithm, protocol, channels) ? 0 : -1;
}

DIAPASON_EXPORT void diapason_unpin(void) { Pin::Instance().Clear(); }

DIAPASON_EXPORT void diapason_pin_counts(unsigned long long* asked, unsigned long long* applied) {
  if (asked != nullptr) *asked = Pin::Instance().asked();
  if (applied != nullptr) *applied = Pin::Instance().applied();
}
