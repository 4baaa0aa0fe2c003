// Policy files: whatever the bytes, the reader answers; and what it accepts survives every way
// round.
#include "fuzz.h"
#include "policy/inline.h"
#include "policy/parse.h"
#include "policy/table.h"

namespace diapason::policy {
namespace {

// First match, the plain way.
int FirstMatch(const Policy& policy, const Shape& shape, const Question& question) {
  for (const Rule& rule : policy.rules) {
    if (rule.collective == question.collective && rule.MatchesShape(shape) &&
        question.bytes >= rule.min_bytes && question.bytes <= rule.max_bytes &&
        (rule.pipe_ops == kAny || rule.pipe_ops == question.pipe_ops) &&
        (rule.reg_buff == kAny || rule.reg_buff == question.reg_buff)) {
      return rule.line;
    }
  }
  return 0;
}

void CheckAnswers(const Policy& policy, const Rule& rule) {
  DecisionTable::Options options;
  options.shape = {rule.nodes == kAny ? 1 : rule.nodes, rule.ranks == kAny ? 8 : rule.ranks};
  options.use_reg_buff_rows = true;
  const DecisionTable table(policy, options);
  for (const uint64_t bytes : {rule.min_bytes, rule.max_bytes, rule.min_bytes - 1,
                               rule.max_bytes + 1, uint64_t{0}, UINT64_MAX}) {
    const Question question{rule.collective, bytes, rule.pipe_ops == kAny ? 1 : rule.pipe_ops,
                            rule.reg_buff == kAny ? 0 : rule.reg_buff};
    const DecisionTable::Entry* entry = table.Find(question);
    fuzz::Promise(
        (entry == nullptr ? 0 : entry->line) == FirstMatch(policy, options.shape, question),
        "the table answers as a scan does");
  }
}

}  // namespace
}  // namespace diapason::policy

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;          // NOLINT
  using namespace diapason::policy;  // NOLINT
  for (const Library library : {Library::kNccl, Library::kRccl, Library::kOpenMpi}) {
    const ParseOutcome outcome = ParsePolicy(fuzz::Text(data, size), {library});
    if (outcome.errors > 0) continue;
    const Policy& read = outcome.policy;
    const ParseOutcome again = ParsePolicy(PolicyText(read), {});
    fuzz::Promise(again.errors == 0, "what we write, we read");
    fuzz::Promise(Digest(again.policy) == Digest(read), "writing keeps the rules");
    const Result<Policy> inlined = DecodeInline(EncodeInline(read));
    fuzz::Promise(inlined.ok(), "what we encode, we decode");
    fuzz::Promise(Digest(inlined.value()) == Digest(read), "encoding keeps the rules");
    if (!read.rules.empty()) CheckAnswers(read, read.rules[size % read.rules.size()]);
  }
  return 0;
}
