#include "domain/decision.h"

#include <array>

#include "base/text.h"
#include "base/units.h"

namespace diapason {
namespace {

struct ReasonWords {
  Reason reason;
  std::string_view name;
  std::string_view sentence;
};

constexpr std::array<ReasonWords, 16> kReasons{{
    {Reason::kNoRow, "no-row", "no row matches"},
    {Reason::kRow, "row", "a row of the policy"},
    {Reason::kPinned, "pinned", "pinned by the program"},
    {Reason::kUnavailable, "unavailable", "the library does not offer this pair here"},
    {Reason::kUnknownSupport, "unknown-support",
     "this tuner API does not say whether the pair works here"},
    {Reason::kPartialRow, "partial-row",
     "the row names half a pair, which this tuner API cannot express"},
    {Reason::kFp8Guard, "fp8-guard", "the library steers 8-bit reductions away from ring"},
    {Reason::kTreeTooSmall, "tree-too-small", "tree does not work below 64 bytes on RCCL"},
    {Reason::kNoPolicy, "no-policy", "no policy is in use"},
    {Reason::kLibraryRule, "library-rule",
     "the library's own rule, which it drops while a tuner is loaded"},
    {Reason::kTrying, "trying", "all ranks try it for some calls"},
    {Reason::kLearned, "learned", "the best one known in this job"},
    {Reason::kWarmUp, "warm-up", "a first use, which does not count"},
    {Reason::kHeld, "held", "nothing was agreed in time: the best one known so far"},
    {Reason::kNumerics, "numerics",
     "it could change the last bits of sums, and DIAPASON_NUMERICS=pinned forbids that"},
    {Reason::kDefaultTurn, "default-turn",
     "a row matches, and it is the turn of the library's default"},
}};

}  // namespace

std::string ConfigText(Library library, Collective collective, const Config& config) {
  std::string text;
  if (config.algorithm == kKeep && config.protocol == kKeep) {
    text = "library default";
  } else {
    text = config.algorithm == kKeep
               ? "any"
               : std::string(AlgorithmName(library, collective, config.algorithm));
    // Open MPI has no protocols.
    if (!Protocols(library).empty()) {
      text += config.protocol == kKeep ? "/any"
                                       : "/" + std::string(ProtocolName(library, config.protocol));
    }
  }
  if (config.channels > 0) text += ", " + Count(static_cast<size_t>(config.channels), "channel");
  if (config.segment_bytes > 0) {
    text += ", segments of " + FormatBytes(static_cast<uint64_t>(config.segment_bytes));
  }
  return text;
}

std::string_view ReasonName(Reason reason) { return kReasons[static_cast<size_t>(reason)].name; }

std::string_view ReasonSentence(Reason reason) {
  return kReasons[static_cast<size_t>(reason)].sentence;
}

Result<Reason> ParseReason(std::string_view name) {
  for (const ReasonWords& words : kReasons) {
    if (words.name == name) return words.reason;
  }
  return Invalid(Format("unknown reason '{}'", name));
}

}  // namespace diapason
