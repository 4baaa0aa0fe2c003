#include <algorithm>

#include "base/text.h"
#include "knobs/context.h"
#include "knobs/values.h"

namespace diapason::knobs {
namespace {

struct Clause {
  enum class Op : uint8_t { kSet, kOn, kOff, kIs, kFamily };
  Op op;
  const char* name;  // kFamily: what the names begin with
  const char* value = "";
};
using Op = Clause::Op;

// Two or more assignments that conflict.
struct ConflictRule {
  Severity severity;
  std::vector<Clause> all;
  const char* title;
  const char* action;
};

const std::vector<ConflictRule>& Rules() {
  static const std::vector<ConflictRule> rules = {
      {Severity::kError,
       {{Op::kIs, "NCCL_NET", "IB"}, {Op::kOn, "NCCL_IB_DISABLE"}},
       "NCCL_NET=IB asks for the network that NCCL_IB_DISABLE turns off; no communicator over "
       "several hosts can be made",
       "Unset one of them"},
      {Severity::kWarning,
       {{Op::kOn, "NCCL_IB_DISABLE"}, {Op::kFamily, "NCCL_IB_"}},
       "NCCL_IB_DISABLE turns InfiniBand and RoCE off, and with them these settings",
       "Unset NCCL_IB_DISABLE, or the settings that do nothing beside it"},
      {Severity::kWarning,
       {{Op::kIs, "NCCL_NET", "Socket"}, {Op::kFamily, "NCCL_IB_"}},
       "NCCL_NET=Socket keeps InfiniBand and RoCE out, and with them these settings",
       "Unset NCCL_NET, or the settings that do nothing beside it"},
      {Severity::kWarning,
       {{Op::kIs, "NCCL_P2P_DISABLE", "1"}, {Op::kSet, "NCCL_P2P_LEVEL"}},
       "NCCL_P2P_DISABLE=1 wins: NCCL_P2P_LEVEL is not looked at",
       "Unset one of them"},
      {Severity::kWarning,
       {{Op::kOn, "NCCL_SHM_DISABLE"}, {Op::kIs, "NCCL_P2P_DISABLE", "1"}},
       "without P2P and without shared memory, ranks of one host talk through the network",
       "Unset one of them, unless the network is what you test"},
      {Severity::kError,
       {{Op::kIs, "NCCL_NVLS_ENABLE", "1"}, {Op::kOn, "NCCL_MULTI_RANK_GPU_ENABLE"}},
       "several ranks on a GPU cannot use NVLS, and NCCL_NVLS_ENABLE=1 makes that an error",
       "Set NCCL_NVLS_ENABLE=0"},
      {Severity::kWarning,
       {{Op::kOff, "NCCL_CUMEM_ENABLE"}, {Op::kOn, "NCCL_MNNVL_ENABLE"}},
       "multi-node NVLink needs cuMem memory, which NCCL_CUMEM_ENABLE=0 turns off",
       "Unset NCCL_CUMEM_ENABLE"},
      {Severity::kWarning,
       {{Op::kOff, "NCCL_CUMEM_ENABLE"}, {Op::kOn, "NCCL_CUMEM_HOST_ENABLE"}},
       "NCCL_CUMEM_HOST_ENABLE does nothing without NCCL_CUMEM_ENABLE",
       "Unset NCCL_CUMEM_ENABLE"},
      {Severity::kWarning,
       {{Op::kOff, "NCCL_CUMEM_ENABLE"}, {Op::kOn, "NCCL_WIN_ENABLE"}},
       "symmetric memory needs cuMem memory, which NCCL_CUMEM_ENABLE=0 turns off",
       "Unset NCCL_CUMEM_ENABLE"},
      {Severity::kWarning,
       {{Op::kIs, "NCCL_NET_GDR_LEVEL", "LOC"}, {Op::kOn, "NCCL_NET_GDR_READ"}},
       "NCCL_NET_GDR_LEVEL=LOC turns GPU Direct RDMA off, and NCCL_NET_GDR_READ with it",
       "Unset one of them"},
      {Severity::kWarning,
       {{Op::kOn, "NCCL_PXN_DISABLE"}, {Op::kOn, "NCCL_P2P_PXN_LEVEL"}},
       "NCCL_PXN_DISABLE turns PXN off, and NCCL_P2P_PXN_LEVEL with it",
       "Unset one of them"},
  };
  return rules;
}

// The variables that satisfy a clause; none if it is not satisfied.
std::vector<std::string> Matches(const Clause& clause, const ConflictRule& rule,
                                 const CheckContext& context) {
  const std::string name = clause.name;
  switch (clause.op) {
    case Op::kSet:
      return context.IsSet(name) ? std::vector<std::string>{name} : std::vector<std::string>{};
    case Op::kOn:
      return context.On(name) ? std::vector<std::string>{name} : std::vector<std::string>{};
    case Op::kOff:
      return context.Off(name) ? std::vector<std::string>{name} : std::vector<std::string>{};
    case Op::kIs:
      return context.Is(name, clause.value) ? std::vector<std::string>{name}
                                            : std::vector<std::string>{};
    case Op::kFamily:
      break;
  }
  std::vector<std::string> names;
  for (const auto& entry : context.live()) {
    const std::string& other = entry.first;
    const bool named = std::any_of(rule.all.begin(), rule.all.end(),
                                   [&](const Clause& one) { return other == one.name; });
    // Variables that switch off, or that are not read, do not contradict.
    if (!named && other.starts_with(name) && !other.ends_with("_DISABLE") && context.Reads(other)) {
      names.push_back(other);
    }
  }
  return names;
}

void Apply(const ConflictRule& rule, CheckContext* context) {
  std::vector<std::string> names;
  for (const Clause& clause : rule.all) {
    const std::vector<std::string> some = Matches(clause, rule, *context);
    if (some.empty()) return;
    names.insert(names.end(), some.begin(), some.end());
  }
  for (const std::string& name : names) {
    if (!context->Reads(name)) return;
  }
  context->Add("env.contradiction", rule.severity, rule.title, names, rule.action);
}

// NCCL_MIN_CTAS > NCCL_MAX_CTAS and their older names.
void CheckBounds(CheckContext* context) {
  for (const char* least : {"NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS"}) {
    for (const char* most : {"NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS"}) {
      const std::optional<int64_t> low = context->Number(least);
      const std::optional<int64_t> high = context->Number(most);
      if (!low || !high || *low <= *high || *high < 1) continue;
      const bool ctas =
          std::string(least) == "NCCL_MIN_CTAS" && std::string(most) == "NCCL_MAX_CTAS";
      context->Add("env.contradiction", Severity::kWarning,
                   std::string(least) + " is above " + most +
                       (ctas ? "; the library lowers the minimum to the maximum"
                             : "; the minimum wins: few channels are made, and then copied"),
                   {least, most}, "Set them so that the minimum is not above the maximum");
    }
  }
  const std::optional<int64_t> low = context->Number("NCCL_MIN_P2P_NCHANNELS");
  const std::optional<int64_t> high = context->Number("NCCL_MAX_P2P_NCHANNELS");
  if (low && high && *low > *high && *high > 0) {
    context->Add("env.contradiction", Severity::kWarning,
                 "NCCL_MIN_P2P_NCHANNELS is above NCCL_MAX_P2P_NCHANNELS",
                 {"NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS"},
                 "Set them so that the minimum is not above the maximum");
  }
  const std::optional<int64_t> threads = context->Number("NCCL_SOCKET_NTHREADS");
  const std::optional<int64_t> sockets = context->Number("NCCL_NSOCKS_PERTHREAD");
  if (threads && sockets && *threads > 0 && *sockets > 0 && *threads <= 4096 && *sockets <= 4096 &&
      *threads * *sockets > 64) {
    context->Add("env.bad-value", Severity::kWarning,
                 Format("NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD is {}; a connection has "
                        "64 sockets at most",
                        static_cast<long long>(*threads) * *sockets),
                 {"NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"},
                 "Lower one of them so that the product is 64 or less");
  }
}

// The old and the new name of one variable, with different values.
struct Renamed {
  const char* old_name;
  const char* new_name;
  const char* what;
};
constexpr Renamed kRenamed[] = {
    {"NCCL_MIN_NRINGS", "NCCL_MIN_NCHANNELS", "NCCL_MIN_NCHANNELS wins"},
    {"NCCL_MAX_NRINGS", "NCCL_MAX_NCHANNELS", "NCCL_MAX_NCHANNELS wins"},
    {"NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", "the larger of both counts"},
    {"NCCL_MIN_NRINGS", "NCCL_MIN_CTAS", "the larger of both counts"},
    {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "the smaller of both counts"},
    {"NCCL_MAX_NRINGS", "NCCL_MAX_CTAS", "the smaller of both counts"},
};

void CheckRenamed(CheckContext* context) {
  for (const Renamed& pair : kRenamed) {
    if (!context->IsSet(pair.old_name) || !context->IsSet(pair.new_name)) continue;
    if (context->Unknown(pair.old_name) || context->Unknown(pair.new_name)) continue;
    if (context->Value(pair.old_name) == context->Value(pair.new_name)) continue;
    context->Add("env.contradiction", Severity::kWarning,
                 std::string(pair.old_name) + " and " + pair.new_name +
                     " are the old and the new name of one thing, with different values; " +
                     pair.what,
                 {pair.old_name, pair.new_name}, std::string("Unset ") + pair.old_name);
  }
}

// Conflicts from the tables. A switch that is off conflicts with nothing.
void CheckConflicts(CheckContext* context) {
  const auto off = [context](const Knob& knob) {
    if (context->Unknown(knob.name)) return true;
    // "true" is read as 0.
    if (knob.type == KnobType::kSwitch && !context->Number(knob.name)) return true;
    // An index of -1 leaves the choice to the library; 0 is one.
    if (knob.name == "NCCL_IB_GID_INDEX") return context->Number(knob.name).value_or(-1) < 0;
    return (knob.type == KnobType::kSwitch || knob.type == KnobType::kNumber) &&
           context->Off(knob.name);
  };
  for (const auto& [name, assignment] : context->live()) {
    const Knob* knob = context->catalogue().Find(name);
    if (knob == nullptr || !knob->exists || off(*knob) || !context->Reads(name)) continue;
    for (const std::string& other : knob->conflicts) {
      const Knob* rival = context->catalogue().Find(other);
      if (rival == nullptr || !context->IsSet(other) || off(*rival) || !context->Reads(other) ||
          context->Together(name, other)) {
        continue;
      }
      const bool index = name == "NCCL_IB_GID_INDEX";
      context->Add("env.contradiction", Severity::kWarning,
                   index ? name + " names the GID, so that " + other + " is not looked at"
                         : name + " and " + other + " fight with each other",
                   {name, other}, "Keep one of them; `diapason knobs " + name + "` says more");
    }
  }
}

// Algorithms that another variable disables.
void CheckAlgorithms(CheckContext* context) {
  if (!context->IsSet("NCCL_ALGO")) return;
  const Selection selection = ReadSelection(context->Value("NCCL_ALGO"));
  const auto lost = [&](const char* variable, const std::vector<std::string>& words,
                        const std::string& what, const std::string& action) {
    const bool only = selection.Only(words);
    const bool named = std::any_of(
        selection.parts.begin(), selection.parts.end(), [&](const Selection::Part& part) {
          return !part.negated &&
                 std::any_of(part.words.begin(), part.words.end(), [&](const std::string& word) {
                   return std::find(words.begin(), words.end(), word) != words.end();
                 });
        });
    if (!named) return;
    // Before 2.24 the library then chose freely.
    const int version = context->checked_for().version;
    const bool fails = only && (version == 0 || version >= 22403);
    context->Add("env.contradiction", fails ? Severity::kError : Severity::kWarning,
                 what + (!fails         ? ""
                         : version == 0 ? ", so that no algorithm is left and since 2.24 calls fail"
                                        : ", so that no algorithm is left and calls fail"),
                 {"NCCL_ALGO", variable}, action);
  };
  if (context->Off("NCCL_NVLS_ENABLE")) {
    lost("NCCL_NVLS_ENABLE", {"nvls", "nvlstree"},
         "NCCL_ALGO asks for NVLS, which NCCL_NVLS_ENABLE=0 turns off",
         "Unset NCCL_NVLS_ENABLE, or take NVLS out of NCCL_ALGO");
  }
  const bool elsewhere = context->Unknown("NCCL_COLLNET_ENABLE") ||
                         (context->checked_for().file && !context->IsSet("NCCL_COLLNET_ENABLE"));
  if (!context->On("NCCL_COLLNET_ENABLE") && context->Reads("NCCL_COLLNET_ENABLE") && !elsewhere) {
    lost("NCCL_COLLNET_ENABLE", {"collnetdirect", "collnetchain", "collnet"},
         "NCCL_ALGO asks for CollNet, which is off unless NCCL_COLLNET_ENABLE=1 or the program "
         "turns it on",
         "Set NCCL_COLLNET_ENABLE=1, or take CollNet out of NCCL_ALGO");
  }
}

int DebugLevel(const std::string& word) {
  const std::string lower = ToLower(Trim(word));
  const std::vector<std::string> levels = {"none", "version", "warn", "attn",
                                           "info", "abort",   "trace"};
  const auto found = std::find(levels.begin(), levels.end(), lower);
  return found == levels.end() ? 0 : static_cast<int>(found - levels.begin());
}

// Whether "NAME=VALUE" or "NAME" holds, by its value or by default. True if unknown.
bool Holds(const std::string& need, const CheckContext& context) {
  const size_t equals = need.find('=');
  const std::string name = need.substr(0, equals);
  const Knob* knob = context.catalogue().Find(name);
  if (knob == nullptr || !context.Reads(name) || context.Unknown(name)) return true;
  if (!context.IsSet(name) && context.SetElsewhere(name)) return true;
  if (name == "NCCL_DEBUG") {
    const int wanted = equals == std::string::npos ? 2 : DebugLevel(need.substr(equals + 1));
    return DebugLevel(context.Value(name)) >= wanted;
  }
  if (equals == std::string::npos) return context.IsSet(name);
  const std::string wanted = need.substr(equals + 1);
  const std::string present =
      context.IsSet(name)
          ? context.Value(name)
          : knob->Of(context.checked_for().library).DefaultAt(context.checked_for().version);
  const NumberReading reading = ReadNumber(present);
  const NumberReading number = ReadNumber(wanted);
  if (number.digits && reading.digits) {
    // Negative values leave the choice to the library.
    if (reading.value < 0) return true;
    return wanted == "1" ? reading.value != 0 : reading.value == number.value;
  }
  if (number.digits && present.empty()) return true;
  return ToLower(present) == ToLower(wanted);
}

void CheckNeeds(CheckContext* context) {
  for (const auto& [name, assignment] : context->live()) {
    const Knob* knob = context->catalogue().Find(name);
    if (knob == nullptr) continue;
    if (knob->exists && !knob->OnlyOfPlugin() && !context->Reads(name)) continue;
    for (const std::string& need : knob->needs) {
      if (Holds(need, *context)) continue;
      const std::string other = need.substr(0, need.find('='));
      const std::string usual =
          knob->Of(context->checked_for().library).DefaultAt(context->checked_for().version);
      // The library may also find a tuner that is not named.
      const bool harmless = assignment->value == usual || other == "NCCL_TUNER_PLUGIN";
      // Another file, or the shell, may set it.
      const bool outside = context->checked_for().file && !context->IsSet(other);
      context->Add(
          "env.inert", harmless || outside ? Severity::kNote : Severity::kWarning,
          name + " does nothing without " + need + (outside ? ", which the file does not set" : ""),
          {name, other},
          need.find('=') == std::string::npos ? "Set " + other + ", or unset " + name
                                              : "Set " + need + ", or unset " + name);
      break;
    }
  }
}

}  // namespace

void CheckTogether(CheckContext* context) {
  for (const ConflictRule& rule : Rules()) Apply(rule, context);
  CheckBounds(context);
  CheckRenamed(context);
  CheckAlgorithms(context);
  CheckConflicts(context);
  CheckNeeds(context);
}

}  // namespace diapason::knobs
