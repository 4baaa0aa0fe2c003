#include "host/libraries.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <span>

#include "base/text.h"
#include "host/paths.h"

namespace diapason::host {
namespace {

constexpr size_t kLargestCache = size_t{16} << 20;
constexpr size_t kMostFolders = 512;
constexpr size_t kMostLibraries = 128;

struct SearchFolder {
  std::string folder;
  std::string found_by;
};

std::vector<std::string> ListVariable(const Environment& environment, const std::string& name,
                                      std::string_view separators) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : environment.Get(name).value_or("") + separators[0]) {
    if (separators.find(c) == std::string_view::npos) {
      part += c;
    } else if (!part.empty() && parts.size() < kMostFolders) {
      parts.push_back(part);
      part.clear();
    }
  }
  return parts;
}

constexpr std::string_view kLibraries[] = {"libnccl.so", "librccl.so"};

// The files in the loader's cache whose names begin with one of `stems`. The cache has the format
// of glibc 2.2 and later, alone or after an older table.
std::vector<std::string> CachedFiles(const RootFs& tree, std::span<const std::string_view> stems) {
  struct Entry {
    int32_t flags;
    uint32_t key;
    uint32_t value;
    uint32_t os_version;
    uint64_t hardware;
  };
  constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
  constexpr size_t kHeader = 48;
  std::vector<std::string> files;
  const std::optional<std::string> cache = tree.Read("/etc/ld.so.cache", kLargestCache);
  if (!cache) return files;
  const size_t start = cache->find(kMagic);
  if (start == std::string::npos || cache->size() - start < kHeader) return files;
  const std::string_view table = std::string_view(*cache).substr(start);
  uint32_t count = 0;
  std::memcpy(&count, table.data() + kMagic.size(), sizeof count);
  for (uint32_t i = 0; i < count && kHeader + (size_t{i} + 1) * sizeof(Entry) <= table.size();
       ++i) {
    Entry entry{};
    std::memcpy(&entry, table.data() + kHeader + i * sizeof(Entry), sizeof entry);
    if (entry.key >= table.size() || entry.value >= table.size()) continue;
    const std::string_view name = table.substr(entry.key, 64);
    if (std::none_of(stems.begin(), stems.end(),
                     [name](std::string_view stem) { return name.starts_with(stem); })) {
      continue;
    }
    const std::string_view value = table.substr(entry.value, 4096);
    files.emplace_back(value.substr(0, value.find('\0')));
  }
  return files;
}

std::vector<SearchFolder> SystemFolders() {
  std::vector<SearchFolder> places;
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib/x86_64-linux-gnu",
        "/lib/aarch64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib"}) {
    places.push_back({folder, "a standard folder"});
  }
  return places;
}

std::vector<SearchFolder> ToolkitFolders() {
  return {{"/usr/local/lib", "/usr/local"},
          {"/usr/local/lib64", "/usr/local"},
          {"/usr/local/cuda*/lib64", "CUDA's folder"},
          {"/usr/local/cuda*/lib", "CUDA's folder"},
          {"/usr/local/cuda*/targets/*/lib", "CUDA's folder"},
          {"/usr/local/nccl*/lib", "/usr/local"},
          {"/opt/nccl*/lib", "/opt"},
          {"/opt/nvidia/nccl*/lib", "/opt"},
          {"/opt/nvidia/hpc_sdk/*/*/comm_libs/*/nccl/lib", "the HPC SDK"},
          {"/opt/rocm*/lib", "ROCm's folder"}};
}

void AddFolder(const RootFs& tree, const SearchFolder& place, const std::string& first_name,
               const std::function<void(const std::string&, const std::string&)>& add) {
  // The name that programs are linked against represents the file, if it exists.
  add(place.folder + "/" + first_name, place.found_by);
  for (const std::string& name : tree.List(RealPath(tree, place.folder))) {
    if (name.starts_with("libnccl.so") || name.starts_with("librccl.so")) {
      add(place.folder + "/" + name, place.found_by);
    }
  }
}

std::string_view Soname(Library library) {
  return library == Library::kRccl ? "librccl.so.1" : "libnccl.so.2";
}

std::string FirstKnown(const std::vector<std::string>& candidates,
                       const std::vector<LibraryFile>& files, Library library, const RootFs& tree) {
  for (const std::string& candidate : candidates) {
    const std::string real = RealPath(tree, candidate);
    for (const LibraryFile& file : files) {
      if (file.library == library && file.real_path == real) return file.path;
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> PythonFolders(const RootFs& tree, const Environment& environment) {
  std::vector<std::string> patterns = ListVariable(environment, "PYTHONPATH", ":");
  const auto add_prefix = [&patterns](const std::string& prefix) {
    patterns.push_back(prefix + "/lib/python3*/site-packages");
    patterns.push_back(prefix + "/lib64/python3*/site-packages");
    patterns.push_back(prefix + "/lib/python3*/dist-packages");
  };
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const auto prefix = environment.Get(name); prefix && !prefix->empty()) add_prefix(*prefix);
  }
  for (const std::string& folder : ListVariable(environment, "PATH", ":")) {
    if (folder.ends_with("/bin")) add_prefix(folder.substr(0, folder.size() - 4));
  }
  if (const auto home = environment.Get("HOME"); home && home->starts_with('/')) {
    add_prefix(*home + "/.local");
  }
  for (const char* prefix : {"/usr", "/usr/local", "/opt/conda", "/opt/venv", "/venv"}) {
    add_prefix(prefix);
  }
  std::vector<std::string> folders;
  std::set<std::string> seen;
  for (const std::string& pattern : patterns) {
    if (!pattern.starts_with('/')) continue;
    for (const std::string& folder : Expand(tree, pattern)) {
      if (folders.size() >= kMostFolders) return folders;
      const std::string real = RealPath(tree, folder);
      if (tree.IsFolder(real) && seen.insert(real).second) folders.push_back(folder);
    }
  }
  return folders;
}

std::vector<LibraryFile> FindLibraries(const RootFs& tree, const Environment& environment) {
  std::vector<LibraryFile> files;
  std::set<std::string> seen;
  const auto add = [&](const std::string& path, const std::string& found_by) {
    if (files.size() >= kMostLibraries) return;
    const std::string real = RealPath(tree, path);
    if (!tree.Exists(real) || !seen.insert(real).second) return;
    Result<LibraryFile> file = LookAtLibrary(tree, path);
    if (!file.ok()) return;
    file.value().found_by = found_by;
    files.push_back(std::move(file).value());
  };
  const auto add_folder = [&](const SearchFolder& place) {
    for (const std::string& folder : Expand(tree, place.folder)) {
      AddFolder(tree, {folder, place.found_by}, "libnccl.so.2", add);
      AddFolder(tree, {folder, place.found_by}, "librccl.so.1", add);
    }
  };
  for (const std::string& path : ListVariable(environment, "LD_PRELOAD", " :")) {
    if (path.starts_with('/')) add(path, "LD_PRELOAD");
  }
  for (const std::string& folder : ListVariable(environment, "LD_LIBRARY_PATH", ":;")) {
    if (folder.starts_with('/')) add_folder({folder, "LD_LIBRARY_PATH"});
  }
  for (const std::string& path : CachedFiles(tree, kLibraries)) add(path, "the loader's cache");
  for (const SearchFolder& place : SystemFolders()) add_folder(place);
  for (const std::string& folder : PythonFolders(tree, environment)) {
    add_folder({folder + "/nvidia/nccl/lib", "Python's nvidia-nccl package"});
    add_folder({folder + "/torch/lib", "PyTorch's folder"});
    add_folder({folder + "/_rocm_sdk_*/lib", "Python's ROCm package"});
  }
  for (const SearchFolder& place : ToolkitFolders()) add_folder(place);
  return files;
}

std::string LoadedBy(const std::string& variable, const std::vector<LibraryFile>& files,
                     Library library, const RootFs& tree, const Environment& environment) {
  std::vector<std::string> candidates;
  const bool preload = variable == "LD_PRELOAD";
  for (const std::string& part : ListVariable(environment, variable, preload ? " :" : ":;")) {
    if (!part.starts_with('/')) continue;
    candidates.push_back(preload ? part : part + "/" + std::string(Soname(library)));
  }
  return FirstKnown(candidates, files, library, tree);
}

std::string WouldLoad(const std::vector<LibraryFile>& files, Library library, const RootFs& tree,
                      const Environment& environment) {
  for (const char* variable : {"LD_PRELOAD", "LD_LIBRARY_PATH"}) {
    const std::string path = LoadedBy(variable, files, library, tree, environment);
    if (!path.empty()) return path;
  }
  const std::string soname(Soname(library));
  std::vector<std::string> candidates;
  for (const std::string& path : CachedFiles(tree, kLibraries)) {
    if (path.ends_with("/" + soname)) candidates.push_back(path);
  }
  for (const SearchFolder& place : SystemFolders())
    candidates.push_back(place.folder + "/" + soname);
  return FirstKnown(candidates, files, library, tree);
}

std::string WouldOpen(const std::string& name, const RootFs& tree, const Environment& environment) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else {
    for (const std::string& folder : ListVariable(environment, "LD_LIBRARY_PATH", ":;")) {
      candidates.push_back(folder + "/" + name);
    }
    const std::string_view stems[] = {name};
    for (const std::string& path : CachedFiles(tree, stems)) {
      if (path.ends_with("/" + name)) candidates.push_back(path);
    }
    for (const SearchFolder& place : SystemFolders()) {
      candidates.push_back(place.folder + "/" + name);
    }
  }
  for (const std::string& path : candidates) {
    // A relative path depends on the folder of the program that will be started.
    if (path.starts_with('/') && tree.Exists(RealPath(tree, path))) return path;
  }
  return "";
}

}  // namespace diapason::host
