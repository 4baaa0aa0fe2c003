// Inline policies: the word itself, and what stands behind a right checksum.
#include "base/encoding.h"
#include "base/text.h"
#include "fuzz.h"
#include "policy/inline.h"
#include "policy/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;          // NOLINT
  using namespace diapason::policy;  // NOLINT
  const std::string_view text = fuzz::Text(data, size);
  (void)DecodeInline(text).ok();
  // The checksum stops a fuzzer at the door: hand it one that fits.
  const std::string body = "d1." + EncodeBase64Url(text);
  const std::string word = body + Format(".{:016x}", Fnv1a64(body));
  const Result<Policy> decoded = DecodeInline(word);
  if (!decoded.ok()) return 0;
  const ParseOutcome again = ParsePolicy(PolicyText(decoded.value()), {});
  fuzz::Promise(again.errors == 0, "a decoded policy is one that a file could hold");
  fuzz::Promise(Digest(again.policy) == Digest(decoded.value()), "writing keeps the rules");
  return 0;
}
