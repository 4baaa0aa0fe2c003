#include "domain/fingerprint.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace diapason {
namespace {

constexpr size_t kSmallFile = 64 * 1024;
constexpr size_t kMostFolders = 1024;

std::vector<std::string> SubFolders(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    paths.push_back(entry->path().string());
    if (paths.size() == kMostFolders) break;
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The rest of the line that starts with `key`, or "".
std::string ValueAfter(const std::string& text, std::string_view key) {
  for (const std::string_view line : Split(text, '\n')) {
    if (line.starts_with(key)) return std::string(Trim(line.substr(key.size())));
  }
  return "";
}

std::vector<std::string> NvidiaModels(const std::string& root) {
  std::vector<std::string> models;
  for (const std::string& gpu : SubFolders(root + "/proc/driver/nvidia/gpus")) {
    const Result<std::string> text = ReadFile(gpu + "/information", kSmallFile);
    if (!text.ok()) continue;
    const std::string model = ValueAfter(text.value(), "Model:");
    if (!model.empty()) models.push_back(model);
  }
  return models;
}

// The kernel writes gfx90a as 90010 and gfx950 as 90500: major, minor and stepping; the name has
// the stepping as a hexadecimal digit.
std::vector<std::string> AmdModels(const std::string& root) {
  std::vector<std::string> models;
  for (const std::string& node : SubFolders(root + "/sys/class/kfd/kfd/topology/nodes")) {
    const Result<std::string> text = ReadFile(node + "/properties", kSmallFile);
    if (!text.ok()) continue;
    uint64_t version = 0;
    if (!ParseUnsigned(ValueAfter(text.value(), "gfx_target_version "), &version)) continue;
    if (version == 0) continue;  // a CPU
    models.push_back(Format("gfx{}{}{:x}", version / 10000, version / 100 % 100, version % 100));
  }
  return models;
}

}  // namespace

std::string MachineFingerprint(const std::string& root) {
  std::vector<std::string> models = NvidiaModels(root);
  if (models.empty()) models = AmdModels(root);
  std::map<std::string, size_t> counts;
  for (const std::string& model : models) ++counts[model];
  std::vector<std::string> parts;
  for (const auto& [model, count] : counts) {
    parts.push_back(Format("{}x {}", count, model));
  }
  return Join(parts, " + ");
}

std::string AmdArchitecture(const std::string& root) {
  const std::vector<std::string> models = AmdModels(root);
  for (const std::string& model : models) {
    if (model != models.front()) return "";
  }
  return models.empty() ? "" : models.front();
}

std::string DriverVersion(const std::string& root) {
  const Result<std::string> nvidia = ReadFile(root + "/proc/driver/nvidia/version", kSmallFile);
  if (nvidia.ok()) {
    // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ...": the first word of
    // digits and dots.
    for (const std::string_view word : Split(Split(nvidia.value(), '\n')[0], ' ')) {
      if (word.find('.') != std::string_view::npos &&
          word.find_first_not_of("0123456789.") == std::string_view::npos) {
        return std::string(word);
      }
    }
  }
  const Result<std::string> amd = ReadFile(root + "/sys/module/amdgpu/version", kSmallFile);
  return amd.ok() ? std::string(Trim(amd.value())) : "";
}

}  // namespace diapason
