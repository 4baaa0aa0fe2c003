#include <cmath>

#include "base/random.h"
#include "played_library.h"

namespace played {

double LabPhysics::Cost(size_t bytes, int algorithm, int protocol) const {
  if (algorithm > 1 || protocol == 1) return -1;
  // The formula's opinion: ring always, ll for small calls.
  const double kib = static_cast<double>(bytes) / 1024;
  const double ll = (algorithm == 1 ? 20 : 24) + 1.5 * kib;
  const double simple = (algorithm == 1 ? 60 : 66) + 0.3 * kib;
  return protocol == 0 ? ll : simple;
}

double LabPhysics::Time(size_t bytes, const Choice& choice, uint64_t call, int rank) const {
  const double kib = static_cast<double>(bytes) / 1024;
  double time = 0;
  if (choice.algorithm == 0) {
    time = choice.protocol == 0 ? 70 + 3.2 * kib : 130 + 0.7 * kib;
  } else {
    time = choice.protocol == 0 ? 112 + 2.8 * kib : 280 + 0.55 * kib;
  }
  if (choice.channels == 1 && bytes >= (256u << 10)) time *= 0.82;
  const diapason::CounterRandom random(17 + static_cast<uint64_t>(rank), bytes);
  const double spike = random.Uniform(2 * call + 1) < 0.01 ? 3 : 1;
  return time * std::exp(0.04 * random.Normal(2 * call)) * spike;
}

}  // namespace played
