#include "comm/backends/nccl/pin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/own_files.h"
#include "base/text.h"
#include "comm/gpu/symbols.h"
#include "domain/collectives.h"
#include "domain/decision.h"

namespace diapason::comm::nccl {
namespace {

constexpr char kPluginFile[] = "libnccl-tuner-diapason.so";
constexpr char kPluginVariable[] = "NCCL_TUNER_PLUGIN";

// One pin at a time in the process; see diapason.h.
std::timed_mutex& OnePin() {
  static std::timed_mutex mutex;
  return mutex;
}

// Whether some pair exists among those that the configuration leaves open.
bool AnyPairExists(Library library, Collective collective, const Config& config) {
  const std::vector<int> algorithms = Algorithms(library, collective);
  const std::vector<int> protocols = Protocols(library);
  return std::any_of(algorithms.begin(), algorithms.end(), [&](int algorithm) {
    if (config.algorithm != kKeep && config.algorithm != algorithm) return false;
    return std::any_of(protocols.begin(), protocols.end(), [&](int protocol) {
      return (config.protocol == kKeep || config.protocol == protocol) &&
             PairExists(collective, algorithm, protocol);
    });
  });
}

}  // namespace

void PluginPin::AskForPlugin() {
  const std::string file = FindBesideUs(kPluginFile);
  if (!file.empty()) setenv(kPluginVariable, file.c_str(), 0);
}

PluginPin PluginPin::Find(const NcclApi& api) {
  PluginPin pin;
  pin.api_ = &api;
  if (api.version < kFirstPinningVersion) {
    pin.reason_ =
        Format("{} {} asks no tuner: 2.19 or later is needed", api.title, api.VersionText());
    return pin;
  }
  void* plugin = dlopen(kPluginFile, RTLD_NOW | RTLD_NOLOAD);
  if (plugin == nullptr) {
    const char* named = std::getenv(kPluginVariable);
    pin.reason_ =
        named == nullptr
            ? Format("{} was not found beside this program; set DIAPASON_LIB_DIR", kPluginFile)
            : Format("{} has not loaded {}; {} is '{}'", api.title, kPluginFile, kPluginVariable,
                     named);
    return pin;
  }
  gpu::Symbols symbols(plugin);
  symbols.Find("diapason_pin", &pin.pin_);
  symbols.Find("diapason_unpin", &pin.unpin_);
  symbols.Find("diapason_pin_counts", &pin.counts_);
  if (!symbols.missing().empty()) {
    pin.reason_ =
        Format("the loaded {} is another version: it has no {}", kPluginFile, symbols.missing());
  }
  return pin;
}

Status PluginPin::CanUse(Operation operation, const Config& config, int ranks) const {
  const std::optional<Collective> collective = CollectiveOf(operation);
  if (!collective.has_value() || !CanChoose(api_->library, *collective)) {
    return Unavailable(Format("{} does not let a tuner choose how it runs {}", api_->title,
                              OperationName(operation)));
  }
  if (config.segment_bytes != 0) {
    return Invalid(api_->title + " has no segment size");
  }
  const int limit = ChannelLimit(api_->library);
  if (config.channels < 0 || config.channels > limit) {
    return Invalid(Format("{} channels: {} has 1 to {}, or 0 for its own number", config.channels,
                          api_->title, limit));
  }
  if (!AnyPairExists(api_->library, *collective, config)) {
    return Invalid(Format("{} never runs {} as {}", api_->title, OperationName(operation),
                          ConfigText(api_->library, *collective, config)));
  }
  if (ranks > 1 && !reason_.empty()) return Unavailable(reason_);
  return Status();
}

PluginPin::Hold::Hold(const PluginPin& pin, const Config& config, Deadline deadline)
    : pin_(pin), lock_(OnePin(), deadline) {
  if (!lock_.owns_lock()) {
    status_ = TimedOut("another group of this process has pinned a configuration all the time");
  } else if (pin_.pin_(config.algorithm, config.protocol, config.channels) != 0) {
    status_ = Invalid("the plugin refuses these numbers");
  }
}

PluginPin::Hold::~Hold() {
  if (lock_.owns_lock()) pin_.unpin_();
}

Status PluginPin::Hold::Applied(const std::string& what) const {
  unsigned long long asked = 0;
  unsigned long long applied = 0;
  pin_.counts_(&asked, &applied);
  if (asked > 0 && applied == asked) return Status();
  if (asked == 0) {
    return Unavailable(
        Format("{} did not ask how to run it, and ran it its own way", pin_.api_->title));
  }
  return Unavailable(
      Format("{} does not offer {} here, and ran it its own way", pin_.api_->title, what));
}

}  // namespace diapason::comm::nccl
