#include "plugin/learning/learned_policy.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/text.h"
#include "policy/merge.h"
#include "policy/parse.h"

namespace diapason::plugin {
namespace {

constexpr int kLockTries = 200;
constexpr long kLockPauseNs = 5000000;

// Held while the file is read, changed and written back.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    for (int i = 0; fd_.open() && i < kLockTries; ++i) {
      if (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) {
        held_ = true;
        return;
      }
      const timespec pause{0, kLockPauseNs};
      nanosleep(&pause, nullptr);
    }
  }
  bool held() const { return held_; }

 private:
  Descriptor fd_;
  bool held_ = false;
};

std::string Today() {
  const time_t now = time(nullptr);
  tm parts;
  char text[32] = "";
  if (gmtime_r(&now, &parts) != nullptr) strftime(text, sizeof(text), "%Y-%m-%d", &parts);
  return text;
}

}  // namespace

policy::Rule LearnedRow(const LearnedContext& context, const Shape& shape) {
  policy::Rule rule;
  rule.collective = context.collective;
  rule.min_bytes = BandFirst(context.band);
  rule.max_bytes = BandLast(context.band);
  rule.config = context.best;
  rule.nodes = shape.nodes;
  rule.ranks = shape.ranks;
  uint64_t samples = 0;
  for (const learn::ArmSummary& arm : context.arms) samples += arm.samples;
  if (context.best.IsDefault()) {
    rule.remark =
        Format("the library's default, nothing of {} was faster; {} samples, {}",
               context.arms.empty() ? size_t{0} : context.arms.size() - 1, samples, Today());
    return rule;
  }
  for (const learn::ArmSummary& arm : context.arms) {
    if (arm.config != context.best || !(arm.ratio > 0)) continue;
    rule.remark = Format(
        "{:.3f} x as fast as the default ({:.3f} to {:.3f}), {:.1f} us, {} samples of {}, {}",
        1 / arm.ratio, 1 / arm.high, 1 / arm.low, arm.seconds * 1e6, arm.samples, samples, Today());
  }
  return rule;
}

Status SaveLearned(const std::string& path, Library library, const Shape& shape,
                   const std::vector<LearnedContext>& contexts) {
  const FileLock lock(path + ".lock");
  if (!lock.held()) return TimedOut("another process is writing '" + path + "'");
  policy::Policy policy;
  policy.library = library;
  policy.header.origin = "learned in jobs";
  if (FileExists(path)) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path, policy::kMostBytes));
    policy::ParseOptions options;
    options.library = library;
    ASSIGN_OR_RETURN(policy::Policy read, policy::ParseStrictly(text, path, options));
    if (read.library != library) {
      return Invalid("'" + path + "' is a policy for another library");
    }
    policy = std::move(read);
  }
  std::vector<policy::Rule> rows;
  for (const LearnedContext& context : contexts) rows.push_back(LearnedRow(context, shape));
  return WriteFileAtomically(path, policy::PolicyText(policy::MergeLearned(policy, rows)));
}

}  // namespace diapason::plugin
