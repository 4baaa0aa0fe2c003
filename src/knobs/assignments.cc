#include <set>

#include "base/secrets.h"
#include "base/text.h"
#include "knobs/check.h"

namespace diapason::knobs {
namespace {

// In lower case: "nccl_debug" is a misspelt NCCL_DEBUG. "ncll_" is the most common typo.
constexpr const char* kFamilies[] = {"nccl_", "rccl_",       "msccl",     "ncll_",    "hsa_",
                                     "gloo_", "torch_nccl_", "diapason_", "ofi_nccl_"};
// Of the networks below plugins. In capitals only: the short ones could begin a private name.
constexpr const char* kNetworks[] = {"FI_", "UCX_", "SHARP_COLL_", "OFI_HISTOGRAM_"};
// Not of a family, but read by the libraries.
constexpr const char* kSingles[] = {"CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS"};

}  // namespace

bool IsCollectiveVariable(std::string_view name) {
  const std::string lower = ToLower(name.substr(0, 64));
  for (const char* family : kFamilies) {
    if (lower.starts_with(family)) return true;
  }
  for (const char* network : kNetworks) {
    if (name.starts_with(network)) return true;
  }
  for (const char* single : kSingles) {
    if (name == single) return true;
  }
  return false;
}

std::vector<Assignment> FromEnvironment(const Environment& environment, const std::string& source) {
  const std::vector<std::string> listed = environment.Names();
  const std::set<std::string> names(listed.begin(), listed.end());
  std::vector<Assignment> assignments;
  for (const std::string& name : names) {
    if (!IsCollectiveVariable(name)) continue;
    const std::optional<std::string> value = environment.Get(name);
    if (!value) continue;
    Assignment one;
    one.name = name;
    one.value = MaskSecrets(name, *value);
    one.source = source;
    assignments.push_back(std::move(one));
  }
  return assignments;
}

}  // namespace diapason::knobs
