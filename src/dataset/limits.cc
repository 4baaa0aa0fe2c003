#include "dataset/limits.h"

#include "base/text.h"

namespace diapason::dataset {
namespace {

constexpr double kGiga = 1e9;

// The first match counts: longer names come before their prefixes. PCIe cards that can be bridged
// have the bridge's figure.
constexpr GpuLimits kLimits[] = {
    {"gb300", 900 * kGiga, 8000 * kGiga, true},      {"gb200", 900 * kGiga, 8000 * kGiga, true},
    {"gh200", 450 * kGiga, 4900 * kGiga, true},      {"b300", 900 * kGiga, 8000 * kGiga, true},
    {"b200", 900 * kGiga, 8000 * kGiga, true},       {"b100", 900 * kGiga, 8000 * kGiga, true},
    {"h200", 450 * kGiga, 4800 * kGiga, true},       {"h100 nvl", 300 * kGiga, 3900 * kGiga, false},
    {"h100 pcie", 300 * kGiga, 2000 * kGiga, false}, {"h100", 450 * kGiga, 3350 * kGiga, true},
    {"h800", 200 * kGiga, 3350 * kGiga, true},       {"h20", 450 * kGiga, 4000 * kGiga, true},
    {"a100", 300 * kGiga, 2039 * kGiga, false},      {"a800", 200 * kGiga, 2039 * kGiga, false},
    {"a30", 100 * kGiga, 933 * kGiga, false},        {"a40", 56 * kGiga, 696 * kGiga, false},
    {"a10", 32 * kGiga, 600 * kGiga, false},         {"l40", 32 * kGiga, 864 * kGiga, false},
    {"l20", 32 * kGiga, 864 * kGiga, false},         {"l4", 32 * kGiga, 300 * kGiga, false},
    {"v100", 150 * kGiga, 1134 * kGiga, false},      {"p100", 80 * kGiga, 732 * kGiga, false},
    {"t4", 16 * kGiga, 320 * kGiga, false},          {"rtx 5090", 64 * kGiga, 1792 * kGiga, false},
    {"rtx 4090", 32 * kGiga, 1008 * kGiga, false},   {"rtx 3090", 56 * kGiga, 936 * kGiga, false},
    {"mi355x", 538 * kGiga, 8000 * kGiga, false},    {"mi350x", 538 * kGiga, 8000 * kGiga, false},
    {"gfx950", 538 * kGiga, 8000 * kGiga, false},    {"mi325x", 448 * kGiga, 6000 * kGiga, false},
    {"mi308x", 448 * kGiga, 5300 * kGiga, false},    {"mi300a", 384 * kGiga, 5300 * kGiga, false},
    {"mi300x", 448 * kGiga, 5300 * kGiga, false},    {"gfx942", 448 * kGiga, 6000 * kGiga, false},
    {"mi250", 400 * kGiga, 3277 * kGiga, false},     {"gfx90a", 400 * kGiga, 3277 * kGiga, false},
    {"mi210", 150 * kGiga, 1638 * kGiga, false},     {"mi100", 138 * kGiga, 1229 * kGiga, false},
};

bool IsWordCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

std::optional<GpuLimits> LimitsOf(const std::string& gpu) {
  const std::string name = ToLower(gpu);
  for (const GpuLimits& limits : kLimits) {
    const size_t at = name.find(limits.name);
    // "a10" must not match "a100", and "l4" not "tesla l40".
    if (at == std::string::npos || (at > 0 && IsWordCharacter(name[at - 1]))) continue;
    const size_t end = at + std::string_view(limits.name).size();
    if (end < name.size() && name[end] >= '0' && name[end] <= '9') continue;
    return limits;
  }
  return std::nullopt;
}

}  // namespace diapason::dataset
