#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/stats.h"
#include "base/text.h"
#include "dataset/import.h"
#include "domain/collectives.h"
#include "measure/iteration.h"

namespace diapason::measure {
namespace {

// Whether the file's last line has been cut off: ours must not be glued to it.
bool EndsInsideALine(int file, off_t size) {
  char last = '\n';
  return size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n';
}

Status Append(int file, const std::string& path, std::string text) {
  struct stat info {};
  if (fstat(file, &info) != 0) return IoError(path + ": " + ErrnoText(errno));
  if (!S_ISREG(info.st_mode)) return Invalid(path + " is no ordinary file");
  if (EndsInsideALine(file, info.st_size)) text.insert(0, "\n");
  ssize_t written = 0;
  do {
    written = write(file, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return IoError(path + ": " + ErrnoText(errno));
  if (static_cast<size_t>(written) != text.size()) {
    return IoError(path + ": only a part could be written; is the disk full?");
  }
  return {};
}

}  // namespace

Status AppendRewards(const std::string& path, const IterationSpec& spec,
                     const IterationTimes& times, int nodes, int ranks, bool simulated) {
  if (spec.buckets.empty()) return Invalid("an iteration without buckets has no rewards");
  // Nobody chooses how an all_to_all runs: where there is anything else, the reward is for that.
  const auto weight = [](const Bucket& bucket) {
    return std::pair(CanChoose(Library::kNccl, NamesOf(bucket.operation)), bucket.bytes);
  };
  const Bucket& bucket =
      *std::max_element(spec.buckets.begin(), spec.buckets.end(),
                        [&](const Bucket& a, const Bucket& b) { return weight(a) < weight(b); });
  const std::optional<Collective> collective = CollectiveOf(bucket.operation);
  if (!collective.has_value()) return Invalid("a bucket without a collective has no rewards");
  const std::string front =
      std::string(CollectiveName(*collective)) + Format(",{},{},{},", bucket.bytes, nodes, ranks);
  std::string text;
  for (const double seconds : times.steps) text += front + Format("{:.6f}\n", seconds * 1e3);
  if (simulated) {
    // Who learns from the file skips comments; an import keeps these.
    text = Format("{}\n{}{}\n", dataset::kSimulatedMark, text, dataset::kSimulatedEnd);
  }
  // Not blocking: opening a pipe without a reader would block for ever.
  const Descriptor file(
      open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
  if (!file.open()) return IoError(path + ": " + ErrnoText(errno));
  return Append(file.get(), path, std::move(text));
}

double ExposedSeconds(const IterationTimes& times) {
  if (times.steps.empty() || times.compute.empty()) return 0;
  return std::max(0.0, Median(times.steps) - Median(times.compute));
}

double OverlapEfficiency(const IterationTimes& times) {
  if (times.communication.empty()) return 0;
  const double communication = Median(times.communication);
  if (!(communication > 0)) return 0;
  return std::clamp(1 - ExposedSeconds(times) / communication, 0.0, 1.0);
}

}  // namespace diapason::measure
