#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/environment.h"

namespace diapason {

// The one registry of settings. Every setting is an environment variable; some answer to a second
// name that people know from elsewhere. `diapason settings` prints this table,
// docs/formats/settings.md is generated from it.
enum class Setting {
  kMode,
  kPolicy,
  kPolicyInline,
  kPolicyOverlap,
  kOverlap,
  kChain,
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
  kBackend,
  kTimeout,
  kSecretFile,
  kSecret,
  kSlowCall,
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
  const char* other_name;  // "" when there is none; the first name wins when both are set
  SettingType type;
  const char* default_value;  // as one would write it
  int64_t minimum;            // for kInteger and kBytes
  int64_t maximum;
  const char* choices;  // for kChoice, separated by '|'
  const char* text;
};

const std::array<SettingInfo, kSettingCount>& SettingTable();
// The bounds or the choices of a setting, for people: "64 to 1048576", "off, observe or static".
std::string SettingBounds(const SettingInfo& info);

// The settings at one moment. Read once, never changed: a value cannot move under a reader.
class Settings {
 public:
  // Never fails: a value that cannot be used stays at its default and is named in problems().
  static Settings Read(const Environment& environment);

  // Of kSecret only that there is one: comm/secret.h reads it.
  const std::string& Text(Setting setting) const { return At(setting).text; }
  bool Flag(Setting setting) const { return At(setting).number != 0; }
  int64_t Number(Setting setting) const { return At(setting).number; }
  // From 0 to 1, for kShare.
  double Share(Setting setting) const { return static_cast<double>(At(setting).number) / 1e9; }
  bool IsSet(Setting setting) const { return At(setting).source != "default"; }
  // "default", or the name of the variable the value came from.
  const std::string& Source(Setting setting) const { return At(setting).source; }

  // One sentence for every value that was refused.
  const std::vector<std::string>& problems() const { return problems_; }
  // One sentence for every DIAPASON_ variable that is no setting: most likely a typo.
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
