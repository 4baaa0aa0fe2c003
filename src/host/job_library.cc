#include "host/job_library.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "domain/library_version.h"
#include "host/paths.h"

namespace diapason::host {
namespace {

// An interpreter: the prefix of its environment, and its "python3.12" where the link tells.
struct Interpreter {
  bool found = false;
  std::string prefix;
  std::string name;
};

Interpreter FindInterpreter(const RootFs& tree, const Environment& environment) {
  const std::string path = environment.Get("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (const std::string_view folder : Split(path, ':')) {
    if (!folder.starts_with('/') || !folder.ends_with("/bin")) continue;
    for (const char* name : {"/python3", "/python"}) {
      const std::string file = std::string(folder) + name;
      const std::string real = RealPath(tree, file);
      if (!tree.Exists(real) || tree.IsFolder(real)) continue;
      const std::string base = real.substr(real.rfind('/') + 1);
      // On systems that have merged them, /bin is /usr/bin.
      const std::string prefix(folder == "/bin" ? "/usr" : folder.substr(0, folder.size() - 4));
      return {true, prefix, base.starts_with("python3.") ? base : ""};
    }
  }
  return {};
}

// Whether an environment sees the system's packages: all but virtual ones that do not ask for them.
bool SeesSystem(const RootFs& tree, const std::string& prefix) {
  const auto config = tree.Read(RealPath(tree, prefix + "/pyvenv.cfg"));
  if (!config) return true;
  for (const std::string_view line : Split(*config, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    if (Trim(line.substr(0, equals)) == "include-system-site-packages") {
      return ToLower(Trim(line.substr(equals + 1))) == "true";
    }
  }
  return false;
}

bool Below(const std::string& folder, const std::string& prefix) {
  return folder.starts_with(prefix + "/");
}

// Whether the interpreter looks into a folder of packages.
bool Imports(const RootFs& tree, const Environment& environment, const Interpreter& interpreter,
             const std::string& folder) {
  const std::string paths = environment.Get("PYTHONPATH").value_or("");
  for (const std::string_view path : Split(paths, ':')) {
    if (!path.empty() && folder == path) return true;
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = environment.Get(name).value_or("");
    if (!prefix.empty() && Below(folder, prefix)) return true;
  }
  // "lib/python3/dist-packages" is Debian's for every version.
  const bool version_fits = interpreter.name.empty() ||
                            folder.find("/" + interpreter.name + "/") != std::string::npos ||
                            folder.find("/python3/") != std::string::npos;
  if (!version_fits) return false;
  if (Below(folder, interpreter.prefix + "/lib") || Below(folder, interpreter.prefix + "/lib64")) {
    return true;
  }
  if (!SeesSystem(tree, interpreter.prefix)) return false;
  const std::string home = environment.Get("HOME").value_or("");
  if (!home.empty() && Below(folder, home + "/.local")) return true;
  // Debian's interpreter in /usr also looks below /usr/local.
  const bool of_system = interpreter.prefix == "/usr" ||
                         tree.Exists(RealPath(tree, interpreter.prefix + "/pyvenv.cfg"));
  return of_system && Below(folder, "/usr");
}

std::string_view SonameOf(Library library) {
  return library == Library::kRccl ? "librccl.so.1" : "libnccl.so.2";
}

const LibraryFile* FileAt(const std::vector<LibraryFile>& files, const std::string& path) {
  for (const LibraryFile& file : files) {
    if (!path.empty() && (file.path == path || file.real_path == path)) return &file;
  }
  return nullptr;
}

// The file that the setting names; a bare name is the loader's to find. Not found, or of the other
// library: `path` alone, so that the error of opening it is seen.
std::string FileOfSetting(const RootFs& tree, const std::string& named, Library library,
                          const std::string& by_loader, std::vector<LibraryFile>* files) {
  if (!named.starts_with('/')) return named == SonameOf(library) ? by_loader : named;
  const std::string real = RealPath(tree, named);
  for (const LibraryFile& file : *files) {
    if (file.real_path == real) return file.path;
  }
  Result<LibraryFile> file = LookAtLibrary(tree, named);
  if (file.ok()) {
    file.value().found_by = LibraryFileSetting(library);
    files->push_back(std::move(file).value());
  }
  return named;
}

}  // namespace

const char* LibraryFileSetting(Library library) {
  return library == Library::kRccl ? "DIAPASON_RCCL_LIBRARY" : "DIAPASON_NCCL_LIBRARY";
}

std::string JobLibrary::WhyText() const {
  if (program_file.empty()) return because;
  const std::string number = LibraryVersionText(program_version);
  return because + "; a program gets " + (number.empty() ? "" : number + ", ") + program_file;
}

const Torch* JobTorch(const RootFs& tree, const Environment& environment,
                      const std::vector<Torch>& torches) {
  const Interpreter interpreter = FindInterpreter(tree, environment);
  for (const Torch& torch : torches) {
    const std::string packages = torch.folder.substr(0, torch.folder.rfind('/'));
    if (!interpreter.found || Imports(tree, environment, interpreter, packages)) return &torch;
  }
  return nullptr;
}

JobLibrary FindJobLibrary(const RootFs& tree, const Environment& environment, Library library,
                          const std::vector<Torch>& torches, std::vector<LibraryFile>* files) {
  JobLibrary job;
  job.library = library;
  const std::string by_loader = WouldLoad(*files, library, tree, environment);
  const auto take = [&job](const std::string& path, const std::string& because, bool by_name) {
    if (!job.file.empty() || path.empty()) return;
    job.file = path;
    job.because = because;
    job.by_name = by_name;
  };
  take(LoadedBy("LD_PRELOAD", *files, library, tree, environment), "LD_PRELOAD names it", true);
  const std::string setting = LibraryFileSetting(library);
  if (const std::string named = environment.Get(setting).value_or(""); !named.empty()) {
    take(FileOfSetting(tree, named, library, by_loader, files), setting + " names it", false);
  }
  const auto take_torch = [&](const Torch& torch) {
    if (torch.library != library || torch.loads.empty()) return;
    take(torch.loads, "PyTorch " + torch.version + " loads it", torch.loads == by_loader);
  };
  if (const Torch* torch = JobTorch(tree, environment, torches)) take_torch(*torch);
  take(by_loader, "the loader finds it", true);
  for (const Torch& torch : torches) take_torch(torch);
  const LibraryFile* file = FileAt(*files, job.file);
  if (file != nullptr) job.version = file->version;
  const LibraryFile* program = FileAt(*files, by_loader);
  if (program != nullptr && program != file) {
    job.program_file = by_loader;
    job.program_version = program->version;
  }
  return job;
}

}  // namespace diapason::host
