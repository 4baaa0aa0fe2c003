#include "plugin/engine.h"

#include <time.h>

#include <algorithm>
#include <exception>

#include "base/environment.h"
#include "base/settings.h"
#include "base/text.h"
#include "base/version.h"
#include "domain/fingerprint.h"
#include "plugin/pin.h"
#include "plugin/process_journal.h"
#include "policy/source.h"

namespace diapason::plugin {
namespace {

// From these versions on (ncclGetVersion's numbers) the library behaves as the comment says.
constexpr int kClampsChannelsOfPairs = 22000;  // before, a pair's channel count is not checked
constexpr int kFusesBroadcasts = 22900;        // grouped broadcasts ask as allgather
constexpr int kRcclHasTreeLlRule = 22803;

constexpr uint64_t kTreeLlRuleFirst = 64;
constexpr uint64_t kTreeLlRuleLast = 262144;

constexpr auto kFlushLimit = std::chrono::milliseconds(2000);

std::atomic<uint32_t> g_communicators{0};

uint64_t NowNs() noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

bool VariableIs(const char* name, const char* value) {
  return ProcessEnvironment().Get(name).value_or("") == value;
}

bool VariableIsSet(const char* name) {
  return !ProcessEnvironment().Get(name).value_or("").empty();
}

}  // namespace

Engine* Engine::Create(const Birth& birth) noexcept {
  try {
    const Settings settings = Settings::Read(ProcessEnvironment());
    const Host host = DetectHost(birth.logger, settings);
    const HostLog log(birth.logger, host);
    for (const std::string& warning : settings.warnings()) log.Warn(warning);
    if (!settings.problems().empty()) {
      // Which mode was meant cannot be known; "off" is the one that does no harm.
      log.Warn(Join(settings.problems(), "; ") + "; stepping aside, the library decides");
      return nullptr;
    }
    if (settings.Text(Setting::kMode) == "off") {
      log.Info("DIAPASON_MODE=off: stepping aside, the library decides");
      return nullptr;
    }
    return new Engine(birth, settings, host, log);
  } catch (const std::exception& error) {
    HostLog(birth.logger, Host()).WarnSteppingAside(error.what());
  } catch (...) {
    HostLog(birth.logger, Host()).WarnSteppingAside("unknown exception");
  }
  return nullptr;
}

void Engine::Destroy(Engine* engine) noexcept {
  if (engine == nullptr) return;
  try {
    if (engine->journal_ != nullptr) {
      engine->journal_->Flush(kFlushLimit);
      const std::string failure = engine->journal_->failure();
      if (!failure.empty()) engine->log_.Warn(failure + "; later decisions are not in it");
      if (engine->journal_->dropped() > 0) {
        engine->log_.Warn(
            Format("the journal has dropped %llu records; DIAPASON_JOURNAL_RECORDS "
                   "makes room for more",
                   static_cast<unsigned long long>(engine->journal_->dropped())));
      }
    }
  } catch (...) {
  }
  delete engine;
}

Engine::Engine(const Birth& birth, const Settings& settings, const Host& host, const HostLog& log)
    : birth_(birth),
      host_(host),
      log_(log),
      observe_(settings.Text(Setting::kMode) == "observe"),
      number_(g_communicators.fetch_add(1) + 1) {
  allgather_channels_ = AllGatherChannelsAreSafe(settings);
  OpenChain(settings);
  LoadPolicy(settings);
  ll128_known_ = settings.Flag(Setting::kLl128Works);
  // Under v1 and v2 our pair would silently override what the user forces.
  user_forces_pair_ = birth.api <= 2 && (VariableIsSet("NCCL_ALGO") || VariableIsSet("NCCL_PROTO"));
  if (user_forces_pair_ && have_policy_) {
    log_.Warn(
        "NCCL_ALGO or NCCL_PROTO is set, and this library's tuner API would override them: "
        "the policy is not applied");
  }
  pair_channels_ = host.version >= kClampsChannelsOfPairs;
  tree_ll_rule_ = host.library == Library::kRccl && host.version >= kRcclHasTreeLlRule &&
                  birth.shape.nodes == 1 && chain_ == nullptr && !VariableIsSet("NCCL_ALGO") &&
                  AmdArchitecture() == "gfx950";
  OpenJournal(settings);
  plain_ = journal_ == nullptr && chain_ == nullptr && !observe_ && !tree_ll_rule_;
}

void Engine::LoadPolicy(const Settings& settings) {
  const policy::Source source = policy::FindSource(settings);
  policy_name_ = source.name;
  const std::string who = Format("%s, tuner API v%d, %s", kVersion, birth_.api,
                                 std::string(LibraryTitle(host_.library)).c_str());
  if (source.kind == policy::Source::Kind::kNone) {
    log_.Info(who + ": no policy is set, the library decides");
    return;
  }
  policy::ParseOptions options;
  options.library = host_.library;
  Result<policy::Policy> loaded = policy::LoadPolicy(source, options);
  if (!loaded.ok()) {
    log_.Warn("policy refused, the library decides: " + loaded.status().message());
    policy_name_.clear();
    return;
  }
  policy::Policy policy = std::move(loaded).value();
  policy_digest_ = policy::DigestText(policy::Digest(policy));
  if (policy.rules.empty()) {
    log_.Warn("the policy " + source.name + " has no rows: the library decides");
  }

  const std::string& wanted = policy.header.fingerprint;
  const std::string here = settings.IsSet(Setting::kFingerprint)
                               ? settings.Text(Setting::kFingerprint)
                               : (wanted.empty() ? "" : MachineFingerprint());
  if (!wanted.empty() && !here.empty() && wanted != here) {
    log_.Warn(Format("the policy was made for '%s', this machine is '%s'; using it all the same",
                     wanted.c_str(), here.c_str()));
  }

  PrepareChannels(&policy);
  policy::DecisionTable::Options table_options;
  table_options.shape = birth_.shape;
  table_options.use_reg_buff_rows = settings.Flag(Setting::kRegBuff);
  table_options.any_shape_rows_only = birth_.api == 1 && !settings.Flag(Setting::kSingleShape);
  table_ = policy::DecisionTable(policy, table_options);
  have_policy_ = true;
  WarnAboutRows();
  log_.Info(Format("%s: policy %s (%s) for %s and %s: %zu of %s can match%s", who.c_str(),
                   source.name.c_str(), policy_digest_.c_str(),
                   Count(static_cast<size_t>(birth_.shape.nodes), "node").c_str(),
                   Count(static_cast<size_t>(birth_.shape.ranks), "rank").c_str(),
                   table_.row_count(), Count(policy.rules.size(), "row").c_str(),
                   observe_ ? "; observing, nothing is changed" : ""));
}

bool Engine::AllGatherChannelsAreSafe(const Settings& settings) const {
  const bool fuses = host_.version == 0 || host_.version >= kFusesBroadcasts;
  // On RCCL the fusion is off unless somebody turns it on; on NCCL it is on unless turned off.
  const bool off = VariableIs("NCCL_ALLGATHERV_ENABLE", "0") ||
                   (host_.library == Library::kRccl && !VariableIsSet("NCCL_ALLGATHERV_ENABLE"));
  // API v4 and earlier belong to libraries that are too old for it.
  return !fuses || off || birth_.api < 5 || settings.Flag(Setting::kAllGatherChannels);
}

int Engine::ChannelsFor(const Config& wanted, Collective collective, int algorithm,
                        const Shape& shape) const noexcept {
  const int channels = SafeChannels(host_.library, wanted.channels, algorithm, shape);
  const bool refused = collective == Collective::kAllGather && channels > 1 && !allgather_channels_;
  return refused ? 0 : channels;
}

void Engine::DropUnsafeCount(int algorithm, const Shape& shape, int before,
                             int* channels) const noexcept {
  if (SafeChannels(host_.library, *channels, algorithm, shape) != *channels) *channels = before;
}

void Engine::PrepareChannels(policy::Policy* policy) const {
  size_t refused = 0;
  for (policy::Rule& rule : policy->rules) {
    const int before = rule.config.channels;
    // Which algorithm a row without one will meet shows at the call, and is looked at again there.
    const int algorithm = rule.config.algorithm == kKeep ? kRing : rule.config.algorithm;
    rule.config.channels = ChannelsFor(rule.config, rule.collective, algorithm, birth_.shape);
    if (rule.collective == Collective::kAllGather && before > 1 && !allgather_channels_) ++refused;
  }
  if (refused > 0) {
    log_.Warn(
        Format("the channel counts of %s for allgather are not applied: from 2.29 on grouped "
               "broadcasts ask as allgather and a count above the communicator's own is not "
               "checked; NCCL_ALLGATHERV_ENABLE=0 or DIAPASON_ALLGATHER_CHANNELS=1 allows "
               "them",
               Count(refused, "row").c_str()));
  }
}

void Engine::WarnAboutRows() const {
  if (table_.skipped_reg_buff_rows() > 0) {
    log_.Warn(
        Format("%s skipped: regBuff is computed by each rank by itself, and ranks that "
               "choose differently hang; DIAPASON_REGBUFF=1 uses them",
               Count(table_.skipped_reg_buff_rows(), "row").c_str()));
  }
  if (table_.skipped_shape_rows() > 0) {
    log_.Warn(
        Format("%s skipped: tuner API v1 does not say which communicator asks; "
               "DIAPASON_SINGLE_SHAPE=1 uses them where all have the same nodes and ranks",
               Count(table_.skipped_shape_rows(), "row").c_str()));
  }
}

void Engine::OpenChain(const Settings& settings) {
  if (!settings.IsSet(Setting::kChain)) return;
  Result<std::unique_ptr<Chain>> chain = Chain::Open(settings.Text(Setting::kChain), birth_);
  if (!chain.ok()) {
    log_.Warn(chain.status().message() + "; going on without it");
    return;
  }
  chain_ = std::move(chain).value();
  log_.Info("chained tuner " + chain_->description() + ": its answer is the default");
}

void Engine::OpenJournal(const Settings& settings) {
  journal_ = ProcessJournal(settings, log_);
  if (journal_ == nullptr) return;
  journal_tables_ = settings.Flag(Setting::kJournalTables);
  journal::Communicator communicator;
  communicator.number = number_;
  communicator.id = birth_.comm_id;
  communicator.api = birth_.api;
  communicator.library = host_.library;
  communicator.library_version = host_.version;
  communicator.shape = birth_.shape;
  communicator.mode = settings.Text(Setting::kMode);
  communicator.policy = policy_name_;
  communicator.digest = policy_digest_;
  communicator.rows = table_.row_count();
  communicator.chain = chain_ != nullptr ? chain_->description() : "";
  journal_->AddCommunicator(communicator);
}

Engine::Wanted Engine::Want(const Question& question) const noexcept {
  Wanted wanted;
  if (Pin::Instance().Get(&wanted.config)) [[unlikely]] {
    wanted.reason = Reason::kPinned;
    wanted.any = true;
    return wanted;
  }
  if (const policy::DecisionTable::Entry* entry = table_.Find(question); entry != nullptr) {
    wanted.config = entry->config();
    wanted.reason = Reason::kRow;
    wanted.line = entry->line;
    wanted.any = true;
    return wanted;
  }
  wanted.reason = have_policy_ ? Reason::kNoRow : Reason::kNoPolicy;
  if (tree_ll_rule_ && question.collective == Collective::kAllReduce &&
      question.bytes >= kTreeLlRuleFirst && question.bytes <= kTreeLlRuleLast) {
    wanted.config = {kTree, kLl, 0};
    wanted.reason = Reason::kLibraryRule;
    wanted.any = true;
  }
  return wanted;
}

void Engine::DecideWithCare(int collective, size_t bytes, int pipe_ops, int reg_buff,
                            CostTable table, int* channels) noexcept {
  if (!table.Valid() || channels == nullptr) return;
  Question question;
  question.bytes = bytes;
  question.pipe_ops = pipe_ops;
  question.reg_buff = reg_buff;
  const bool known = collective >= 0 && collective < kAskedCollectiveCount;
  if (known) question.collective = static_cast<Collective>(collective);

  Wanted wanted;
  Choice choice;
  if (known) {
    wanted = Want(question);
    // Before the chained tuner speaks: what it pushes away is still available.
    if (wanted.any) choice = ChooseFromTable(host_.library, wanted.config, question, table);
  }
  float estimate = 0;
  const int channels_before = *channels;
  if (chain_ != nullptr) [[unlikely]] {
    if (choice.applicable) estimate = table.At(choice.algorithm, choice.protocol);
    chain_->AskTable(question, collective, &table, channels);
  }
  if (!known) return;

  Choice by_default;
  CostTable recorded;
  float before[journal::kTableCells];
  if (journal_ != nullptr) [[unlikely]] {
    by_default = CheapestPair(table, {});
    const int count = table.algorithms * table.protocols;
    if (journal_tables_ && count <= journal::kTableCells) {
      std::copy_n(table.cells, count, before);
      recorded = {before, table.algorithms, table.protocols};
    }
  }

  bool applied = false;
  int safe_channels = 0;
  if (choice.applicable) {
    safe_channels = ChannelsFor(wanted.config, question.collective, choice.algorithm, birth_.shape);
    if (Applies(wanted)) {
      const bool channels_only =
          wanted.config.algorithm == kKeep && wanted.config.protocol == kKeep;
      if (!channels_only) {
        if (chain_ != nullptr) {
          table.cells[choice.algorithm * table.protocols + choice.protocol] = estimate;
        }
        ApplyToTable(host_.library, choice.algorithm, choice.protocol, &table);
        DropUnsafeCount(choice.algorithm, birth_.shape, channels_before, channels);
      }
      if (safe_channels > 0) *channels = safe_channels;
      applied = true;
    }
  }
  if (wanted.reason == Reason::kPinned) [[unlikely]] {
    Pin::Instance().CountAsked();
    if (applied) Pin::Instance().CountApplied();
  }
  if (journal_ != nullptr) [[unlikely]] {
    Note(question, wanted, choice, applied, safe_channels, by_default, recorded);
  }
}

void Engine::DecideByPair(int collective, size_t bytes, int collnet, int nvls, int pipe_ops,
                          int* algorithm, int* protocol, int* channels) noexcept {
  if (algorithm == nullptr || protocol == nullptr || channels == nullptr) return;
  Question question;
  question.bytes = bytes;
  question.pipe_ops = pipe_ops;
  question.reg_buff = policy::kAny;  // not told: rows that depend on it do not match
  const bool known = collective >= 0 && collective < kAskedCollectiveCount;
  if (known) question.collective = static_cast<Collective>(collective);
  const int channels_before = *channels;
  if (chain_ != nullptr) {
    chain_->AskPair(question, collective, collnet, nvls, algorithm, protocol, channels);
  }
  if (!known || user_forces_pair_ || shapes_differ_.load(std::memory_order_relaxed)) return;

  const Choice by_default{Reason::kNoRow, false, *algorithm, *protocol};
  const Wanted wanted = Want(question);
  Choice choice;
  bool applied = false;
  int safe_channels = 0;
  if (wanted.any) {
    PairSupport support;
    // v1 does not say which communicator asks, so its shape is as good as unknown.
    if (birth_.api >= 2) support.shape = birth_.shape;
    support.collnet = collnet != 0;
    support.nvls = nvls != 0;
    support.ll128 = ll128_known_;
    choice = ChoosePair(host_.library, wanted.config, question, support);
    if (choice.applicable) {
      // Which algorithm a count alone will meet is not told either; CollNet and NVLS would not
      // check it.
      const bool keeps_pair = wanted.config.algorithm == kKeep;
      if (pair_channels_ && !(keeps_pair && (collnet != 0 || nvls != 0))) {
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
  if (wanted.reason == Reason::kPinned) {
    Pin::Instance().CountAsked();
    if (applied) Pin::Instance().CountApplied();
  }
  if (journal_ != nullptr) {
    Note(question, wanted, choice, applied, safe_channels, by_default, CostTable());
  }
}

int Engine::ChunkSize(int collective, size_t bytes, int algorithm, int protocol, int channels,
                      size_t* chunk_size) noexcept {
  if (chain_ == nullptr || chunk_size == nullptr) return abi::kSuccess;
  return chain_->ChunkSize(collective, bytes, algorithm, protocol, channels, chunk_size);
}

void Engine::SharedWith(const Shape& shape) noexcept {
  if (shape == birth_.shape) return;
  try {
    const Settings settings = Settings::Read(ProcessEnvironment());
    if (!settings.Flag(Setting::kSingleShape)) return;  // only rows for any shape are in use
    shapes_differ_.store(true, std::memory_order_relaxed);
    log_.Warn(
        Format("DIAPASON_SINGLE_SHAPE is set, but there are communicators of %lld and %lld "
               "ranks; the library decides",
               static_cast<long long>(birth_.shape.ranks), static_cast<long long>(shape.ranks)));
  } catch (...) {
    shapes_differ_.store(true, std::memory_order_relaxed);
  }
}

void Engine::Note(const Question& question, const Wanted& wanted, const Choice& choice,
                  bool applied, int channels, const Choice& by_default,
                  const CostTable& table) noexcept {
  journal::Record record;
  record.time_ns = NowNs();
  record.bytes = question.bytes;
  record.communicator = number_;
  // Under API v1 all communicators share one engine, and their threads may ask at once.
  record.call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
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
