#include "host/torch.h"

#include "base/text.h"
#include "host/elf.h"
#include "host/paths.h"

namespace diapason::host {
namespace {

constexpr size_t kMostInstallations = 16;

// The quoted text of a line such as "cuda: Optional[str] = '12.8'"; "" for None and for a missing
// line.
std::string Assigned(const std::string& text, std::string_view name) {
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    const char next = line.size() > name.size() ? line[name.size()] : '\0';
    if (next != ' ' && next != ':' && next != '=') continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view value = Trim(line.substr(equals + 1));
    if (value.size() < 2 || (value[0] != '\'' && value[0] != '"')) return "";
    return std::string(value.substr(1, value.find(value[0], 1) - 1));
  }
  return "";
}

std::string MajorMinor(const std::string& version) {
  const size_t first = version.find('.');
  if (first == std::string::npos) return version;
  return version.substr(0, version.find_first_not_of("0123456789", first + 1));
}

// Search paths of ELF files: "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN".
std::vector<std::string> SearchPath(const std::string& text, const std::string& origin) {
  std::vector<std::string> folders;
  for (const std::string_view part : Split(text, ':')) {
    std::string folder(part);
    for (const std::string_view word : {"${ORIGIN}", "$ORIGIN"}) {
      if (folder.starts_with(word)) folder = origin + folder.substr(word.size());
    }
    if (folder.starts_with('/')) folders.push_back(folder);
  }
  return folders;
}

std::string InFolders(const RootFs& tree, const std::vector<LibraryFile>& files,
                      const std::vector<std::string>& folders, const std::string& soname) {
  for (const std::string& folder : folders) {
    const std::string real = RealPath(tree, folder + "/" + soname);
    for (const LibraryFile& file : files) {
      if (file.real_path == real) return file.path;
    }
  }
  return "";
}

void FindLoaded(const RootFs& tree, const Environment& environment,
                const std::vector<LibraryFile>& files, const ElfFile::Dynamic& dynamic,
                Torch* torch) {
  const std::string origin = torch->folder + "/lib";
  const std::string soname = torch->library == Library::kRccl ? "librccl.so.1" : "libnccl.so.2";
  // RUNPATH comes after LD_LIBRARY_PATH, RPATH before it.
  const bool before = dynamic.runpath.empty();
  const std::vector<std::string> own =
      SearchPath(before ? dynamic.rpath : dynamic.runpath, RealPath(tree, origin));
  torch->own = InFolders(tree, files, own, soname);
  const std::string preload = LoadedBy("LD_PRELOAD", files, torch->library, tree, environment);
  const std::string by_path = LoadedBy("LD_LIBRARY_PATH", files, torch->library, tree, environment);
  const auto take = [torch](const std::string& path, const char* why) {
    if (!torch->loads.empty() || path.empty()) return;
    torch->loads = path;
    torch->taken_because = why;
  };
  take(preload, "LD_PRELOAD");
  if (before) take(torch->own, "its own search path");
  take(by_path, "LD_LIBRARY_PATH");
  if (!before) take(torch->own, "its own search path");
  take(WouldLoad(files, torch->library, tree, MapEnvironment({})), "the loader's cache");
  // PyTorch itself opens the libraries of NVIDIA's packages if the loader finds none.
  const std::string packages = torch->folder.substr(0, torch->folder.rfind('/'));
  take(InFolders(tree, files, {packages + "/nvidia/nccl/lib"}, soname), "PyTorch's own search");
}

bool Needs(const ElfFile::Dynamic& dynamic, std::string_view library) {
  for (const std::string& name : dynamic.needed) {
    if (name.starts_with(library)) return true;
  }
  return false;
}

Torch LookAtTorch(const RootFs& tree, const Environment& environment,
                  const std::vector<LibraryFile>& files, const std::string& folder,
                  const std::string& version_file) {
  Torch torch;
  torch.folder = folder;
  torch.version = Assigned(version_file, "__version__");
  const std::string cuda = Assigned(version_file, "cuda");
  const std::string hip = Assigned(version_file, "hip");
  if (!cuda.empty()) torch.toolkit = "CUDA " + cuda;
  if (!hip.empty()) {
    torch.toolkit = "ROCm " + MajorMinor(hip);
    torch.library = Library::kRccl;
  }
  for (const char* name : {"/lib/libtorch_cuda.so", "/lib/libtorch_hip.so"}) {
    const Result<ElfFile> file = ElfFile::Open(tree.Place(RealPath(tree, folder + name)));
    if (!file.ok()) continue;
    const ElfFile::Dynamic dynamic = file.value().ReadDynamic();
    torch.library_apart = Needs(dynamic, "libnccl.so") || Needs(dynamic, "librccl.so");
    torch.with_nccl = torch.library_apart ||
                      file.value().SymbolNames().find("ProcessGroupNCCL") != std::string::npos;
    if (torch.library_apart) FindLoaded(tree, environment, files, dynamic, &torch);
    break;
  }
  return torch;
}

}  // namespace

std::vector<Torch> FindTorch(const RootFs& tree, const Environment& environment,
                             const std::vector<LibraryFile>& files) {
  std::vector<Torch> found;
  for (const std::string& packages : PythonFolders(tree, environment)) {
    if (found.size() >= kMostInstallations) break;
    const std::string folder = packages + "/torch";
    const auto version = tree.Read(RealPath(tree, folder) + "/version.py");
    if (version) found.push_back(LookAtTorch(tree, environment, files, folder, *version));
  }
  return found;
}

}  // namespace diapason::host
