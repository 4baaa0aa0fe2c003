#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/text.h"
#include "domain/library_version.h"
#include "host/elf.h"
#include "host/libraries.h"
#include "host/paths.h"

namespace diapason::host {
namespace {

constexpr size_t kLongestVersion = 64;
constexpr int kMostApi = 99;

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The symbol names of plugins in each interface. NCCL looks up "ncclProfiler_v5", never
// "ncclProfilerPlugin_v5"; all other interfaces have "Plugin" in their names.
constexpr std::string_view kTunerStem = "ncclTunerPlugin_v";
constexpr std::string_view kProfilerStem = "ncclProfiler_v";
constexpr std::string_view kEnvStem = "ncclEnvPlugin_v";
constexpr std::string_view kNetStem = "ncclNetPlugin_v";

// The numbers after `stem` in strings that end with the number: those are passed to dlsym. The
// linker may have merged such a string into the end of a longer one, so the text before it only
// must not be part of the name.
std::vector<int> Interfaces(std::string_view data, std::string_view stem) {
  std::vector<int> versions;
  for (size_t at = data.find(stem); at != std::string_view::npos; at = data.find(stem, at + 1)) {
    if (at > 0 && IsNameChar(data[at - 1])) continue;
    size_t end = at + stem.size();
    int version = 0;
    while (end < data.size() && IsDigit(data[end]) && version <= kMostApi) {
      version = version * 10 + (data[end] - '0');
      ++end;
    }
    if (end >= data.size() || data[end] != '\0' || version < 1 || version > kMostApi) continue;
    versions.push_back(version);
  }
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  return versions;
}

// The version after "NCCL version " and similar words: "2.28.9+cuda13.0". Of several the one that
// also names a toolkit.
std::string VersionBehind(std::string_view data, std::string_view words) {
  std::string best;
  for (size_t at = data.find(words); at != std::string_view::npos; at = data.find(words, at + 1)) {
    std::string_view rest = data.substr(at + words.size(), kLongestVersion);
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == ':')) rest.remove_prefix(1);
    size_t end = 0;
    while (end < rest.size() &&
           (IsNameChar(rest[end]) || rest[end] == '.' || rest[end] == '+' || rest[end] == '-')) {
      ++end;
    }
    const std::string_view found = rest.substr(0, end);
    if (found.empty() || !IsDigit(found[0]) || found.find('.') == std::string_view::npos) continue;
    const bool names_toolkit = found.find('+') != std::string_view::npos;
    if (best.empty() || (names_toolkit && best.find('+') == std::string::npos)) best = found;
  }
  return best;
}

// "2.28.9" of "2.28.9+cuda13.0" and "2.27.7-1".
std::string_view NumbersOf(std::string_view version) {
  const size_t end = version.find_first_not_of("0123456789.");
  return version.substr(0, end);
}

// The first `most` numbers of "6.2.2.0-90": "6.2.2".
std::string FirstNumbers(std::string_view version, size_t most) {
  const std::string_view numbers = NumbersOf(version);
  std::vector<std::string> parts;
  for (const std::string_view part : Split(numbers, '.')) {
    if (part.empty() || parts.size() == most) break;
    parts.emplace_back(part);
  }
  return Join(parts, ".");
}

std::string ToolkitOf(const std::string& version, std::string_view data) {
  if (const size_t at = version.find("+cuda"); at != std::string::npos) {
    return "CUDA " + FirstNumbers(std::string_view(version).substr(at + 5), 2);
  }
  if (const std::string rocm = VersionBehind(data, "ROCm version"); !rocm.empty()) {
    return "ROCm " + FirstNumbers(rocm, 3);
  }
  if (const size_t at = version.find("+hip"); at != std::string::npos) {
    return "ROCm " + FirstNumbers(std::string_view(version).substr(at + 4), 2);
  }
  return "";
}

}  // namespace

Result<LibraryFile> LookAtLibrary(const RootFs& tree, const std::string& path) {
  LibraryFile file;
  file.path = path;
  file.real_path = RealPath(tree, path);
  ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::Open(tree.Place(file.real_path)));
  const std::string symbols = elf.SymbolNames();
  if (symbols.find("ncclGetVersion") == std::string::npos) {
    return Invalid(path +
                   ": a shared library, but neither NCCL nor RCCL: it has no ncclGetVersion");
  }
  const std::string data = elf.ReadOnlyData();
  const std::string rccl = VersionBehind(data, "RCCL version");
  const std::string nccl = VersionBehind(data, "NCCL version");
  const std::string soname = elf.ReadDynamic().soname;
  if (rccl.empty() && nccl.empty() && !soname.starts_with("libnccl.so") &&
      !soname.starts_with("librccl.so")) {
    return Invalid(path + ": exports ncclGetVersion, but does not say that it is NCCL or RCCL");
  }
  const bool is_rccl = !rccl.empty() || (nccl.empty() && soname.starts_with("librccl.so"));
  file.library = is_rccl ? Library::kRccl : Library::kNccl;
  file.version_text = is_rccl ? rccl : nccl;
  const Result<int> version = ParseLibraryVersion(FirstNumbers(file.version_text, 3));
  if (version.ok()) file.version = version.value();
  file.toolkit = ToolkitOf(file.version_text, data);
  file.tuner_apis = Interfaces(data, kTunerStem);
  file.profiler_apis = Interfaces(data, kProfilerStem);
  file.env_apis = Interfaces(data, kEnvStem);
  file.net_apis = Interfaces(data, kNetStem);
  return file;
}

}  // namespace diapason::host
