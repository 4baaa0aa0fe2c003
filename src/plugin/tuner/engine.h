#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "domain/schedule.h"
#include "journal/writer.h"
#include "plugin/abi/constants.h"
#include "plugin/abi/host.h"
#include "plugin/abi/relaxed.h"
#include "plugin/abi/selection.h"
#include "plugin/learning/communicator.h"
#include "plugin/tuner/agreement.h"
#include "plugin/tuner/chain.h"
#include "plugin/tuner/precedence.h"
#include "policy/policy.h"
#include "policy/table.h"

namespace diapason::plugin {

// Answers the library's questions for one communicator, behind every API version.
//
// Create runs at init and may read files, allocate and log. The two Decide functions run inside
// every collective call: they allocate nothing, take no lock, make no system call and write no log.
// They leave every output untouched unless a row says otherwise.
//
// The library asks about one communicator from one thread at a time; it may ask about different
// communicators concurrently.
class Engine {
 public:
  // nullptr: the plugin steps aside and the library decides. Never throws. *status is success,
  // unless this rank has registered with the others and cannot do what they may have agreed on.
  static Engine* Create(const CommInit& init, int* status) noexcept;
  static void Destroy(Engine* engine) noexcept;
  ~Engine();

  // API v3 and later. The fast path covers a row that names a pair, or a configuration that all
  // ranks have agreed on, without a journal. Anything but success fails the call.
  int DecideByTable(int collective, size_t bytes, int pipe_ops, int reg_buff, CostTable table,
                    int* channels) noexcept {
    if (!plain_ || !table.Valid() || channels == nullptr ||
        static_cast<unsigned>(collective) >= kAskedCollectiveCount) [[unlikely]] {
      return DecideSlowPath(collective, bytes, pipe_ops, reg_buff, table, channels);
    }
    if (!IsAboutACall(pipe_ops, table)) [[unlikely]]
      return NotACall();
    const Question question{static_cast<Collective>(collective), bytes, pipe_ops, reg_buff};
    const Choice choice = ChooseFor(question, table);
    Config config;
    if (choice.agreed != nullptr) {
      if (choice.agreed->lost) [[unlikely]]
        return abi::kSystemError;
      config = choice.agreed->config;
      const bool names_pair = config.algorithm != kKeep && config.protocol != kKeep;
      if (!names_pair && !config.IsDefault()) return Apply(question, choice, table, channels);
      if (learning_->tracking()) [[unlikely]]
        NoteAsked(question, config);
      if (!names_pair) return abi::kSuccess;
    } else if (choice.row != nullptr && choice.row->names_pair()) {
      config = choice.row->config();
    } else {
      if (choice.row == nullptr && choice.pin == PinnedChoice::kNone) return abi::kSuccess;
      return Apply(question, choice, table, channels);
    }
    if (PairFits(rules_, config.algorithm, config.protocol, bytes, table) != Reason::kRow) {
      return abi::kSuccess;
    }
    ApplyToTable(host_.library, config.algorithm, config.protocol, &table);
    // Unsafe counts were removed from the rows when the policy was loaded, and are never tried.
    if (config.channels > 0) *channels = config.channels;
    return abi::kSuccess;
  }
  // API v1 and v2.
  void DecideByPair(int collective, size_t bytes, int collnet, int nvls, int pipe_ops,
                    int* algorithm, int* protocol, int* channels) noexcept;
  // API v6 and later. Leaves the library's value; a chained tuner may change it.
  int ChunkSize(int collective, size_t bytes, int algorithm, int protocol, int channels,
                size_t* chunk_size) noexcept;

  // API v1 only: another communicator was created. It shares this engine, since v1 has no context.
  void SharedWith(const Shape& shape) noexcept;

 private:
  // Throws, for example without memory; `progress` then says whether this rank may step aside.
  Engine(const CommInit& init, const Settings& settings, const Host& host, const HostLog& log,
         agree::JoinProgress* progress);

  Choice ChooseFor(const Question& question, const CostTable& table) const noexcept {
    const auto ask = [&]() noexcept -> const LearningContext::Ready* {
      if (learning_ == nullptr) return nullptr;
      return learning_->Ask(question.collective, question.bytes, table);
    };
    return Choose(PinnedChoice::Instance(), ask, table_, question);
  }
  // The library also asks without making a call: nothing is changed, counted or written down, and a
  // chained tuner, which may never have seen such a question, is not asked.
  int NotACall() noexcept {
    not_calls_.fetch_add(1, std::memory_order_relaxed);
    return abi::kSuccess;
  }
  // Asks the chained tuner; the table is then as the library reads it.
  void AskChain(const Question& question, int collective, CostTable* table, int* channels) noexcept;
  int DecideSlowPath(int collective, size_t bytes, int pipe_ops, int reg_buff, CostTable table,
                     int* channels) noexcept;
  // Applies any choice, in any mode.
  int Apply(const Question& question, Choice chosen, CostTable table, int* channels) noexcept;
  void NoteAsked(const Question& question, const Config& config) noexcept;
  OwnPolicy LoadPolicy(const Settings& settings);
  void UsePolicy(policy::Policy policy);
  // False: this rank cannot go on.
  bool ComeTogether(const Settings& settings, OwnPolicy own, agree::JoinProgress* progress);
  // Leaves everything to the library, as on all ranks: no policy, no chained tuner, no RCCL rule.
  void StayOff();
  void StartLearning(const Settings& settings, const policy::Policy& policy);
  void PrepareChannels(policy::Policy* policy) const;
  bool WantsTable(const Question& question) noexcept;
  // A chained tuner's count was meant for its own pair and may not be safe with another one.
  void DropUnsafeCount(int algorithm, const Shape& shape, int before, int* channels) const noexcept;
  int ChannelsFor(const Config& wanted, Collective collective, int algorithm,
                  const Shape& shape) const noexcept;
  void WarnAboutRows() const;
  // Settings that have no effect together; once per process, unless they change.
  void WarnAboutSettings() const;
  // Saves the results and ends the use of the learning, at the latest when the learning thread is
  // done with it.
  void StopLearning(Deadline deadline) noexcept;
  void OpenChain(const Settings& settings);
  void OpenJournal(const Settings& settings);

  // What is wanted for a question, by a choice or by the library's own rule.
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
  Wanted Want(const Question& question, const Choice& choice) const noexcept;
  bool Applies(const Wanted& wanted) const noexcept {
    if (wanted.reason == Reason::kNumerics) return false;
    return !observe_ || wanted.reason == Reason::kPinned || wanted.reason == Reason::kLibraryRule;
  }
  // Counts a decision, and writes it to the journal.
  void Note(const Question& question, const Wanted& wanted, const TableChoice& choice, bool applied,
            int channels, const TableChoice& by_default, const CostTable& table) noexcept;

  CommInit init_;  // its pointers only during init
  const Host host_;
  const TableRules rules_;
  const HostLog log_;
  const bool observe_;
  const bool compare_;     // the default and the policy take turns
  const bool ordered_;     // a program outside says what runs
  const uint32_t number_;  // of the communicator, in this process
  DecisionInputs inputs_;
  policy::DecisionTable table_;
  bool plain_ = false;  // no journal, no chain, no turns, not observing, no RCCL rule to follow
  bool have_policy_ = false;
  std::atomic<bool> shapes_differ_{false};
  std::unique_ptr<Chain> chain_;
  KeptConstants constants_;
  journal::Journal* journal_ = nullptr;
  bool journal_tables_ = false;
  // Tables in the journal, by collective and band, where a few of each are enough.
  Relaxed<uint32_t> tables_kept_[kAskedCollectiveCount][kSizeBands];
  journal::JournalComm journal_comm_;  // as it was written; again at the end
  std::atomic<uint32_t> calls_{0};
  std::atomic<uint64_t> not_calls_{0};
  std::string policy_name_;
  std::string policy_digest_;
  std::vector<int> safe_lines_;  // rows that may change the rounding of sums; sorted
  struct ReleaseCommunicator {
    void operator()(CommState* communicator) const { communicator->Release(); }
  };
  // If the profiler half is loaded.
  std::unique_ptr<CommState, ReleaseCommunicator> communicator_;
  Learning* learning_ = nullptr;  // owned by the communicator; set if all ranks learn
  Agreement agreement_;
};

}  // namespace diapason::plugin
