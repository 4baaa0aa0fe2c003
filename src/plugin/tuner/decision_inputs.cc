#include "plugin/tuner/decision_inputs.h"

#include <cstdlib>

#include "base/environment.h"
#include "base/text.h"
#include "base/version.h"
#include "domain/fingerprint.h"
#include "plugin/learning/communicator.h"

namespace diapason::plugin {
namespace {

// Version of the cell contents; ranks with different versions stay off.
constexpr int kProtocol = 2;

// The versions (in ncclGetVersion's encoding) since which the library behaves as the comment says.
// earlier versions do not check a pair's channel count
constexpr int kClampsChannelsOfPairs = 22000;
constexpr long long kMostCtas = 64;
constexpr int kRcclHasTreeLlRule = 22803;
// The first profiler API of a library (2.31) whose RAS client can change the event mask of a
// running job. Such a library takes the plugin's v7, and no earlier one does.
constexpr int kRasChangesEventsFromApi = 7;

// Variables by which a user allows or forbids algorithms and protocols. A pair that only some ranks
// offer can be applied on those ranks only.
constexpr const char* kTableVariables[] = {"NCCL_ALGO",
                                           "NCCL_PROTO",
                                           "NCCL_NVLS_ENABLE",
                                           "NCCL_COLLNET_ENABLE",
                                           "NCCL_PAT_ENABLE",
                                           "NCCL_ALLGATHERV_ENABLE",
                                           "RCCL_LL128_FORCE_ENABLE"};

bool VariableIs(const char* name, const char* value) {
  return ProcessEnvironment().Get(name).value_or("") == value;
}

// Words are separated by blanks, so a value must not contain one.
std::string Word(std::string text) {
  for (char& c : text) {
    if (c <= ' ' || c == 0x7f) c = '_';
  }
  return text.empty() ? "none" : text;
}
std::string Word(bool value) { return value ? "1" : "0"; }
std::string Word(int64_t value) { return Format("{}", value); }
std::string Word(int value) { return Word(static_cast<int64_t>(value)); }

bool AllGatherChannelsAreSafe(const Settings& settings, const CommInit& init, const Host& host) {
  const bool fuses = host.has_new_scheduler();
  // On RCCL the fusion is off unless the user enables it; on NCCL it is on unless the user disables
  // it.
  const bool off = VariableIs("NCCL_ALLGATHERV_ENABLE", "0") ||
                   (host.library == Library::kRccl && !VariableIsSet("NCCL_ALLGATHERV_ENABLE"));
  // Libraries with API v4 and earlier do not have the fusion.
  return !fuses || off || init.api < 5 || settings.Flag(Setting::kAllGatherChannels);
}

// The library's own reading of a number: hexadecimal and octal count, and so does a number with
// something behind it. A value outside the range is ignored by the library.
int MinCtas(const CommInit& init, const Host& host) {
  if (!host.is_2_31(init.api)) return 0;
  const std::string value = ProcessEnvironment().Get("NCCL_MIN_CTAS").value_or("");
  const long long number = std::strtoll(value.c_str(), nullptr, 0);
  return number >= 1 && number <= kMostCtas ? static_cast<int>(number) : 0;
}

std::string TableVariables() {
  std::string text;
  for (const char* name : kTableVariables) {
    const std::string value = ProcessEnvironment().Get(name).value_or("");
    if (!value.empty()) text += (text.empty() ? "" : ",") + std::string(name) + ":" + value;
  }
  return text;
}

}  // namespace

std::string DecisionInputs::Words() const {
  std::string words;
#define DIAPASON_WORD(type, name, word) words += std::string(word) + "=" + Word(name) + " ";
  DIAPASON_DECISION_INPUTS(DIAPASON_WORD)
#undef DIAPASON_WORD
  words.pop_back();
  return words;
}

DecisionInputs ReadDecisionInputs(const Settings& settings, const CommInit& init, const Host& host,
                                  const CommState* communicator, const Chain* chain) {
  DecisionInputs inputs;
  inputs.plugin = kVersion;
  inputs.protocol = kProtocol;
  inputs.library = LibraryName(host.library);
  inputs.library_version = host.version;
  inputs.tuner_api = init.api;
  inputs.profiler_api = communicator != nullptr ? communicator->profiler_api() : 0;
  // Ranks count calls by the events of the library, and the RAS client of another process can
  // switch these off and on at a different call on every rank. No rank can tell afterwards which
  // calls it has missed, so a job learns only where that client has nobody to talk to: the library
  // starts no RAS thread unless the variable is 1 or not set.
  inputs.ras_changes_events =
      inputs.profiler_api >= kRasChangesEventsFromApi && !VariableIs("NCCL_RAS_ENABLE", "0");
  inputs.nodes = init.shape.nodes;
  inputs.mode = settings.Text(Setting::kMode);
  inputs.numerics_pinned = settings.Text(Setting::kNumerics) == "pinned";
  inputs.reg_buff_rows = settings.Flag(Setting::kRegBuff);
  inputs.allgather_channels = AllGatherChannelsAreSafe(settings, init, host);
  inputs.min_ctas = MinCtas(init, host);
  inputs.ll128_works = settings.Flag(Setting::kLl128Works);
  inputs.single_shape = settings.Flag(Setting::kSingleShape);
  inputs.pair_channels = host.version >= kClampsChannelsOfPairs;
  // Under v1 and v2 diapason's pair would silently override the user's.
  inputs.user_forces_pair =
      init.api <= 2 && (VariableIsSet("NCCL_ALGO") || VariableIsSet("NCCL_PROTO"));
  inputs.tree_ll_rule = host.library == Library::kRccl && host.version >= kRcclHasTreeLlRule &&
                        init.shape.nodes == 1 && chain == nullptr && !VariableIsSet("NCCL_ALGO") &&
                        AmdArchitecture() == "gfx950";
  inputs.table = TableVariables();
  if (chain != nullptr) inputs.chain = chain->Identity();
  return inputs;
}

}  // namespace diapason::plugin
