#pragma once

// A job of ranks with tensor, data, pipeline and expert parallel groups, run step by step with one
// fault in it, and the dumps that its flight recorders would write. It knows nothing of the code
// that analyses dumps.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace diapason::flight_recorder::simulated {

enum class Fault {
  kNone,
  kEarlierDump,  // healthy: one dump was written while the job still ran
  kStopped,      // a rank does not make its next call
  kStoppedWithoutDump,
  kWrongSize,
  kWrongType,
  kWrongOperation,
  kMissingSend,
  kCrossedOrder,  // two groups in another order on one rank
  kNetwork,       // a collective that all have entered does not complete
  kGpu,           // a GPU stops: nothing completes on its rank any more
};

struct Call {
  int group = 0;
  std::string operation;
  int64_t elements = 0;
  int64_t received = 0;  // of an all_to_all
  std::string type = "Float";
  int peer = -1;  // of a send or receive
  bool send = false;
  bool p2p() const { return peer >= 0; }
};

struct SimulatedGroup {
  std::string name;
  std::string description;
  std::vector<int> ranks;
};

class Job {
 public:
  explicit Job(uint32_t seed, Fault fault) : random_(seed), fault_(fault) {
    tp_ = 2 + Random(2);
    dp_ = 2 + Random(2);
    pp_ = 1 + Random(3);
    if (fault == Fault::kMissingSend) pp_ = 2 + Random(2);
    window_ = 1 + Random(6);
    timing_ = Random(2) == 0;
    frames_ = Random(2) == 0;
    MakeGroups();
    MakeCalls();
    PlaceFault();
    posted_.resize(ranks());
    done_.resize(ranks());
    seen_done_.resize(ranks());
    Run();
  }

  size_t ranks() const { return static_cast<size_t>(tp_ * dp_ * pp_); }
  int culprit() const { return culprit_; }
  int group() const { return faulty_group_; }
  size_t GroupSize() const { return groups_[static_cast<size_t>(faulty_group_)].ranks.size(); }
  bool HasDump(int rank) const { return fault_ != Fault::kStoppedWithoutDump || rank != culprit_; }

  // The dump of a rank. `keep` entries at most, the newest; only those not completed if `open`.
  std::string Dump(int rank, size_t keep, bool open) const {
    const auto r = static_cast<size_t>(rank);
    std::map<int, int64_t> sequence;
    std::map<int, int64_t> sends;
    std::vector<std::string> entries;
    std::map<int, std::pair<int64_t, int64_t>> status;  // enqueued, completed
    for (size_t group = 0; group < groups_.size(); ++group) {
      if (IsMember(rank, group)) status[static_cast<int>(group)] = {-1, -1};
    }
    const bool early = fault_ == Fault::kEarlierDump && rank == culprit_;
    const size_t end = early ? early_ : posted_[r];
    const size_t finished = early ? early_done_ : seen_done_[r];
    for (size_t i = 0; i < end; ++i) {
      const Call& call = calls_[r][i];
      const int64_t own = call.p2p() ? ++sends[call.group] : ++sequence[call.group];
      const bool done = i < finished;
      auto& [enqueued, completed] = status[call.group];
      enqueued = own;
      if (done) completed = own;
      if (open && done) continue;
      const bool head = i == finished;
      entries.push_back(EntryText(rank, call, i, sequence[call.group], sends[call.group],
                                  done              ? "completed"
                                  : timing_ && head ? "started"
                                                    : "scheduled"));
    }
    if (entries.size() > keep) {
      entries.erase(entries.begin(), entries.end() - static_cast<ptrdiff_t>(keep));
    }
    std::string text = "{\"version\":\"2.10\",\"entries\":[";
    for (size_t i = 0; i < entries.size(); ++i) text += (i == 0 ? "" : ",") + entries[i];
    text += "],\"pg_config\":{" + ConfigText(rank) + "},\"pg_status\":{";
    bool first = true;
    for (const auto& [group, numbers] : status) {
      text += std::string(first ? "" : ",") + "\"" + std::to_string(Number(rank, group)) +
              "\":{\"last_enqueued_collective\":\"" + std::to_string(numbers.first) +
              "\",\"last_started_collective\":\"-1\",\"last_completed_collective\":\"" +
              std::to_string(numbers.second) + "\"}";
      first = false;
    }
    return text + "}}";
  }

 private:
  static constexpr size_t kEarlier = 5;  // calls between two dumps

  int Random(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }

  bool IsMember(int rank, size_t group) const {
    const std::vector<int>& members = groups_[group].ranks;
    return std::find(members.begin(), members.end(), rank) != members.end();
  }
  int RankAt(int stage, int data, int tensor) const { return (stage * dp_ + data) * tp_ + tensor; }
  int Stage(int rank) const { return rank / (tp_ * dp_); }

  void MakeGroups() {
    groups_.push_back({"0", "default_pg", {}});
    for (int rank = 0; rank < static_cast<int>(ranks()); ++rank) groups_[0].ranks.push_back(rank);
    for (int stage = 0; stage < pp_; ++stage) {
      SimulatedGroup experts{"", "ep", {}};
      for (int data = 0; data < dp_; ++data) {
        SimulatedGroup tensor{"", "tp", {}};
        for (int t = 0; t < tp_; ++t) tensor.ranks.push_back(RankAt(stage, data, t));
        experts.ranks.insert(experts.ranks.end(), tensor.ranks.begin(), tensor.ranks.end());
        groups_.push_back(tensor);
      }
      for (int t = 0; t < tp_; ++t) {
        SimulatedGroup data{"", "dp", {}};
        for (int d = 0; d < dp_; ++d) data.ranks.push_back(RankAt(stage, d, t));
        groups_.push_back(data);
      }
      groups_.push_back(experts);
    }
    for (int data = 0; data < dp_; ++data) {
      for (int t = 0; t < tp_; ++t) {
        SimulatedGroup pipeline{"", "pp", {}};
        for (int stage = 0; stage < pp_; ++stage) {
          pipeline.ranks.push_back(RankAt(stage, data, t));
        }
        groups_.push_back(pipeline);
      }
    }
    for (size_t i = 0; i < groups_.size(); ++i) groups_[i].name = std::to_string(i);
  }

  int GroupOf(int rank, const std::string& description) const {
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].description == description && IsMember(rank, i)) return static_cast<int>(i);
    }
    return 0;
  }
  // The number of a group on this rank: it counts its own groups.
  int Number(int rank, int group) const {
    int number = 0;
    for (int i = 0; i < group; ++i) number += IsMember(rank, static_cast<size_t>(i)) ? 1 : 0;
    return number;
  }

  void MakeCalls() {
    calls_.resize(ranks());
    const int iterations = 2 + Random(3);
    const int layers = 1 + Random(3);
    for (int rank = 0; rank < static_cast<int>(ranks()); ++rank) {
      std::vector<Call>& calls = calls_[static_cast<size_t>(rank)];
      const int step = tp_ * dp_;
      for (int i = 0; i < iterations; ++i) {
        if (Stage(rank) > 0) {
          calls.push_back({GroupOf(rank, "pp"), "recv", 64, 0, "Float", rank - step, false});
        }
        for (int layer = 0; layer < layers; ++layer) {
          calls.push_back({GroupOf(rank, "tp"), "_all_gather_base", 128 + layer});
          // What ranks send and receive differs.
          calls.push_back({GroupOf(rank, "ep"), "all_to_all", 100 + rank % step, 100});
          calls.back().received = 100 + (rank + 1) % step;
          calls.push_back({GroupOf(rank, "tp"), "all_reduce", 256 + layer});
        }
        if (Stage(rank) + 1 < pp_) {
          calls.push_back({GroupOf(rank, "pp"), "send", 64, 0, "Float", rank + step, true});
        }
        calls.push_back({GroupOf(rank, "dp"), "_reduce_scatter_base", 4096});
        calls.push_back({GroupOf(rank, "dp"), "broadcast", 512});
        calls.push_back({0, "all_reduce", 1});
      }
    }
  }

  // A call of the culprit, not among the first ones, that `fits`.
  template <typename Fits>
  void PickCall(const Fits& fits) {
    std::vector<size_t> found;
    const std::vector<Call>& calls = calls_[static_cast<size_t>(culprit_)];
    for (size_t i = calls.size() / 3; i + 1 < calls.size(); ++i) {
      if (fits(calls[i])) found.push_back(i);
    }
    if (!found.empty()) at_ = found[random_() % found.size()];
  }

  void PlaceFault() {
    culprit_ = Random(static_cast<int>(ranks()));
    if (fault_ == Fault::kMissingSend) culprit_ = Random(tp_ * dp_ * (pp_ - 1));
    std::vector<Call>& calls = calls_[static_cast<size_t>(culprit_)];
    PickCall([&](const Call& call) {
      if (fault_ == Fault::kMissingSend) return call.send;
      // Its own number differs, so that the sum of all is wrong and no rank is.
      if (call.operation == "all_to_all") return fault_ == Fault::kStopped;
      return !call.p2p();
    });
    faulty_group_ = calls[at_].group;
    if (fault_ == Fault::kWrongSize) calls[at_].elements += 7;
    if (fault_ == Fault::kWrongType) calls[at_].type = "BFloat16";
    if (fault_ == Fault::kWrongOperation) calls[at_].operation = "reduce";
    if (fault_ == Fault::kMissingSend) {
      // The last one, so that no later one takes its place.
      for (size_t i = 0; i < calls.size(); ++i) {
        if (calls[i].send) at_ = i;
      }
      calls.erase(calls.begin() + static_cast<ptrdiff_t>(at_));
      calls.resize(at_);
    }
    if (fault_ == Fault::kCrossedOrder) {
      for (size_t i = at_; i + 1 < calls.size(); ++i) {
        // The last call of an iteration and the one before it, which is of another group.
        if (calls[i + 1].group == 0) {
          std::swap(calls[i], calls[i + 1]);
          break;
        }
      }
    }
  }

  // Whether the call at the head of a rank's queue is complete.
  bool Matches(int rank, const Call& call, int64_t sequence) const {
    const std::vector<int> peers =
        call.p2p() ? std::vector<int>{call.peer} : groups_[static_cast<size_t>(call.group)].ranks;
    for (const int peer : peers) {
      if (peer == rank) continue;
      const auto p = static_cast<size_t>(peer);
      // The other one has run it already in this step, or has it at its head.
      int64_t others = 0;
      for (size_t i = 0; i < std::min(posted_[p], done_[p] + 1); ++i) {
        const Call& other = calls_[p][i];
        if (other.group != call.group || other.p2p() != call.p2p()) continue;
        if (call.p2p() && (other.peer != rank || other.send == call.send)) continue;
        if (++others != sequence) continue;
        const bool fits = call.p2p() ||
                          (other.operation == call.operation && other.elements == call.elements &&
                           other.type == call.type) ||
                          call.operation == "all_to_all";
        if (!fits) return false;
      }
      if (others < sequence) return false;
    }
    return true;
  }

  // How many calls like call `at` of a rank there are up to it.
  int64_t Sequence(int rank, size_t at) const {
    const std::vector<Call>& calls = calls_[static_cast<size_t>(rank)];
    int64_t sequence = 0;
    for (size_t i = 0; i <= at; ++i) {
      sequence += calls[i].group == calls[at].group && calls[i].p2p() == calls[at].p2p() &&
                          (!calls[at].p2p() ||
                           (calls[i].peer == calls[at].peer && calls[i].send == calls[at].send))
                      ? 1
                      : 0;
    }
    return sequence;
  }

  bool Blocked(int rank, size_t at) const {
    if (fault_ != Fault::kNetwork) return false;
    const Call& call = calls_[static_cast<size_t>(rank)][at];
    return call.group == faulty_group_ && !call.p2p() &&
           Sequence(rank, at) == Sequence(culprit_, at_);
  }
  size_t Limit(int rank) const {
    const size_t all = calls_[static_cast<size_t>(rank)].size();
    if (rank != culprit_) return all;
    const bool stops = fault_ == Fault::kStopped || fault_ == Fault::kStoppedWithoutDump;
    if (fault_ == Fault::kGpu) return std::min(all, at_ + 1);
    return stops ? at_ : all;
  }

  void Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < ranks(); ++r) {
        const int rank = static_cast<int>(r);
        while (posted_[r] < Limit(rank) && posted_[r] < done_[r] + static_cast<size_t>(window_)) {
          ++posted_[r];
          moved = true;
        }
      }
      std::vector<char> step(ranks(), 0);
      for (size_t r = 0; r < ranks(); ++r) {
        const int rank = static_cast<int>(r);
        if (done_[r] >= posted_[r] || Blocked(rank, done_[r])) continue;
        step[r] = Matches(rank, calls_[r][done_[r]], Sequence(rank, done_[r])) ? 1 : 0;
      }
      for (size_t r = 0; r < ranks(); ++r) {
        if (step[r] == 0) continue;
        moved = true;
        ++done_[r];
        // The recorder of a rank whose GPU stopped sees nothing of the last calls complete.
        const bool frozen =
            fault_ == Fault::kGpu && static_cast<int>(r) == culprit_ && done_[r] + 2 > at_;
        if (!frozen) seen_done_[r] = done_[r];
      }
      const auto culprit = static_cast<size_t>(culprit_);
      if (done_[culprit] <= at_) {
        early_ = posted_[culprit];
        early_done_ = done_[culprit];
      } else if (fault_ == Fault::kEarlierDump && done_[culprit] >= early_ + kEarlier) {
        // The other dumps are written now.
        return;
      }
    }
  }

  std::string EntryText(int rank, const Call& call, size_t record, int64_t sequence, int64_t p2p,
                        const std::string& state) const {
    std::string name = "nccl:" + call.operation;
    if (call.p2p()) {
      const int own = Stage(rank);
      const int other = Stage(call.peer);
      name += " " + std::to_string(own) + (call.send ? "->" : "<-") + std::to_string(other);
    }
    const SimulatedGroup& group = groups_[static_cast<size_t>(call.group)];
    const int64_t output = call.operation == "all_to_all" ? call.received : call.elements;
    std::string text = "{\"record_id\":" + std::to_string(record);
    text += ",\"pg_id\":" + std::to_string(Number(rank, call.group));
    text += ",\"process_group\":[\"" + group.name + "\",\"" + group.description + "\"]";
    text += ",\"collective_seq_id\":" + std::to_string(sequence);
    text += ",\"p2p_seq_id\":" + std::to_string(p2p);
    text += ",\"profiling_name\":\"" + name + "\",\"time_created_ns\":1700000000" +
            std::to_string(100000000 + record);
    text += ",\"input_sizes\":[[" + std::to_string(call.elements) + "]],\"input_dtypes\":[\"" +
            call.type + "\"]";
    text += ",\"output_sizes\":[[" + std::to_string(output) + "]],\"output_dtypes\":[\"" +
            call.type + "\"]";
    text += ",\"state\":\"" + state +
            "\",\"retired\":" + (state == "completed" ? "true" : "false") +
            ",\"is_p2p\":" + (call.p2p() ? "true" : "false");
    if (frames_) {
      text += ",\"frames\":[{\"name\":\"step\",\"filename\":\"train.py\",\"line\":" +
              std::to_string(record) + "}]";
    }
    return text + "}";
  }

  std::string ConfigText(int rank) const {
    std::string text;
    for (const SimulatedGroup& group : groups_) {
      if (std::find(group.ranks.begin(), group.ranks.end(), rank) == group.ranks.end()) continue;
      text += (text.empty() ? "\"" : ",\"") + group.name + "\":{\"name\":\"" + group.name +
              "\",\"desc\":\"" + group.description + "\",\"ranks\":\"[";
      for (size_t i = 0; i < group.ranks.size(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(group.ranks[i]);
      }
      text += "]\"}";
    }
    return text;
  }

  std::mt19937 random_;
  Fault fault_;
  int tp_ = 1;
  int dp_ = 1;
  int pp_ = 1;
  int window_ = 1;  // calls that a rank makes before the first of them is complete
  bool timing_ = false;
  bool frames_ = false;
  int culprit_ = 0;
  int faulty_group_ = 0;
  size_t at_ = 0;     // the call of the culprit that is wrong
  size_t early_ = 0;  // calls that it had made when its dump was written
  size_t early_done_ = 0;
  std::vector<SimulatedGroup> groups_;
  std::vector<std::vector<Call>> calls_;
  std::vector<size_t> posted_;
  std::vector<size_t> done_;
  std::vector<size_t> seen_done_;
};

}  // namespace diapason::flight_recorder::simulated
