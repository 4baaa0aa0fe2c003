// The reward file, and why nothing is learned: the part of LearningWorker for rank 0.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "plugin/learning/learning_worker.h"

namespace diapason::plugin {
namespace {

// When it is said why nothing is learned: time enough to judge the reward file.
constexpr uint64_t kCallsToSayWhy = 4096;
constexpr double kSecondsToSayWhy = 20;

}  // namespace

void LearningWorker::ReadRewardFile(double now) {
  if (reward_file_ == nullptr) return;
  std::string problem;
  std::vector<learn::RewardLine> lines;
  if (!reward_file_->Poll(now, &lines, &problem)) return;
  // The first call of a context may have been made, and logged, since the contexts were taken.
  TakeContexts();
  for (const learn::RewardLine& line : lines) {
    ++file_lines_;
    if (line.ranks != options_.shape.ranks || line.nodes != options_.shape.nodes) {
      ++foreign_lines_;
      foreign_ = line;
      continue;
    }
    for (const auto& context : contexts_) {
      if (context->shared->collective == line.collective &&
          context->shared->band == SizeBand(line.bytes)) {
        context->explorer->Line(line);
      }
    }
  }
  for (const auto& context : contexts_) context->explorer->FileRead();
  if (!problem.empty()) handover_->log.Warn(problem);
}

std::string LearningWorker::FileTrouble() const {
  const std::string& path = reward_file_->path();
  if (!reward_file_->found()) return "the reward file " + path + " is not there";
  if (file_lines_ == 0) return "no line was added to the reward file " + path;
  const std::string lines = Format("the {} lines of the reward file {} ", file_lines_, path);
  if (foreign_lines_ == file_lines_) {
    return lines +
           Format("are for another communicator: {} nodes and {} ranks, and this one has {} and {}",
                  foreign_.nodes, foreign_.ranks, options_.shape.nodes, options_.shape.ranks);
  }
  uint64_t ours = 0;
  for (const auto& context : contexts_) {
    const RewardSources& rewards = context->explorer->rewards();
    const std::optional<std::string> trouble = rewards.FileTrouble();
    if (trouble.has_value()) {
      return Format("the lines of the reward file {} for {} {}", path, context->shared->Name(),
                    *trouble);
    }
    ours += rewards.file_lines();
  }
  if (ours == 0) return lines + "are for collectives or sizes that are not called";
  return lines + "do not prove yet that every call has its line";
}

void LearningWorker::SayWhyNothing(double now) {
  if (calls_of_all_ == 0) return;
  if (first_call_at_ == 0) first_call_at_ = now;
  if (calls_of_all_ < kCallsToSayWhy || now - first_call_at_ < kSecondsToSayWhy || frozen_) return;
  said_why_ = true;
  const Context* busiest = nullptr;
  bool any = false;
  bool by_file = false;
  uint64_t most = 0;
  for (const auto& context : contexts_) {
    any = any || context->explorer->has_results() || context->explorer->decided();
    by_file = by_file || context->explorer->rewards().source() == RewardSource::kFile;
    const uint64_t calls = handover_->CallsMade(*context->shared);
    if (calls > most) busiest = context.get();
    most = std::max(most, calls);
  }
  if (busiest == nullptr) return;
  const std::string file = reward_file_ != nullptr && !by_file ? FileTrouble() : "";
  if (!any) {
    const std::string why = busiest->explorer->WhyNothing();
    handover_->log.Warn(Format("nothing is learned after {} calls: {}{}{}", calls_of_all_, why,
                               why.empty() || file.empty() ? "" : ", ", file));
  } else if (!options_.reward_file.empty() && !file.empty()) {
    handover_->log.Warn("the reward file is not used: " + file);
  }
}

}  // namespace diapason::plugin
