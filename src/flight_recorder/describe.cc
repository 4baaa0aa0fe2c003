#include "flight_recorder/describe.h"

#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "flight_recorder/words.h"

namespace diapason::flight_recorder {

std::vector<int64_t> Describe::Ranks(const std::vector<uint32_t>& indexes) const {
  std::vector<int64_t> ranks;
  for (const uint32_t index : indexes) ranks.push_back(job_.rank(index).dump->rank);
  return ranks;
}

std::string Describe::Words(const std::vector<uint32_t>& indexes) const {
  return RankWords(Ranks(indexes));
}

std::string Describe::Group(uint32_t group) const { return job_.record().groups[group].Text(); }

std::string Describe::Operation(const Node& node) const {
  const Entry& entry = *node.op->entry;
  if (node.from < 0) {
    return Format("collective {} of {}, {}", node.sequence, Group(node.group),
                  job_.record().CallText(entry));
  }
  const bool send = node.op->send;
  return Format("{} {} {} in {}, {}", send ? "the send to" : "the receive from", "rank",
                send ? node.to : node.from, Group(node.group), job_.record().CallText(entry));
}

std::string Describe::From(const Entry& entry) const {
  const std::string& frames = job_.record().frames[entry.frames];
  return frames.empty() ? "" : ", called from " + frames;
}

std::string Describe::Since(const Entry& entry) {
  if (entry.created_ns <= 0) return "";
  const auto seconds = static_cast<time_t>(entry.created_ns / 1000000000);
  tm broken = {};
  char text[32];
  if (gmtime_r(&seconds, &broken) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &broken) == 0) {
    return "";
  }
  return Format(" since {} UTC", text);
}

std::string Describe::Wait(const Node& node, const std::vector<uint32_t>& waiting,
                           const std::vector<uint32_t>& awaited) const {
  const Entry& entry = *node.op->entry;
  const std::string start = Format("{} {} for {}", Words(waiting),
                                   waiting.size() == 1 ? "waits" : "wait", Words(awaited));
  if (node.from < 0) return start + " in " + Operation(node) + From(entry);
  return Format("{} to {} in {}: {}{}", start, node.op->send ? "receive" : "send",
                Group(node.group), job_.record().CallText(entry), From(entry));
}

std::string Describe::LastCall(uint32_t rank) const {
  const RankProgress& progress = job_.rank(rank);
  const std::string start = Format("{}: rank {} ", progress.dump->name, progress.dump->rank);
  if (progress.ops.empty()) {
    return start + "has no entry of its last calls; it is in no operation";
  }
  const Op& op = progress.ops.back();
  const Entry& entry = *op.entry;
  const std::string what = job_.record().CallText(entry);
  std::string text = start + "last called ";
  if (entry.p2p) {
    text += Format("{} {} rank {} in {}", what, op.send ? "to" : "from", op.send ? op.to : op.from,
                   Group(entry.group));
  } else {
    text += Format("{}, collective {} of {}", what, entry.sequence, Group(entry.group));
  }
  return text + (op.open ? ", which is open" : ", which is completed") + From(entry);
}

std::vector<std::string> Describe::Chains(const std::vector<uint32_t>& roots, size_t most) const {
  std::vector<char> reached(job_.ranks().size(), 0);
  std::vector<std::string> lines;
  size_t left_out = 0;
  std::vector<uint32_t> level = roots;
  for (const uint32_t rank : roots) reached[rank] = 1;
  while (!level.empty()) {
    std::vector<uint32_t> next;
    for (const uint32_t rank : level) {
      for (const uint32_t id : graph_.WaitFor(rank)) {
        const Node& node = graph_.nodes()[id];
        std::vector<uint32_t> waiting;
        for (const uint32_t other : node.waiting) {
          if (reached[other] != 0) continue;
          reached[other] = 1;
          waiting.push_back(other);
        }
        if (waiting.empty()) continue;
        next.insert(next.end(), waiting.begin(), waiting.end());
        std::vector<uint32_t> awaited;
        for (const uint32_t other : level) {
          const auto in = [&](const std::vector<uint32_t>& list) {
            return std::find(list.begin(), list.end(), other) != list.end();
          };
          if (in(node.absent) || in(node.queued) || in(node.later)) awaited.push_back(other);
        }
        if (lines.size() < most) {
          lines.push_back(Wait(node, waiting, awaited.empty() ? level : awaited));
        } else {
          ++left_out;
        }
      }
    }
    level = std::move(next);
  }
  if (left_out > 0) lines.push_back(Format("and {} more such waits", left_out));
  return lines;
}

}  // namespace diapason::flight_recorder
