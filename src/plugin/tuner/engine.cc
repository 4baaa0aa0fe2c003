#include "plugin/tuner/engine.h"

#include <algorithm>
#include <exception>

#include "base/clock.h"
#include "base/environment.h"
#include "base/settings.h"
#include "base/text.h"
#include "domain/fingerprint.h"
#include "plugin/learning/learning_thread.h"

namespace diapason::plugin {
namespace {

constexpr uint32_t kTablesOfAKind = 4;
constexpr uint64_t kTreeLlRuleFirst = 64;
constexpr uint64_t kTreeLlRuleLast = 262144;

// For all work at the end of a communicator.
constexpr auto kFinalizeLimit = std::chrono::milliseconds(2000);

std::atomic<uint32_t> g_communicators{0};

// This rank failed while its communicator was created.
int Failed(const CommInit& init, const agree::JoinProgress& progress, const char* why) noexcept {
  const HostLog log(init.logger, Host());
  if (!progress.committed) {
    log.WarnSteppingAside(why);
    return abi::kSuccess;
  }
  log.WarnCannotGoOn(why);
  return abi::kSystemError;
}

}  // namespace

Engine* Engine::Create(const CommInit& init, int* status) noexcept {
  *status = abi::kSuccess;
  agree::JoinProgress progress;
  try {
    const Settings settings = Settings::Read(ProcessEnvironment());
    const Host host = DetectHost(init.logger, settings);
    const HostLog log(init.logger, host);
    for (const std::string& warning : settings.warnings()) log.Warn(warning);
    if (!settings.problems().empty()) {
      // The intended mode is unknown; "off" is the safe one.
      log.Warn(Join(settings.problems(), "; ") + "; stepping aside, the library decides");
      return nullptr;
    }
    if (settings.Text(Setting::kMode) == "off") {
      log.Info("DIAPASON_MODE=off: stepping aside, the library decides");
      return nullptr;
    }
    std::unique_ptr<Engine> engine(new Engine(init, settings, host, log, &progress));
    if (engine->agreement_.kind != Agreement::Kind::kLost) return engine.release();
    log.Warn(
        "this rank cannot know what the others have agreed to run (" + engine->agreement_.why +
        "). Going on could mix two algorithms in one call, which hangs or gives wrong results: "
        "the communicator is not created");
    *status = abi::kSystemError;
  } catch (const std::exception& error) {
    *status = Failed(init, progress, error.what());
  } catch (...) {
    *status = Failed(init, progress, "unknown exception");
  }
  return nullptr;
}

void Engine::Destroy(Engine* engine) noexcept {
  if (engine == nullptr) return;
  const auto deadline = std::chrono::steady_clock::now() + kFinalizeLimit;
  engine->StopLearning(deadline);
  try {
    if (const uint64_t count = engine->not_calls_.load(std::memory_order_relaxed); count > 0) {
      engine->log_.Info("not about a call, and left as they came: " + Count(count, "question"));
    }
    if (engine->journal_ != nullptr) {
      engine->journal_comm_.ended_ns = WallTimeNs();
      engine->journal_->AddCommunicator(engine->journal_comm_);
      engine->journal_->Flush(
          std::max(std::chrono::milliseconds(0), std::chrono::ceil<std::chrono::milliseconds>(
                                                     deadline - std::chrono::steady_clock::now())));
      const std::string failure = engine->journal_->failure();
      if (!failure.empty()) engine->log_.Warn(failure + "; later decisions are not in it");
      if (engine->journal_->dropped() > 0) {
        engine->log_.Warn(
            Format("the journal has dropped {} records; DIAPASON_JOURNAL_RECORDS "
                   "makes room for more",
                   engine->journal_->dropped()));
      }
    }
  } catch (...) {
  }
  delete engine;
}

void Engine::StopLearning(Deadline deadline) noexcept {
  if (learning_ == nullptr) return;
  try {
    LearningThread::Instance().Remove(learning_->handover(), deadline);
  } catch (...) {
  }
  learning_ = nullptr;
}

Engine::~Engine() { StopLearning(std::chrono::steady_clock::now() + kFinalizeLimit); }

Engine::Engine(const CommInit& init, const Settings& settings, const Host& host, const HostLog& log,
               agree::JoinProgress* progress)
    : init_(init),
      host_(host),
      rules_(host.library, host.is_2_31(init.api)),
      log_(log),
      observe_(settings.Text(Setting::kMode) == "observe"),
      compare_(settings.Text(Setting::kMode) == "compare"),
      ordered_(settings.Text(Setting::kMode) == "tune"),
      number_(g_communicators.fetch_add(1) + 1) {
  communicator_.reset(CommState::TakeNewComm(init.comm_id, init.shape));
  WarnAboutSettings();
  OpenChain(settings);
  inputs_ = ReadDecisionInputs(settings, init, host, communicator_.get(), chain_.get());
  if (!ComeTogether(settings, LoadPolicy(settings), progress)) return;
  if (inputs_.user_forces_pair && have_policy_) {
    log_.Warn(
        "NCCL_ALGO or NCCL_PROTO is set, and this library's tuner API would override them: "
        "the policy is not applied");
  }
  OpenJournal(settings);
  if (agreement_.learn) {
    StartLearning(settings, agreement_.policy.value_or(policy::Policy{host_.library, {}, {}}));
  }
  agreement_.policy.reset();  // already compiled, and copied by learning
  // The library's constants may be on its stack: nothing may reach for them after init.
  constants_.Forget();
  init_.constants = nullptr;
  init_.domain = nullptr;
  plain_ = journal_ == nullptr && chain_ == nullptr && !observe_ && !compare_ &&
           !inputs_.tree_ll_rule && !inputs_.numerics_pinned;
}

// A job that is tuned from outside makes many calls, and only what is on offer is read from the
// tables.
bool Engine::WantsTable(const Question& question) noexcept {
  if (!ordered_) return true;
  Relaxed<uint32_t>& kept =
      tables_kept_[static_cast<size_t>(question.collective)][SizeBand(question.bytes)];
  if (kept >= kTablesOfAKind) return false;
  kept = kept + 1;
  return true;
}

int Engine::ChannelsFor(const Config& wanted, Collective collective, int algorithm,
                        const Shape& shape) const noexcept {
  int channels = SafeChannels(host_.library, wanted.channels, algorithm, shape);
  // The library would use this many anyway: what is asked for is what can run.
  if (channels > 0) channels = std::max(channels, inputs_.min_ctas);
  const bool refused =
      collective == Collective::kAllGather && channels > 1 && !inputs_.allgather_channels;
  return refused ? 0 : channels;
}

void Engine::DropUnsafeCount(int algorithm, const Shape& shape, int before,
                             int* channels) const noexcept {
  if (SafeChannels(host_.library, *channels, algorithm, shape) != *channels) *channels = before;
}

Engine::Wanted Engine::Want(const Question& question, const Choice& choice) const noexcept {
  Wanted wanted;
  wanted.any = true;
  if (choice.pin != PinnedChoice::kNone) {
    wanted.config = PinnedChoice::Unpack(choice.pin);
    wanted.reason = Reason::kPinned;
    return wanted;
  }
  if (const LearningContext::Ready* agreed = choice.agreed != nullptr ? choice.agreed : choice.turn;
      agreed != nullptr) {
    wanted.learning = true;
    wanted.epoch = agreed->epoch;
    wanted.index = learning_->last_index();
    wanted.context = learning_->last_context();
  }
  if (choice.agreed != nullptr) {
    wanted.config = choice.agreed->config;
    wanted.reason = choice.agreed->turn == LearningContext::Ready::Turn::kNone
                        ? choice.agreed->reason
                        : Reason::kDefaultTurn;
    wanted.any = !wanted.config.IsDefault();
    return wanted;
  }
  if (choice.row != nullptr) {
    wanted.config = choice.row->config();
    wanted.reason = Reason::kRow;
    wanted.line = choice.row->line;
    if (inputs_.numerics_pinned && question.collective != Collective::kAllGather &&
        question.collective != Collective::kBroadcast &&
        !std::binary_search(safe_lines_.begin(), safe_lines_.end(), wanted.line)) {
      wanted.reason = Reason::kNumerics;
    }
    return wanted;
  }
  wanted.any = inputs_.tree_ll_rule && question.collective == Collective::kAllReduce &&
               question.bytes >= kTreeLlRuleFirst && question.bytes <= kTreeLlRuleLast;
  if (wanted.any) wanted.config = {kTree, kLl, 0};
  wanted.reason = wanted.any     ? Reason::kLibraryRule
                  : have_policy_ ? Reason::kNoRow
                                 : Reason::kNoPolicy;
  return wanted;
}

void Engine::NoteAsked(const Question& question, const Config& config) noexcept {
  communicator_->Asked(question, 0, config, learning_->last_context(), learning_->last_index());
}

int Engine::DecideSlowPath(int collective, size_t bytes, int pipe_ops, int reg_buff,
                           CostTable table, int* channels) noexcept {
  if (!table.Valid() || channels == nullptr) return abi::kSuccess;
  if (!IsAboutACall(pipe_ops, table)) return NotACall();
  Question question{Collective::kAllReduce, bytes, pipe_ops, reg_buff};
  if (collective < 0 || collective >= kAskedCollectiveCount) {
    if (chain_ != nullptr) AskChain(question, collective, &table, channels);
    return abi::kSuccess;
  }
  question.collective = static_cast<Collective>(collective);
  const Choice choice = ChooseFor(question, table);
  if (choice.agreed != nullptr && choice.agreed->lost) return abi::kSystemError;
  return Apply(question, choice, table, channels);
}

void Engine::AskChain(const Question& question, int collective, CostTable* table,
                      int* channels) noexcept {
  const int count = table->algorithms * table->protocols;
  if (!rules_.from_2_31 || count > Chain::kMostCells) {
    chain_->AskTable(question, collective, table, channels);
    return;
  }
  float before[Chain::kMostCells];
  std::copy_n(table->cells, count, before);
  chain_->AskTable(question, collective, table, channels);
  KeepWhatIsReadBack(before, table);
}

int Engine::Apply(const Question& question, Choice chosen, CostTable table,
                  int* channels) noexcept {
  const Wanted wanted = Want(question, chosen);
  if (communicator_ != nullptr && communicator_->tracking()) {
    communicator_->Asked(question, calls_.load(std::memory_order_relaxed) + 1, wanted.config,
                         wanted.context, wanted.index);
  }
  // Before the chained tuner is asked: entries that it excludes are still available here.
  TableChoice choice;
  if (wanted.any) choice = ChooseFromTable(rules_, wanted.config, question, table);
  float estimate = 0;
  const int channels_before = *channels;
  if (chain_ != nullptr) [[unlikely]] {
    if (choice.applicable) estimate = table.At(choice.algorithm, choice.protocol);
    AskChain(question, static_cast<int>(question.collective), &table, channels);
  }

  TableChoice by_default;
  CostTable recorded;
  float before[journal::kTableCells];
  if (journal_ != nullptr) [[unlikely]] {
    by_default = CheapestPair(rules_, table, {});
    const int count = table.algorithms * table.protocols;
    if (journal_tables_ && count <= journal::kTableCells && WantsTable(question)) {
      std::copy_n(table.cells, count, before);
      recorded = {before, table.algorithms, table.protocols};
    }
  }

  bool applied = false;
  int safe_channels = 0;
  if (choice.applicable) {
    safe_channels = ChannelsFor(wanted.config, question.collective, choice.algorithm, init_.shape);
    if (Applies(wanted)) {
      const bool channels_only =
          wanted.config.algorithm == kKeep && wanted.config.protocol == kKeep;
      if (!channels_only) {
        if (chain_ != nullptr) {
          table.cells[choice.algorithm * table.protocols + choice.protocol] = estimate;
        }
        ApplyToTable(host_.library, choice.algorithm, choice.protocol, &table);
        DropUnsafeCount(choice.algorithm, init_.shape, channels_before, channels);
      }
      if (safe_channels > 0) *channels = safe_channels;
      applied = true;
    }
  }
  Note(question, wanted, choice, applied, safe_channels, by_default, recorded);
  return abi::kSuccess;
}

void Engine::DecideByPair(int collective, size_t bytes, int collnet, int nvls, int pipe_ops,
                          int* algorithm, int* protocol, int* channels) noexcept {
  if (algorithm == nullptr || protocol == nullptr || channels == nullptr) return;
  if (pipe_ops <= 0) {
    NotACall();
    return;
  }
  Question question;
  question.bytes = bytes;
  question.pipe_ops = pipe_ops;
  question.reg_buff = policy::kAny;  // not reported: rows that depend on it do not match
  const bool known = collective >= 0 && collective < kAskedCollectiveCount;
  if (known) question.collective = static_cast<Collective>(collective);
  const int channels_before = *channels;
  if (chain_ != nullptr) {
    chain_->AskPair(question, collective, collnet, nvls, algorithm, protocol, channels);
  }
  if (!known || inputs_.user_forces_pair || shapes_differ_.load(std::memory_order_relaxed)) return;

  const TableChoice by_default{Reason::kNoRow, false, *algorithm, *protocol};
  const Wanted wanted = Want(question, ChooseFor(question, CostTable()));
  TableChoice choice;
  bool applied = false;
  int safe_channels = 0;
  if (wanted.any) {
    PairSupport support;
    // v1 does not say which communicator asks, so the shape is unknown.
    if (init_.api >= 2) support.shape = init_.shape;
    support.collnet = collnet != 0;
    support.nvls = nvls != 0;
    support.ll128 = inputs_.ll128_works;
    choice = ChoosePair(host_.library, wanted.config, question, support);
    if (choice.applicable) {
      // This API does not report which algorithm a count without a pair will meet; CollNet and NVLS
      // would not check it.
      const bool keeps_pair = wanted.config.algorithm == kKeep;
      if (inputs_.pair_channels && !(keeps_pair && (collnet != 0 || nvls != 0))) {
        safe_channels =
            ChannelsFor(wanted.config, question.collective, choice.algorithm, support.shape);
      }
      if (Applies(wanted)) {
        if (!keeps_pair) {
          *algorithm = choice.algorithm;
          *protocol = choice.protocol;
          DropUnsafeCount(choice.algorithm, support.shape, channels_before, channels);
        }
        if (safe_channels > 0) *channels = safe_channels;
        applied = true;
      }
    }
  }
  Note(question, wanted, choice, applied, safe_channels, by_default, CostTable());
}

int Engine::ChunkSize(int collective, size_t bytes, int algorithm, int protocol, int channels,
                      size_t* chunk_size) noexcept {
  if (chain_ == nullptr || chunk_size == nullptr) return abi::kSuccess;
  return chain_->ChunkSize(collective, bytes, algorithm, protocol, channels, chunk_size);
}

void Engine::SharedWith(const Shape& shape) noexcept {
  if (shape == init_.shape) return;
  try {
    const Settings settings = Settings::Read(ProcessEnvironment());
    if (!settings.Flag(Setting::kSingleShape)) return;  // only rows for any shape are in use
    shapes_differ_.store(true, std::memory_order_relaxed);
    log_.Warn(
        Format("DIAPASON_SINGLE_SHAPE is set, but there are communicators of {} and {} "
               "ranks; the library decides",
               init_.shape.ranks, shape.ranks));
  } catch (...) {
    shapes_differ_.store(true, std::memory_order_relaxed);
  }
}

void Engine::Note(const Question& question, const Wanted& wanted, const TableChoice& choice,
                  bool applied, int channels, const TableChoice& by_default,
                  const CostTable& table) noexcept {
  if (wanted.reason == Reason::kPinned) [[unlikely]] {
    PinnedChoice::Instance().CountAsked();
    if (applied) PinnedChoice::Instance().CountApplied();
  }
  // Under API v1 all communicators share one engine, and their threads may ask concurrently.
  const uint32_t call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (journal_ == nullptr) return;
  journal::JournalRecord record;
  record.time_ns = WallTimeNs();
  record.bytes = question.bytes;
  record.communicator = number_;
  record.call = call;
  record.learning = wanted.learning;
  record.epoch = wanted.epoch;
  record.index = wanted.index;
  if (communicator_ != nullptr) {
    record.captured = communicator_->captured();
    record.group_calls =
        static_cast<uint16_t>(std::min<uint32_t>(communicator_->group_calls(), UINT16_MAX));
  }
  record.line = wanted.line;
  record.pipe_ops = question.pipe_ops;
  record.collective = static_cast<uint8_t>(question.collective);
  record.reason = wanted.any && !choice.applicable ? choice.reason : wanted.reason;
  record.applied = applied;
  record.reg_buff = static_cast<int8_t>(question.reg_buff);
  if (wanted.any) {
    record.algorithm = static_cast<int8_t>(wanted.config.algorithm);
    record.protocol = static_cast<int8_t>(wanted.config.protocol);
    record.channels = static_cast<int16_t>(choice.applicable ? channels : wanted.config.channels);
  }
  record.default_algorithm = static_cast<int8_t>(by_default.algorithm);
  record.default_protocol = static_cast<int8_t>(by_default.protocol);
  if (table.Valid()) {
    record.table_algorithms = static_cast<uint8_t>(table.algorithms);
    record.table_protocols = static_cast<uint8_t>(table.protocols);
    std::copy_n(table.cells, table.algorithms * table.protocols, record.table);
  }
  journal_->Add(record);
}

}  // namespace diapason::plugin
