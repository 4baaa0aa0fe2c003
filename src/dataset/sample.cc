#include "dataset/sample.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/collectives.h"

namespace diapason::dataset {

std::string Point::ConfigText() const {
  std::string text = "library default";
  if (!algorithm.empty() || !protocol.empty()) {
    text = algorithm.empty() ? "any" : algorithm;
    if (!protocol.empty()) text += "/" + protocol;
  }
  if (channels > 0) text += ", " + Count(static_cast<size_t>(channels), "channel");
  if (segment_bytes > 0) {
    text += ", segments of " + FormatBytes(static_cast<uint64_t>(segment_bytes));
  }
  if (!environment.empty()) text += ", " + environment;
  return text;
}

bool Point::SameContext(const Point& other) const {
  return kind == other.kind && collective == other.collective && bytes == other.bytes &&
         nodes == other.nodes && ranks == other.ranks && type == other.type &&
         reduce == other.reduce && root == other.root && in_place == other.in_place &&
         workload == other.workload;
}

const char* OutcomeName(SampleOutcome outcome) {
  switch (outcome) {
    case SampleOutcome::kFine:
      return "fine";
    case SampleOutcome::kWrong:
      return "wrong";
    case SampleOutcome::kHang:
      return "hang";
    case SampleOutcome::kCrash:
      return "crash";
    case SampleOutcome::kRefused:
      return "refused";
  }
  return "?";
}

std::string NewRunId() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  uint64_t random = 0;
  if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) {
    // Kernels without it are older than any supported GPU driver; the clock and the process id
    // distinguish runs well enough there.
    random = MixBits(static_cast<uint64_t>(now.count()) ^ MixBits(static_cast<uint64_t>(getpid())));
  }
  const time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  return Format("{}-{:016x}", UtcText(seconds, "%Y%m%d-%H%M%S"), random);
}

double BusFactorOf(const std::string& collective, int ranks) {
  for (const TestedCollective& known : TestedCollectives()) {
    if (collective == known.name) return BusFactor(known.passes, ranks);
  }
  return 1;
}

double BusBandwidth(const Point& point, double seconds) {
  return static_cast<double>(point.bytes) / seconds * BusFactorOf(point.collective, point.ranks);
}

}  // namespace diapason::dataset
