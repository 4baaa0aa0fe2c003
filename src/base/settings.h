#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/environment.h"

namespace diapason {

// The registry of settings. Every setting is an environment variable; some have a second,
// established name. `diapason settings` prints this table; docs/formats/settings.md is generated
// from it.
enum class Setting {
  kMode,
  kPolicy,
  kPolicyInline,
  kPolicyOverlap,
  kOverlap,
  kChain,
  kProfilerChain,
  kLibrary,
  kFingerprint,
  kRegBuff,
  kLl128Works,
  kAllGatherChannels,
  kSingleShape,
  kNumerics,
  kStore,
  kJob,
  kJoinLimit,
  kStorePatience,
  kReward,
  kRewardFile,
  kStrategy,
  kEpsilon,
  kMargin,
  kExploreBudget,
  kTurn,
  kArms,
  kLearned,
  kLearnMemory,
  kFreezeFile,
  kJournal,
  kJournalRecords,
  kJournalLimit,
  kJournalShared,
  kJournalTables,
  kJournalTimes,
  kMpiRecord,
  kBackend,
  kTimeout,
  kSecretFile,
  kSecret,
  kSlowCall,
  kSlowFactor,
  kCluster,
  kNcclLibrary,
  kRcclLibrary,
  kLibDir,
};
inline constexpr size_t kSettingCount = static_cast<size_t>(Setting::kLibDir) + 1;

enum class SettingType { kFlag, kInteger, kBytes, kShare, kChoice, kText };

struct SettingInfo {
  Setting id;
  const char* name;
  const char* other_name;  // "" if there is none; if both are set, the first name counts
  SettingType type;
  const char* default_value;  // as written in the environment
  int64_t minimum;            // for kInteger and kBytes
  int64_t maximum;
  const char* choices;  // for kChoice, separated by '|'
  const char* text;
};

const std::array<SettingInfo, kSettingCount>& SettingTable();
// The bounds or the choices of a setting, for the user: "64 to 1048576", "off, observe or static".
std::string SettingBounds(const SettingInfo& info);

// A snapshot of the settings. Immutable after Read.
class Settings {
 public:
  // Never fails: an invalid value is replaced by its default and named in problems().
  static Settings Read(const Environment& environment);

  // Of kSecret only whether it is set: rendezvous/secret.h reads the value.
  const std::string& Text(Setting setting) const { return At(setting).text; }
  bool Flag(Setting setting) const { return At(setting).number != 0; }
  int64_t Number(Setting setting) const { return At(setting).number; }
  // For kShare: from 0 to 1.
  double Share(Setting setting) const { return static_cast<double>(At(setting).number) / 1e9; }
  bool IsSet(Setting setting) const { return At(setting).source != "default"; }
  // "default", or the variable that the value came from.
  const std::string& Source(Setting setting) const { return At(setting).source; }

  // One sentence for every invalid value.
  const std::vector<std::string>& problems() const { return problems_; }
  // One sentence for every DIAPASON_ variable that is not a setting: most likely a typo.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Value {
    std::string text;
    int64_t number = 0;
    std::string source = "default";
  };
  const Value& At(Setting setting) const { return values_[static_cast<size_t>(setting)]; }

  std::array<Value, kSettingCount> values_;
  std::vector<std::string> problems_;
  std::vector<std::string> warnings_;
};

}  // namespace diapason
