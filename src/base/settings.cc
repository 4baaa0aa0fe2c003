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
     "off|observe|static|learn|compare|tune",
     "Operating mode. static applies the policy; learn tries configurations while the job runs and "
     "keeps the fastest; compare runs the library's default and the policy in turns, the same on "
     "every rank; tune is set by `diapason tune -- COMMAND`, which says what is tried; observe "
     "records in the journal what the policy would choose and changes nothing; "
     "off disables the plugin."},
    {Setting::kPolicy, "DIAPASON_POLICY", "NCCL_TUNER_CONFIG_FILE", SettingType::kText, "", 0, 0,
     "", "Policy file. Without one the library makes its own choices."},
    {Setting::kPolicyInline, "DIAPASON_POLICY_INLINE", "", SettingType::kText, "", 0, 0, "",
     "A whole policy in one variable, as `diapason policy env` prints it. It takes precedence over "
     "every policy file, so that a launcher can send the same policy to every rank."},
    {Setting::kPolicyOverlap, "DIAPASON_POLICY_OVERLAP", "", SettingType::kText, "", 0, 0, "",
     "Policy file that replaces DIAPASON_POLICY when DIAPASON_OVERLAP is on. Empty: "
     "<stem>.overlap.conf beside the policy file."},
    {Setting::kOverlap, "DIAPASON_OVERLAP", "NCCL_WORKLOAD_OVERLAP", SettingType::kFlag, "0", 0, 0,
     "",
     "Set it if the job overlaps compute with communication: the plugin then uses the overlap "
     "policy."},
    {Setting::kChain, "DIAPASON_CHAIN", "", SettingType::kText, "", 0, 0, "",
     "Another tuner library, for example a vendor's, or none. The plugin asks it first, and "
     "'default' then means the answer of that tuner. Not set: the tuner that the library would "
     "have loaded without diapason."},
    {Setting::kProfilerChain, "DIAPASON_PROFILER_CHAIN", "", SettingType::kText, "", 0, 0, "",
     "Another profiler library, for example NCCL Inspector. The library loads only one profiler: "
     "the plugin passes on to the other one what that one asks for. Empty: with NCCL_ENV_PLUGIN, "
     "where the plugin takes its place, the profiler that the library would have loaded "
     "(NCCL_PROFILER_PLUGIN, or the default). none: no other profiler."},
    {Setting::kLibrary, "DIAPASON_LIBRARY", "", SettingType::kChoice, "auto", 0, 0,
     "auto|nccl|rccl", "The library that has loaded the plugin. auto detects it."},
    {Setting::kFingerprint, "DIAPASON_FINGERPRINT", "", SettingType::kText, "", 0, 0, "",
     "Name of this machine that is compared with the fingerprint of a policy. Empty: the GPUs of "
     "this machine, as the driver lists them."},
    {Setting::kRegBuff, "DIAPASON_REGBUFF", "", SettingType::kFlag, "0", 0, 0, "",
     "Apply policy rows that depend on regBuff. Each rank computes regBuff by itself: if ranks "
     "register different buffers, such rows make the ranks choose differently, and the job hangs."},
    {Setting::kLl128Works, "DIAPASON_LL128", "", SettingType::kFlag, "0", 0, 0, "",
     "Set it if LL128 works between all ranks of this job. Read only under tuner API v1 and v2, "
     "which do not report it; LL128 on a path that does not support it can corrupt data."},
    {Setting::kAllGatherChannels, "DIAPASON_ALLGATHER_CHANNELS", "", SettingType::kFlag, "0", 0, 0,
     "",
     "Apply channel counts above 1 to allgather on library 2.29 and later. In these versions "
     "grouped broadcasts reach the tuner as allgather, and a count above the communicator's own is "
     "not checked. Not needed when NCCL_ALLGATHERV_ENABLE=0."},
    {Setting::kSingleShape, "DIAPASON_SINGLE_SHAPE", "", SettingType::kFlag, "0", 0, 0, "",
     "Set it if every communicator of the job has the same number of nodes and ranks. Read only "
     "under tuner API v1, which does not identify the communicator: if it is off, rows that name "
     "nodes or ranks are skipped under v1."},
    {Setting::kNumerics, "DIAPASON_NUMERICS", "", SettingType::kChoice, "free", 0, 0, "free|pinned",
     "pinned: the plugin makes no change that could affect the last bits of a sum (allreduce, "
     "reduce, reducescatter), except by policy rows marked `# numerics: safe`; the journal records "
     "the choice that was suppressed."},
    {Setting::kStore, "DIAPASON_STORE", "", SettingType::kText, "", 0, 0, "",
     "Store through which the ranks of a job agree: shm (ranks that share /dev/shm), file:/folder "
     "(on a shared file system), tcp://host[:port] (`diapason serve`, with the secret of "
     "DIAPASON_SECRET_FILE), or "
     "redis://[user][:password@]host[:port][/database][?password-file=/path]. Learning needs a "
     "store and uses shm if this is empty. With a store every rank uses rank 0's policy."},
    {Setting::kJob, "DIAPASON_JOB", "", SettingType::kText, "", 0, 0, "",
     "Name of the job in the store, the same on every rank and different for every job. Empty: the "
     "job id from Slurm, torchrun or Open MPI."},
    {Setting::kJoinLimit, "DIAPASON_JOIN_LIMIT", "", SettingType::kInteger, "10", 1, 3600, "",
     "Time in seconds that a new communicator waits in the store for all its ranks; after that all "
     "of them leave the choices to the library."},
    {Setting::kStorePatience, "DIAPASON_STORE_PATIENCE", "", SettingType::kInteger, "60", 0, 86400,
     "",
     "Time in seconds that a call waits for a store that does not answer, when it needs to know "
     "what the ranks have agreed on. Waiting is safe, since the other ranks wait in the "
     "collective; after this time the call fails."},
    {Setting::kReward, "DIAPASON_REWARD", "", SettingType::kChoice, "auto", 0, 0,
     "auto|step|report|file|pattern|cycle|gpu",
     "Measure of success for learning: step (diapason_step), report (diapason_report), file (the "
     "reward file), pattern (iterations found in the order of calls), cycle (from a call that the "
     "program waits for to the next), gpu (the GPU time of each call). auto takes the first of "
     "these that is available."},
    {Setting::kRewardFile, "DIAPASON_REWARD_FILE", "NCCL_TUNER_REWARD_FILE", SettingType::kText, "",
     0, 0, "",
     "File to which the program appends lines "
     "`collType,nBytes,nNodes,nRanks,latency_ms[,call[,calls]]`; rank 0 reads it. Empty: "
     "/tmp/nccl_tuner_rewards_<commId>.log."},
    {Setting::kStrategy, "DIAPASON_STRATEGY", "", SettingType::kChoice, "elimination", 0, 0,
     "elimination|epsilon|thompson",
     "Search strategy of learning: elimination compares blocks of calls with blocks of the default "
     "and drops slower configurations; epsilon tries a random configuration with probability "
     "DIAPASON_EPSILON; thompson samples from the posterior (Thompson sampling)."},
    {Setting::kEpsilon, "DIAPASON_EPSILON", "NCCL_TUNER_EPS", SettingType::kShare, "0.1", 0, 0, "",
     "Share of blocks in which the strategy epsilon tries a random configuration."},
    {Setting::kMargin, "DIAPASON_MARGIN", "", SettingType::kShare, "0.02", 0, 0, "",
     "Least gain over the default that a configuration needs to replace it."},
    {Setting::kExploreBudget, "DIAPASON_EXPLORE_BUDGET", "", SettingType::kShare, "0.03", 0, 0, "",
     "Share of time that may be lost to exploration, counted over at least 1000 calls."},
    {Setting::kTurn, "DIAPASON_TURN", "", SettingType::kInteger, "2000", 20, 3600000, "",
     "Length in milliseconds of a turn of the default or of the policy in mode compare. At least "
     "20 iterations should fit into one."},
    {Setting::kArms, "DIAPASON_ARMS", "", SettingType::kChoice, "auto", 0, 0,
     "auto|policy|seed|offered",
     "Candidates that learning tries beside the default: policy (every row that matches, not only "
     "the first), seed (tree/simple, tree/ll128, ring/simple), offered (every pair the library "
     "offers, then fewer channels of the best). auto: policy if the policy has matching rows, else "
     "offered."},
    {Setting::kLearned, "DIAPASON_LEARNED", "", SettingType::kText, "", 0, 0, "",
     "Policy file to which rank 0 writes the learned choices, merged with the file's rows. If "
     "neither DIAPASON_POLICY nor DIAPASON_POLICY_INLINE is set, the job also starts from this "
     "file."},
    {Setting::kLearnMemory, "DIAPASON_LEARN_MEMORY", "", SettingType::kBytes, "1GiB", 0,
     int64_t{1} << 50, "",
     "GPU memory that must be free before learning tries an algorithm that the communicator has "
     "not used yet: its first use allocates buffers."},
    {Setting::kFreezeFile, "DIAPASON_FREEZE_FILE", "", SettingType::kText, "", 0, 0, "",
     "While this file exists on rank 0's host, learning stops exploring: all ranks run the best "
     "configuration known so far. `diapason freeze` does the same through the store."},
    {Setting::kJournal, "DIAPASON_JOURNAL", "", SettingType::kText, "", 0, 0, "",
     "Journal file: every decision is written to it, one JSON object per line. %h is replaced by "
     "the host name, %p by the process id. A process that finds the file in use adds its process "
     "id to the name."},
    {Setting::kJournalRecords, "DIAPASON_JOURNAL_RECORDS", "", SettingType::kInteger, "16384", 64,
     1048576, "",
     "Number of decisions that the journal buffers in memory until its thread has written them; "
     "when the buffer is full, further decisions are dropped and counted."},
    {Setting::kJournalLimit, "DIAPASON_JOURNAL_LIMIT", "", SettingType::kBytes, "1GiB", 65536,
     int64_t{1} << 50, "", "Size at which the journal file stops growing."},
    {Setting::kJournalShared, "DIAPASON_JOURNAL_SHARED", "", SettingType::kFlag, "0", 0, 0, "",
     "Let other users read the journal: its mode is then 0666 less the umask. If it is off, only "
     "the user who runs the job can read it (0600)."},
    {Setting::kJournalTables, "DIAPASON_JOURNAL_TABLES", "", SettingType::kFlag, "0", 0, 0, "",
     "Add the library's cost table to every journal record."},
    {Setting::kJournalTimes, "DIAPASON_JOURNAL_TIMES", "", SettingType::kFlag, "0", 0, 0, "",
     "Add the GPU time of every call to the journal (library 2.27 and later, with the profiler "
     "plugin). This costs a little time; if it is off, only calls that learning measures have a "
     "GPU time."},
    {Setting::kMpiRecord, "DIAPASON_MPI_RECORD", "", SettingType::kText, "", 0, 0, "",
     "File to which libdiapason-mpi-recorder.so, preloaded into an MPI program, writes the "
     "program's collectives; `diapason run --observe` sets it. %h is replaced by the host name, %p "
     "by the process id. DIAPASON_JOURNAL_RECORDS, DIAPASON_JOURNAL_SHARED and, where it is set, "
     "DIAPASON_JOURNAL_LIMIT (else 64 MiB) hold for it too. Empty: nothing is recorded."},
    {Setting::kBackend, "DIAPASON_BACKEND", "", SettingType::kChoice, "auto", 0, 0,
     "auto|nccl|rccl|gloo|mpi|sim",
     "Backend of comm.h groups for which the program selects none. auto takes the first of nccl, "
     "rccl, gloo and mpi that works on every rank."},
    {Setting::kTimeout, "DIAPASON_TIMEOUT", "", SettingType::kInteger, "600", 1, 604800, "",
     "Limit in seconds for every wait of a group, including its creation."},
    {Setting::kSecretFile, "DIAPASON_SECRET_FILE", "", SettingType::kText, "", 0, 0, "",
     "File with the shared secret that authenticates the ranks of a group, the same on every rank: "
     "16 to 4096 bytes, readable only by its owner. `diapason launch` creates one for its ranks. "
     "Empty: DIAPASON_SECRET."},
    {Setting::kSecret, "DIAPASON_SECRET", "", SettingType::kText, "", 0, 0, "",
     "The shared secret itself, for ranks that share no file; sweep and tune pass it to the ranks "
     "they start with mpirun or srun. Empty: any process that reaches MASTER_PORT may join."},
    {Setting::kSlowCall, "DIAPASON_SLOW_CALL", "", SettingType::kInteger, "10", -1, 604800000, "",
     "Time in milliseconds above which a call of a group is logged, at most one line per second. "
     "-1 disables these log lines. If it is set, the plugin's profiler half does the same for the "
     "GPU times of a job's collectives, on standard error, and writes a summary for each "
     "communicator at its end."},
    {Setting::kSlowFactor, "DIAPASON_SLOW_FACTOR", "", SettingType::kInteger, "0", 0, 1000, "",
     "In a job with the plugin: a collective is also logged as slow if its GPU time exceeds the "
     "median of its collective and size by this factor. 0: no such limit."},
    {Setting::kCluster, "DIAPASON_CLUSTER", "", SettingType::kText, "h100x8", 0, 0, "",
     "Simulated cluster for the backend sim: a name that `diapason simulate` lists, or a file."},
    {Setting::kNcclLibrary, "DIAPASON_NCCL_LIBRARY", "", SettingType::kText, "", 0, 0, "",
     "NCCL library file that groups use. Empty: the library already loaded in the process, else "
     "libnccl.so.2 as the loader finds it. The commands that measure set it to PyTorch's library "
     "where PyTorch is installed; the value libnccl.so.2 means the loader's."},
    {Setting::kRcclLibrary, "DIAPASON_RCCL_LIBRARY", "", SettingType::kText, "", 0, 0, "",
     "RCCL library file that groups use. Empty: the library already loaded in the process, else "
     "librccl.so.1 as the loader finds it. The commands that measure set it to PyTorch's library "
     "where PyTorch is installed; the value librccl.so.1 means the loader's."},
    {Setting::kLibDir, "DIAPASON_LIB_DIR", "", SettingType::kText, "", 0, 0, "",
     "Folder of diapason's own libraries, if they were moved: the tuner plugin and the modules "
     "for Gloo and Open MPI. Empty: the folder of the program, or lib/ beside it."},
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
      return Format("{} to {}", info.minimum, info.maximum);
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
        settings.problems_.push_back(
            Format("{}='{}' {}", name, MaskSecrets(name, *text), number.status().message()));
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
    // `diapason tune` numbers its launches by this one, for scripts.
    if (!name.starts_with("DIAPASON_") || name == "DIAPASON_LAUNCH") continue;
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
