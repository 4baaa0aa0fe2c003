#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/writer.h"
#include "plugin/abi/host.h"
#include "plugin/abi/selection.h"
#include "plugin/learning/communicator.h"
#include "plugin/tuner/agreement.h"
#include "plugin/tuner/chain.h"
#include "plugin/tuner/pin.h"
#include "policy/policy.h"
#include "policy/table.h"

namespace diapason::plugin {

// What answers for one communicator, behind every API version.
//
// Create runs when the communicator is made and may read files, allocate and log. The two Decide
// functions run inside every collective call: they allocate nothing, take no lock, make no system
// call and write no log. They leave every output untouched unless a row says otherwise.
//
// The library asks about one communicator from one thread at a time; different communicators may
// ask at once.
class Engine {
 public:
  // nullptr: step aside, the library decides alone. Never throws. *status is success, except where
  // this rank has registered with the others and cannot do what they may have agreed to do.
  static Engine* Create(const CommInit& init, int* status) noexcept;
  static void Destroy(Engine* engine) noexcept;
  ~Engine();

  // API v3 and later. Short for the usual cases: a row that names a pair, or a configuration that
  // all ranks have agreed on, and nobody is listening. Anything but success fails the call.
  int DecideByTable(int collective, size_t bytes, int pipe_ops, int reg_buff, CostTable table,
                    int* channels) noexcept {
    if (!plain_ || PinnedChoice::Instance().active() || !table.Valid() || channels == nullptr ||
        static_cast<unsigned>(collective) >= kAskedCollectiveCount) [[unlikely]] {
      return DecideSlowPath(collective, bytes, pipe_ops, reg_buff, table, channels, nullptr);
    }
    const Question question{static_cast<Collective>(collective), bytes, pipe_ops, reg_buff};
    Config config;
    if (const LearningContext::Ready* ready = AskLearning(question, table); ready != nullptr) {
      if (ready->lost) [[unlikely]]
        return abi::kSystemError;
      config = ready->config;
      if (learning_->tracking()) [[unlikely]]
        NoteAsked(question, config);
      if (config.algorithm == kKeep || config.protocol == kKeep) {
        if (config.IsDefault()) return abi::kSuccess;
        return DecideSlowPath(collective, bytes, pipe_ops, reg_buff, table, channels, ready);
      }
    } else {
      const policy::DecisionTable::Entry* row = table_.Find(question);
      if (row == nullptr) return abi::kSuccess;
      if (!row->names_pair()) [[unlikely]] {
        return DecideSlowPath(collective, bytes, pipe_ops, reg_buff, table, channels, nullptr);
      }
      config = row->config();
    }
    if (PairFits(host_.library, config.algorithm, config.protocol, bytes, table) != Reason::kRow) {
      return abi::kSuccess;
    }
    ApplyToTable(host_.library, config.algorithm, config.protocol, &table);
    // What may not be asked for was taken out of the row when the policy was loaded, and is never
    // tried.
    if (config.channels > 0) *channels = config.channels;
    return abi::kSuccess;
  }
  // API v1 and v2.
  void DecideByPair(int collective, size_t bytes, int collnet, int nvls, int pipe_ops,
                    int* algorithm, int* protocol, int* channels) noexcept;
  // API v6. The library's value stands; a chained tuner may change it.
  int ChunkSize(int collective, size_t bytes, int algorithm, int protocol, int channels,
                size_t* chunk_size) noexcept;

  // API v1 only: another communicator was created. Its context is this one, since v1 has none.
  void SharedWith(const Shape& shape) noexcept;

 private:
  // Throws when there is no memory, say; `progress` then tells whether this rank may step aside.
  Engine(const CommInit& init, const Settings& settings, const Host& host, const HostLog& log,
         agree::JoinProgress* progress);

  const LearningContext::Ready* AskLearning(const Question& question,
                                            const CostTable& table) noexcept {
    if (learning_ == nullptr) return nullptr;
    return learning_->Ask(question.collective, question.bytes, table);
  }
  // `asked` is what learning has answered already, if it was asked.
  int DecideSlowPath(int collective, size_t bytes, int pipe_ops, int reg_buff, CostTable table,
                     int* channels, const LearningContext::Ready* asked) noexcept;
  void NoteAsked(const Question& question, const Config& config) noexcept;
  OwnPolicy LoadPolicy(const Settings& settings);
  void UsePolicy(policy::Policy policy);
  // False: stop, this rank cannot go on.
  bool ComeTogether(const Settings& settings, OwnPolicy own, agree::JoinProgress* progress);
  // The library alone, as on all ranks: no policy, no chained tuner, no rule of our own.
  void StayOff();
  void StartLearning(const Settings& settings, const policy::Policy& policy);
  void PrepareChannels(policy::Policy* policy) const;
  // A chained tuner's count was meant for its own pair; with ours it may not be safe.
  void DropUnsafeCount(int algorithm, const Shape& shape, int before, int* channels) const noexcept;
  int ChannelsFor(const Config& wanted, Collective collective, int algorithm,
                  const Shape& shape) const noexcept;
  void WarnAboutRows() const;
  // What was learned is saved; the learning is not used any more, by any thread or soon by none.
  void StopLearning(Deadline deadline) noexcept;
  void OpenChain(const Settings& settings);
  void OpenJournal(const Settings& settings);

  // What the policy, the pin or the library's own rule wants for a question.
  struct Wanted {
    Config config;
    Reason reason = Reason::kNoRow;
    int line = 0;
    bool any = false;
    bool learning = false;
    uint32_t epoch = 0;
    uint64_t index = 0;
    LearningContext* context = nullptr;
  };
  Wanted Want(const Question& question, const LearningContext::Ready* ready) const noexcept;
  bool Applies(const Wanted& wanted) const noexcept {
    if (wanted.reason == Reason::kNumerics) return false;
    return !observe_ || wanted.reason == Reason::kPinned || wanted.reason == Reason::kLibraryRule;
  }
  void Note(uint32_t call, const Question& question, const Wanted& wanted,
            const TableChoice& choice, bool applied, int channels, const TableChoice& by_default,
            const CostTable& table) noexcept;

  const CommInit init_;
  const Host host_;
  const HostLog log_;
  const bool observe_;
  const uint32_t number_;  // of the communicator, in this process
  DecisionInputs inputs_;
  policy::DecisionTable table_;
  bool plain_ = false;  // no journal, no chain, not observing, no rule of the library's to follow
  bool have_policy_ = false;
  std::atomic<bool> shapes_differ_{false};
  std::unique_ptr<Chain> chain_;
  KeptConstants constants_;
  journal::Journal* journal_ = nullptr;
  bool journal_tables_ = false;
  std::atomic<uint32_t> calls_{0};
  std::string policy_name_;
  std::string policy_digest_;
  std::vector<int> safe_lines_;  // of rows that may change the last bits of sums; sorted
  struct ReleaseCommunicator {
    void operator()(CommState* communicator) const { communicator->Release(); }
  };
  // Where the profiler half is loaded.
  std::unique_ptr<CommState, ReleaseCommunicator> communicator_;
  Learning* learning_ = nullptr;  // the communicator's; where all ranks learn
  Agreement agreement_;
};

}  // namespace diapason::plugin
