#pragma once

#include <cstdint>
#include <vector>

#include "journal/reader.h"

namespace diapason::journal {

// The results of a job in one context, from its rewards and decisions.
struct LearningArm {
  // From the last decisions: in use, tried in the last epoch, or neither.
  enum class State { kInUse, kTried, kLeft };
  Config config;
  State state = State::kLeft;
  size_t blocks = 0;
  uint64_t samples = 0;
  double seconds = 0;  // the median of its blocks
  // The median of the ratios of its blocks' times to the default's in the same epoch; 0: there was
  // none.
  double ratio = 0;
  double skew = 0;  // the median; 0: not known

  // "in use", "being tried", "".
  const char* StateText() const {
    return state == State::kInUse ? "in use" : state == State::kTried ? "being tried" : "";
  }
};

struct LearningEpoch {
  uint32_t epoch = 0;
  struct Block {
    Config config;
    uint64_t first = 0;  // number of its first call in the context
    double seconds = 0;
    double ratio = 0;  // to the default in this epoch; 0: there was none
    uint32_t samples = 0;
    double skew = 0;
  };
  std::vector<Block> blocks;  // in call order
  uint64_t decisions = 0;     // this process made in it
  uint64_t held = 0;          // of those: held, because no proposal was there in time
};

struct JournalContext {
  uint32_t communicator = 0;
  Collective collective = Collective::kAllReduce;
  int band = 0;
  bool iterations = false;            // the times are of whole iterations
  std::vector<LearningEpoch> epochs;  // with rewards or decisions, in increasing order
  std::vector<LearningArm> arms;      // the default first, then by ratio
};

// Contexts with counted calls, by communicator, collective and size.
std::vector<JournalContext> LearningOf(const JournalContents& contents);

}  // namespace diapason::journal
