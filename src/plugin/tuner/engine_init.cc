// The work of an engine at init: the policy, the agreement with the other ranks, the journal.
#include <algorithm>
#include <functional>

#include "base/environment.h"
#include "base/file.h"
#include "base/settings.h"
#include "base/text.h"
#include "base/version.h"
#include "domain/fingerprint.h"
#include "domain/setting_conflicts.h"
#include "plugin/learning/learning_thread.h"
#include "plugin/learning/process_journal.h"
#include "plugin/tuner/engine.h"
#include "policy/source.h"

namespace diapason::plugin {

OwnPolicy Engine::LoadPolicy(const Settings& settings) {
  OwnPolicy own;
  const policy::Source source = policy::FindSource(settings);
  policy_name_ = source.name;
  const std::string note = BuiltInTunerNote(ProcessEnvironment(), host_, source.name);
  if (!note.empty()) log_.Info(note);
  if (source.kind == policy::Source::Kind::kNone) return own;
  own.named = true;
  policy::ParseOptions options;
  options.library = host_.library;
  Result<policy::Policy> loaded = policy::LoadPolicy(source, options);
  if (!loaded.ok()) {
    log_.Warn("policy refused, the library decides: " + loaded.status().message());
    policy_name_.clear();
    return own;
  }
  if (loaded.value().rules.empty()) {
    log_.Warn("the policy " + source.name + " has no rows: the library decides");
  }
  const std::string& wanted = loaded.value().header.fingerprint;
  const std::string here = settings.IsSet(Setting::kFingerprint)
                               ? settings.Text(Setting::kFingerprint)
                               : (wanted.empty() ? "" : MachineFingerprint());
  if (!wanted.empty() && !here.empty() && wanted != here) {
    log_.Warn(Format("the policy was made for '{}', this machine is '{}'; using it all the same",
                     wanted, here));
  }
  own.policy = std::move(loaded).value();
  return own;
}

void Engine::StayOff() {
  policy_name_.clear();
  // Other ranks may have no chained tuner, or another one. Its changes of the library's cost model
  // must go too, which the library builds when init returns.
  chain_.reset();
  constants_.Restore();
  inputs_.tree_ll_rule = false;
}

bool Engine::ComeTogether(const Settings& settings, OwnPolicy loaded,
                          agree::JoinProgress* progress) {
  agreement_ = Agree(settings, init_, host_, communicator_.get(), inputs_, loaded, progress);
  std::optional<policy::Policy>& own = loaded.policy;
  const std::string who = Format("{}, tuner API v{}, {}", kVersion, init_.api,
                                 std::string(LibraryTitle(host_.library)));
  switch (agreement_.kind) {
    case Agreement::Kind::kLost:
      return false;
    case Agreement::Kind::kOff:
      log_.Warn(who + ": the ranks have not come together, the library decides" +
                (chain_ != nullptr ? ", without " + chain_->description() : "") + ": " +
                agreement_.why);
      StayOff();
      return true;
    case Agreement::Kind::kTogether:
      if (own.has_value() != agreement_.policy.has_value() ||
          (own.has_value() && policy::Digest(*own) != policy::Digest(*agreement_.policy))) {
        log_.Warn("this rank's policy is not the one the ranks have agreed on, which is used");
        policy_name_ = "another rank's";
      }
      // Ranks that only verify may not know their rank numbers.
      log_.Info(Format("{}: {}agreed with {} ranks in {}", who,
                       communicator_ != nullptr ? Format("rank {}, ", communicator_->rank()) : "",
                       init_.shape.ranks, agreement_.stores.background->Describe()));
      if (!agreement_.why_no_learn.empty() && communicator_->rank() == 0) {
        log_.Warn(agreement_.why_no_learn);
      }
      break;
    case Agreement::Kind::kAlone:
      if (!agreement_.why.empty()) log_.Warn(agreement_.why + ": the policy is applied as it is");
      agreement_.policy = std::move(own);
      break;
  }
  if (agreement_.policy.has_value()) {
    UsePolicy(*agreement_.policy);
  } else {
    if (compare_) log_.Warn("DIAPASON_MODE=compare has nothing to compare: no policy is set");
    log_.Info(who + (!agreement_.learn || compare_ ? ": no policy is set, the library decides"
                     : ordered_ ? ": tuned from outside, which begins with the library's choices"
                                : ": learning, from the library's own choices"));
  }
  return true;
}

void Engine::UsePolicy(policy::Policy policy) {
  policy_digest_ = policy::DigestText(policy::Digest(policy));
  PrepareChannels(&policy);
  for (const policy::Rule& rule : policy.rules) {
    if (rule.safe) safe_lines_.push_back(rule.line);
  }
  std::sort(safe_lines_.begin(), safe_lines_.end());
  policy::DecisionTable::Options table_options;
  table_options.shape = init_.shape;
  table_options.use_reg_buff_rows = inputs_.reg_buff_rows;
  table_options.any_shape_rows_only = init_.api == 1 && !inputs_.single_shape;
  table_ = policy::DecisionTable(policy, table_options);
  have_policy_ = true;
  WarnAboutRows();
  log_.Info(Format("{}, tuner API v{}, {}: policy {} ({}) for {} and {}: {} of {} can match{}",
                   kVersion, init_.api, std::string(LibraryTitle(host_.library)), policy_name_,
                   policy_digest_, Count(static_cast<size_t>(init_.shape.nodes), "node"),
                   Count(static_cast<size_t>(init_.shape.ranks), "rank"), table_.row_count(),
                   Count(policy.rules.size(), "row"),
                   observe_            ? "; observing, nothing is changed"
                   : !agreement_.learn ? ""
                   : compare_          ? "; in turns with the library's default"
                   : ordered_          ? "; tuned from outside"
                                       : "; learning from there"));
}

void Engine::StartLearning(const Settings& settings, const policy::Policy& policy) {
  LearningOptions options;
  options.store = agreement_.stores.background;
  options.calls_store = agreement_.stores.calls;
  options.waker = LearningThread::Instance().waker();
  options.prefix = agreement_.prefix;
  options.comm_id = init_.comm_id;
  options.rank = communicator_->rank();
  options.shape = init_.shape;
  options.host = host_;
  options.is_2_31 = rules_.from_2_31;
  options.min_ctas = inputs_.min_ctas;
  options.number = number_;
  options.compare = compare_;
  options.ordered = ordered_;
  options.turn_seconds = static_cast<double>(settings.Number(Setting::kTurn)) * 1e-3;
  const Result<learn::Strategy> strategy = learn::ParseStrategy(settings.Text(Setting::kStrategy));
  if (strategy.ok()) options.learn.strategy = strategy.value();
  options.learn.epsilon = settings.Share(Setting::kEpsilon);
  options.learn.margin = settings.Share(Setting::kMargin);
  options.learn.budget = settings.Share(Setting::kExploreBudget);
  options.reward = settings.Text(Setting::kReward);
  options.reward_file = settings.Text(Setting::kRewardFile);
  options.arms = settings.Text(Setting::kArms);
  options.learned = policy::LearnedFile(settings);
  options.memory = static_cast<uint64_t>(settings.Number(Setting::kLearnMemory));
  options.patience = StorePatience(settings);
  options.freeze_file = settings.Text(Setting::kFreezeFile);
  options.numerics_pinned = inputs_.numerics_pinned;
  options.allgather_channels = inputs_.allgather_channels;
  policy::Policy prepared = policy;
  PrepareChannels(&prepared);
  const auto learning = std::make_shared<Learning>(std::move(options), prepared, log_, journal_);
  learning_ = communicator_->Learn(learning);
  LearningThread::Instance().Add({learning, learning->handover()});
}

void Engine::PrepareChannels(policy::Policy* policy) const {
  size_t refused = 0;
  size_t raised = 0;
  for (policy::Rule& rule : policy->rules) {
    const int before = rule.config.channels;
    // The algorithm of a row without one is known only at the call, and is checked again there.
    const int algorithm = rule.config.algorithm == kKeep ? kRing : rule.config.algorithm;
    rule.config.channels = ChannelsFor(rule.config, rule.collective, algorithm, init_.shape);
    if (before > 0 && rule.config.channels > before) ++raised;
    if (rule.collective == Collective::kAllGather && before > 1 && !inputs_.allgather_channels)
      ++refused;
  }
  if (raised > 0) {
    log_.Warn(
        Format("NCCL_MIN_CTAS={} wins over a tuner from 2.31 on: the channel counts of {} are "
               "raised to it",
               inputs_.min_ctas, Count(raised, "row")));
  }
  if (refused > 0) {
    log_.Warn(
        Format("the channel counts of {} for allgather are not applied: from 2.29 on grouped "
               "broadcasts ask as allgather and a count above the communicator's own is not "
               "checked; NCCL_ALLGATHERV_ENABLE=0 or DIAPASON_ALLGATHER_CHANNELS=1 allows "
               "them",
               Count(refused, "row")));
  }
}

void Engine::WarnAboutRows() const {
  if (table_.skipped_reg_buff_rows() > 0) {
    log_.Warn(
        Format("{} skipped: regBuff is computed by each rank by itself, and ranks that "
               "choose differently hang; DIAPASON_REGBUFF=1 uses them",
               Count(table_.skipped_reg_buff_rows(), "row")));
  }
  if (table_.skipped_shape_rows() > 0) {
    log_.Warn(
        Format("{} skipped: tuner API v1 does not say which communicator asks; "
               "DIAPASON_SINGLE_SHAPE=1 uses them where all have the same nodes and ranks",
               Count(table_.skipped_shape_rows(), "row")));
  }
}

void Engine::WarnAboutSettings() const {
  SettingsSeen seen;
  seen.value = [](const char* name) { return ProcessEnvironment().Get(name).value_or(""); };
  seen.exists = FileExists;
  seen.version = host_.version;
  seen.loaded = true;
  const std::vector<SettingConflict> conflicts = FindSettingConflicts(seen);
  std::string all;
  for (const SettingConflict& one : conflicts) all += one.title;
  // A job may create many communicators.
  static std::atomic<size_t> said{0};
  const size_t now = std::hash<std::string>()(all);
  if (said.exchange(now) == now) return;
  for (const SettingConflict& one : conflicts) {
    const std::string text = one.title + ": " + one.action;
    one.severity == Severity::kNote ? log_.Info(text) : log_.Warn(text);
  }
}

void Engine::OpenChain(const Settings& settings) {
  const FoundTuner found = FindTuner(settings, ProcessEnvironment(), host_, init_.api);
  const bool named = settings.IsSet(Setting::kChain);
  // The library itself writes such lines at INFO.
  const auto say = [&](bool warn, const std::string& text) {
    warn ? log_.Warn(text) : log_.Info(text);
  };
  if (!found.trouble.empty()) say(named, found.trouble + "; going on without it");
  if (found.library == nullptr) return;
  constants_.Keep(init_.constants, init_.api);
  Result<std::unique_ptr<Chain>> chain = Chain::Open(found, init_);
  if (!chain.ok()) {
    constants_.Restore();
    const bool failed_to_start = chain.status().code() == ErrorCode::kUnavailable;
    say(named || failed_to_start, chain.status().message() + "; going on without it");
    return;
  }
  chain_ = std::move(chain).value();
  log_.Info(Format("chained tuner {} ({}, {}): its answer is the default", chain_->description(),
                   SourceText(found.source), chain_->File()));
}

void Engine::OpenJournal(const Settings& settings) {
  journal_ = ProcessJournal(settings, log_);
  if (journal_ == nullptr) return;
  journal_tables_ = settings.Flag(Setting::kJournalTables);
  journal::JournalComm& communicator = journal_comm_;
  communicator.created_ns = WallTimeNs();
  communicator.number = number_;
  communicator.id = init_.comm_id;
  communicator.api = init_.api;
  communicator.library = host_.library;
  communicator.library_version = host_.version;
  communicator.shape = init_.shape;
  communicator.mode = settings.Text(Setting::kMode);
  communicator.policy = policy_name_;
  communicator.digest = policy_digest_;
  communicator.rows = table_.row_count();
  communicator.chain = chain_ != nullptr ? chain_->description() : "";
  communicator.store =
      agreement_.stores.background != nullptr ? agreement_.stores.background->Describe() : "";
  communicator.agreed = agreement_.kind == Agreement::Kind::kOff ? agreement_.why
                        : agreement_.kind == Agreement::Kind::kTogether
                            ? (!agreement_.learn ? "static"
                               : compare_        ? "compare"
                               : ordered_        ? "tune"
                                                 : "learn")
                            : "";
  if (communicator_ != nullptr) {
    communicator.rank = communicator_->rank();
    communicator.name = communicator_->name();
    communicator_->KeepJournal(journal_, number_, settings.Flag(Setting::kJournalTimes));
  }
  journal_->AddCommunicator(communicator);
}

}  // namespace diapason::plugin
