#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "journal/writer.h"
#include "plugin/chain.h"
#include "plugin/host.h"
#include "plugin/pin.h"
#include "plugin/selection.h"
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
  // nullptr: step aside, the library decides alone. Never throws, never fails the caller.
  static Engine* Create(const Birth& birth) noexcept;
  static void Destroy(Engine* engine) noexcept;

  // API v3 and later. Short for the usual case: a row that names a pair, and nobody is listening.
  void DecideByTable(int collective, size_t bytes, int pipe_ops, int reg_buff, CostTable table,
                     int* channels) noexcept {
    if (!plain_ || Pin::Instance().active() || !table.Valid() || channels == nullptr ||
        static_cast<unsigned>(collective) >= kAskedCollectiveCount) [[unlikely]] {
      return DecideWithCare(collective, bytes, pipe_ops, reg_buff, table, channels);
    }
    const policy::DecisionTable::Entry* row =
        table_.Find({static_cast<Collective>(collective), bytes, pipe_ops, reg_buff});
    if (row == nullptr) return;
    if (!row->names_pair()) [[unlikely]] {
      return DecideWithCare(collective, bytes, pipe_ops, reg_buff, table, channels);
    }
    if (PairFits(host_.library, row->algorithm, row->protocol, bytes, table) != Reason::kRow)
      return;
    ApplyToTable(host_.library, row->algorithm, row->protocol, &table);
    // What may not be asked for was taken out of the row when the policy was loaded.
    if (row->channels > 0) *channels = row->channels;
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
  Engine(const Birth& birth, const Settings& settings, const Host& host, const HostLog& log);

  void DecideWithCare(int collective, size_t bytes, int pipe_ops, int reg_buff, CostTable table,
                      int* channels) noexcept;
  void LoadPolicy(const Settings& settings);
  bool AllGatherChannelsAreSafe(const Settings& settings) const;
  void PrepareChannels(policy::Policy* policy) const;
  // A chained tuner's count was meant for its own pair; with ours it may not be safe.
  void DropUnsafeCount(int algorithm, const Shape& shape, int before, int* channels) const noexcept;
  int ChannelsFor(const Config& wanted, Collective collective, int algorithm,
                  const Shape& shape) const noexcept;
  void WarnAboutRows() const;
  void OpenChain(const Settings& settings);
  void OpenJournal(const Settings& settings);

  // What the policy, the pin or the library's own rule wants for a question.
  struct Wanted {
    Config config;
    Reason reason = Reason::kNoRow;
    int line = 0;
    bool any = false;
  };
  Wanted Want(const Question& question) const noexcept;
  bool Applies(const Wanted& wanted) const noexcept {
    return !observe_ || wanted.reason == Reason::kPinned || wanted.reason == Reason::kLibraryRule;
  }
  void Note(const Question& question, const Wanted& wanted, const Choice& choice, bool applied,
            int channels, const Choice& by_default, const CostTable& table) noexcept;

  const Birth birth_;
  const Host host_;
  const HostLog log_;
  const bool observe_;
  const uint32_t number_;  // of the communicator, in this process
  policy::DecisionTable table_;
  bool plain_ = false;  // no journal, no chain, not observing, no rule of the library's to follow
  bool have_policy_ = false;
  bool tree_ll_rule_ = false;  // see docs/plugin.md: RCCL's rule for gfx950
  bool ll128_known_ = false;
  bool pair_channels_ = true;
  bool allgather_channels_ = true;  // counts above 1 may be asked for
  bool user_forces_pair_ = false;
  std::atomic<bool> shapes_differ_{false};
  std::unique_ptr<Chain> chain_;
  journal::Journal* journal_ = nullptr;
  bool journal_tables_ = false;
  std::atomic<uint32_t> calls_{0};
  std::string policy_name_;
  std::string policy_digest_;
};

}  // namespace diapason::plugin
