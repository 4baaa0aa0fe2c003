// Answers of NCCL's RAS: whatever they hold, parsing ends and stays within its limits, and the
// judge survives them.
#include "fuzz.h"
#include "watch/ras_judge.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;         // NOLINT
  using namespace diapason::watch;  // NOLINT
  const std::string_view text = fuzz::Text(data, size);
  const Result<RasAnswer> answer = ParseRasAnswer(text);
  if (!answer.ok()) {
    fuzz::Promise(!answer.status().message().empty(), "an error says why");
    return 0;
  }
  size_t ranks = 0;
  for (const RasCommunicator& communicator : answer.value().communicators) {
    ranks += communicator.ranks.size();
    for (const RasRank& rank : communicator.ranks) {
      fuzz::Promise(rank.counts.size() <= kMostRasFunctions, "counts have a limit");
    }
  }
  fuzz::Promise(ranks <= kMostRasRanks, "ranks have a limit");
  fuzz::Promise(answer.value().communicators.size() <= kMostRasCommunicators,
                "communicators have a limit");
  RasJudge judge;
  for (int i = 0; i < 10; ++i) {
    judge.SeeAnswer(i, answer.value(), {"127.0.0.1"});
    const RasVerdict verdict = judge.Judge(i);
    judge.View(i, verdict);
    fuzz::Promise(!IsBlame(verdict.kind) || !verdict.text.empty(), "a verdict says why");
  }
  return 0;
}
