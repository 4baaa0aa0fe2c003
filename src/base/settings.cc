#include "base/settings.h"

#include <cmath>

#include "base/secrets.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"

namespace diapason {
namespace {

constexpr std::array<SettingInfo, kSettingCount> kTable{{
    {Setting::kMode, "DIAPASON_MODE", "", SettingType::kChoice, "static", 0, 0,
     "off|observe|static|learn",
     "static applies the policy; learn tries configurations while the job runs and keeps what "
     "makes "
     "it faster; observe journals what the policy would choose and changes nothing; off steps "
     "aside "
     "entirely."},
    {Setting::kPolicy, "DIAPASON_POLICY", "NCCL_TUNER_CONFIG_FILE", SettingType::kText, "", 0, 0,
     "", "The policy file. Without one the library decides as it always did."},
    {Setting::kPolicyInline, "DIAPASON_POLICY_INLINE", "", SettingType::kText, "", 0, 0, "",
     "A whole policy in one variable, as `diapason policy env` prints it. It wins over every "
     "policy "
     "file, so that a launcher can send the same policy to every rank."},
    {Setting::kPolicyOverlap, "DIAPASON_POLICY_OVERLAP", "", SettingType::kText, "", 0, 0, "",
     "The policy file that is used instead when DIAPASON_OVERLAP is on. Without it, "
     "<stem>.overlap.conf beside the policy file."},
    {Setting::kOverlap, "DIAPASON_OVERLAP", "NCCL_WORKLOAD_OVERLAP", SettingType::kFlag, "0", 0, 0,
     "", "The job overlaps compute with communication: use the overlap policy."},
    {Setting::kChain, "DIAPASON_CHAIN", "", SettingType::kText, "", 0, 0, "",
     "Another tuner library (a vendor's). It is asked first, and its answer is what 'default' "
     "means."},
    {Setting::kLibrary, "DIAPASON_LIBRARY", "", SettingType::kChoice, "auto", 0, 0,
     "auto|nccl|rccl", "Which library has loaded the plugin. auto looks at the library itself."},
    {Setting::kFingerprint, "DIAPASON_FINGERPRINT", "", SettingType::kText, "", 0, 0, "",
     "What this machine calls itself when a policy's fingerprint is compared. Empty: its GPUs, as "
     "the driver lists them."},
    {Setting::kRegBuff, "DIAPASON_REGBUFF", "", SettingType::kFlag, "0", 0, 0, "",
     "Use policy rows that depend on regBuff. Each rank computes regBuff by itself: where ranks "
     "register different buffers such rows make them choose differently, and the job hangs."},
    {Setting::kLl128Works, "DIAPASON_LL128", "", SettingType::kFlag, "0", 0, 0, "",
     "LL128 works between all ranks of this job. Read only under tuner API v1 and v2, which do not "
     "say; LL128 on a path that cannot carry it can corrupt data."},
    {Setting::kAllGatherChannels, "DIAPASON_ALLGATHER_CHANNELS", "", SettingType::kFlag, "0", 0, 0,
     "",
     "Apply channel counts above 1 to allgather on library 2.29 and later. There, grouped "
     "broadcasts ask as allgather, and a count above the communicator's own is not checked. Not "
     "needed when NCCL_ALLGATHERV_ENABLE=0."},
    {Setting::kSingleShape, "DIAPASON_SINGLE_SHAPE", "", SettingType::kFlag, "0", 0, 0, "",
     "Every communicator of the job has the same number of nodes and ranks. Read only under tuner "
     "API v1, which does not say which communicator asks: without it, rows that name nodes or "
     "ranks "
     "are skipped there."},
    {Setting::kNumerics, "DIAPASON_NUMERICS", "", SettingType::kChoice, "free", 0, 0, "free|pinned",
     "pinned: nothing is changed that could change the last bits of a sum (allreduce, reduce, "
     "reducescatter), except by policy rows marked `# numerics: safe`; the journal says what would "
     "have been chosen."},
    {Setting::kStore, "DIAPASON_STORE", "", SettingType::kText, "", 0, 0, "",
     "Where the ranks of a job agree: shm (ranks that share /dev/shm), file:/folder (on a shared "
     "file system), or redis://[user][:password@]host[:port][/database][?password-file=/path]. "
     "Learning needs one; empty means shm there. With a store every rank uses rank 0's policy."},
    {Setting::kJob, "DIAPASON_JOB", "", SettingType::kText, "", 0, 0, "",
     "The job's name in the store, the same on every rank and different for every job. Empty: what "
     "Slurm, torchrun or Open MPI say."},
    {Setting::kJoinLimit, "DIAPASON_JOIN_LIMIT", "", SettingType::kInteger, "10", 1, 3600, "",
     "Seconds a new communicator waits in the store for all its ranks; then all of them leave the "
     "choices to the library."},
    {Setting::kStorePatience, "DIAPASON_STORE_PATIENCE", "", SettingType::kInteger, "60", 0, 86400,
     "",
     "Seconds a call waits for a store that does not answer, when it needs to know what the ranks "
     "have agreed on. Waiting is safe, since the other ranks wait in the collective; after it the "
     "call fails."},
    {Setting::kReward, "DIAPASON_REWARD", "", SettingType::kChoice, "auto", 0, 0,
     "auto|step|report|file|pattern|gpu",
     "What learning goes by: step (diapason_step), report (diapason_report), file (the reward "
     "file), pattern (iterations found in the order of calls), gpu (the GPU time of each call). "
     "auto takes the first of these that is there."},
    {Setting::kRewardFile, "DIAPASON_REWARD_FILE", "NCCL_TUNER_REWARD_FILE", SettingType::kText, "",
     0, 0, "",
     "The file to which the program appends lines `collType,nBytes,nNodes,nRanks,latency_ms`, read "
     "by rank 0. Empty: /tmp/nccl_tuner_rewards_<commId>.log."},
    {Setting::kStrategy, "DIAPASON_STRATEGY", "", SettingType::kChoice, "elimination", 0, 0,
     "elimination|epsilon|thompson",
     "How configurations are tried: elimination compares blocks of calls with blocks of the "
     "default and drops what is slower; epsilon tries at random with probability DIAPASON_EPSILON; "
     "thompson draws from what is known."},
    {Setting::kEpsilon, "DIAPASON_EPSILON", "NCCL_TUNER_EPS", SettingType::kShare, "0.1", 0, 0, "",
     "The share of blocks in which the strategy epsilon tries something at random."},
    {Setting::kMargin, "DIAPASON_MARGIN", "", SettingType::kShare, "0.02", 0, 0, "",
     "A change must be faster than the default by at least this share."},
    {Setting::kExploreBudget, "DIAPASON_EXPLORE_BUDGET", "", SettingType::kShare, "0.03", 0, 0, "",
     "The share of time that may be lost to trying, counted over at least 1000 calls."},
    {Setting::kArms, "DIAPASON_ARMS", "", SettingType::kChoice, "auto", 0, 0,
     "auto|policy|seed|offered",
     "What learning tries beside the default: policy (every row that matches, not only the first), "
     "seed (tree/simple, tree/ll128, ring/simple), offered (every pair the library offers, then "
     "fewer channels of the best). auto: policy where it has rows, else offered."},
    {Setting::kLearned, "DIAPASON_LEARNED", "", SettingType::kText, "", 0, 0, "",
     "The policy file that rank 0 writes what was learned to, merged with what it holds. Where "
     "neither DIAPASON_POLICY nor DIAPASON_POLICY_INLINE is set the job also starts from it."},
    {Setting::kLearnMemory, "DIAPASON_LEARN_MEMORY", "", SettingType::kBytes, "1GiB", 0,
     int64_t{1} << 50, "",
     "GPU memory that must be free before an algorithm is tried that the communicator has not used "
     "yet: its first use allocates buffers."},
    {Setting::kFreezeFile, "DIAPASON_FREEZE_FILE", "", SettingType::kText, "", 0, 0, "",
     "While this file exists on rank 0's host, learning tries nothing: all ranks run the best "
     "known "
     "so far. `diapason freeze` does the same through the store."},
    {Setting::kJournal, "DIAPASON_JOURNAL", "", SettingType::kText, "", 0, 0, "",
     "Write every decision to this file, one JSON object a line. %h becomes the host, %p the "
     "process id. A process that finds the file in use adds its process id to the name."},
    {Setting::kJournalRecords, "DIAPASON_JOURNAL_RECORDS", "", SettingType::kInteger, "16384", 64,
     1048576, "",
     "Decisions the journal holds in memory until its thread has written them; more at once are "
     "dropped and counted."},
    {Setting::kJournalLimit, "DIAPASON_JOURNAL_LIMIT", "", SettingType::kBytes, "1GiB", 65536,
     int64_t{1} << 50, "", "The size at which the journal file stops growing."},
    {Setting::kJournalShared, "DIAPASON_JOURNAL_SHARED", "", SettingType::kFlag, "0", 0, 0, "",
     "Others may read the journal: its mode is what the umask leaves of 0666. Without it only the "
     "user who runs the job may (0600)."},
    {Setting::kJournalTables, "DIAPASON_JOURNAL_TABLES", "", SettingType::kFlag, "0", 0, 0, "",
     "Add the library's cost table to every journal record."},
    {Setting::kJournalTimes, "DIAPASON_JOURNAL_TIMES", "", SettingType::kFlag, "0", 0, 0, "",
     "Add the GPU time of every call to the journal (library 2.27 and later, with the profiler "
     "half). It costs a little; without it only calls that learning measures have one."},
    {Setting::kBackend, "DIAPASON_BACKEND", "", SettingType::kChoice, "auto", 0, 0,
     "auto|nccl|rccl|gloo|mpi|sim",
     "What groups of comm.h run on, where the program itself does not say. auto takes the first of "
     "nccl, rccl, gloo and mpi that works on every rank."},
    {Setting::kTimeout, "DIAPASON_TIMEOUT", "", SettingType::kInteger, "600", 1, 604800, "",
     "The limit of every wait of a group in seconds, its creation included."},
    {Setting::kSecretFile, "DIAPASON_SECRET_FILE", "", SettingType::kText, "", 0, 0, "",
     "A file with the secret by which the ranks of a group know each other, the same on every "
     "rank: "
     "16 to 4096 bytes, readable by its owner alone. `diapason launch` makes one for its ranks. "
     "Empty: DIAPASON_SECRET."},
    {Setting::kSecret, "DIAPASON_SECRET", "", SettingType::kText, "", 0, 0, "",
     "The secret itself, for ranks that share no file; sweep and tune hand it to those they start "
     "with mpirun or srun. Empty: any process that reaches MASTER_PORT may join."},
    {Setting::kSlowCall, "DIAPASON_SLOW_CALL", "", SettingType::kInteger, "10", -1, 604800000, "",
     "Calls of a group that take longer than so many milliseconds are logged, at most one line a "
     "second. -1: none are."},
    {Setting::kCluster, "DIAPASON_CLUSTER", "", SettingType::kText, "h100x8", 0, 0, "",
     "The simulated cluster of the backend sim: a name that `diapason simulate` lists, or a file."},
    {Setting::kNcclLibrary, "DIAPASON_NCCL_LIBRARY", "", SettingType::kText, "", 0, 0, "",
     "The NCCL library file groups use. Empty: the one in the process, else the loader's "
     "libnccl.so.2."},
    {Setting::kRcclLibrary, "DIAPASON_RCCL_LIBRARY", "", SettingType::kText, "", 0, 0, "",
     "The RCCL library file groups use. Empty: the one in the process, else the loader's "
     "librccl.so.1."},
    {Setting::kLibDir, "DIAPASON_LIB_DIR", "", SettingType::kText, "", 0, 0, "",
     "Where our own libraries are, if they were moved apart: the tuner plugin and the modules for "
     "Gloo and Open MPI. Empty: beside the program, or in lib/ beside its folder."},
}};

Result<int64_t> ParseFlag(std::string_view text) {
  const std::string lower = ToLower(text);
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (lower == yes) return int64_t{1};
  }
  for (const char* no : {"0", "false", "no", "off", ""}) {
    if (lower == no) return int64_t{0};
  }
  return Invalid("is neither on (1, true, yes) nor off (0, false, no)");
}

std::vector<std::string> Choices(const SettingInfo& info) {
  std::vector<std::string> choices;
  for (const std::string_view choice : Split(info.choices, '|')) choices.emplace_back(choice);
  return choices;
}

// Parses the text of a setting as its number; text settings have none.
Result<int64_t> ParseNumber(const SettingInfo& info, const std::string& text) {
  switch (info.type) {
    case SettingType::kText:
      return int64_t{0};
    case SettingType::kFlag:
      return ParseFlag(text);
    case SettingType::kChoice: {
      const std::vector<std::string> choices = Choices(info);
      for (size_t i = 0; i < choices.size(); ++i) {
        if (choices[i] == ToLower(text)) return static_cast<int64_t>(i);
      }
      return Invalid("is not one of its values" + Suggestion(text, choices));
    }
    case SettingType::kShare: {
      if (text == "1" || text == "1.0" || text == "100%") return int64_t{1000000000};
      const Result<double> share = ParseShare(text, info.name);
      if (!share.ok()) return Invalid("is not a share such as 0.05 or 5%");
      return static_cast<int64_t>(std::llround(share.value() * 1e9));
    }
    case SettingType::kInteger:
    case SettingType::kBytes: {
      int64_t number = 0;
      if (info.type == SettingType::kBytes) {
        const Result<uint64_t> bytes = ParseBytes(text);
        if (!bytes.ok()) return Invalid("is not a size such as 64KiB or 1G");
        if (bytes.value() > static_cast<uint64_t>(INT64_MAX)) return Invalid("is too large");
        number = static_cast<int64_t>(bytes.value());
      } else if (!ParseSigned(text, &number)) {
        return Invalid("is not a whole number");
      }
      if (number < info.minimum || number > info.maximum) {
        return Invalid("is out of range (" + SettingBounds(info) + ")");
      }
      return number;
    }
  }
  return Internal("has no known type");
}

}  // namespace

const std::array<SettingInfo, kSettingCount>& SettingTable() { return kTable; }

std::string SettingBounds(const SettingInfo& info) {
  switch (info.type) {
    case SettingType::kFlag:
      return "0 or 1";
    case SettingType::kChoice:
      return Join(Choices(info), ", ");
    case SettingType::kInteger:
      return Format("%lld to %lld", static_cast<long long>(info.minimum),
                    static_cast<long long>(info.maximum));
    case SettingType::kBytes:
      return FormatBytes(static_cast<uint64_t>(info.minimum)) + " to " +
             FormatBytes(static_cast<uint64_t>(info.maximum));
    case SettingType::kShare:
      return "a share: 0.05 or 5%";
    case SettingType::kText:
      break;
  }
  return "text";
}

Settings Settings::Read(const Environment& environment) {
  Settings settings;
  std::vector<std::string> known_names;
  for (const SettingInfo& info : kTable) {
    known_names.emplace_back(info.name);
    Value& value = settings.values_[static_cast<size_t>(info.id)];
    value.text = info.default_value;
    value.number = ParseNumber(info, info.default_value).value();

    for (const char* name : {info.name, info.other_name}) {
      if (*name == '\0') continue;
      const std::optional<std::string> text = environment.Get(name);
      // Launchers and shells set an empty value for "not set".
      if (!text.has_value() || text->empty()) continue;
      const Result<int64_t> number = ParseNumber(info, std::string(Trim(*text)));
      if (!number.ok()) {
        settings.problems_.push_back(Format("%s='%s' %s", name, MaskSecrets(name, *text).c_str(),
                                            number.status().message().c_str()));
        break;
      }
      value.text = info.type == SettingType::kChoice ? ToLower(Trim(*text)) : *text;
      // Settings are printed, so the secret is not kept here.
      if (info.id == Setting::kSecret) value.text = "(not shown)";
      value.number = number.value();
      value.source = name;
      break;
    }
  }
  for (const std::string& name : environment.Names()) {
    if (!name.starts_with("DIAPASON_")) continue;
    bool known = false;
    for (const std::string& other : known_names) known = known || other == name;
    if (known) continue;
    const std::string closest = ClosestName(name, known_names);
    settings.warnings_.push_back(
        name + " is no setting" +
        (closest.empty() ? "; `diapason settings` lists them" : "; did you mean " + closest + "?"));
  }
  return settings;
}

}  // namespace diapason
