#include "base/own_files.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "base/environment.h"
#include "base/settings.h"

namespace diapason {
namespace {

namespace fs = std::filesystem;

// The file that holds this very function: a program, or a library inside someone else's program.
fs::path OwnObject() {
  Dl_info info{};
  std::error_code error;
  if (dladdr(reinterpret_cast<const void*>(&OwnObject), &info) != 0 && info.dli_fname != nullptr) {
    const fs::path object = fs::canonical(info.dli_fname, error);
    if (!error && object.extension() != "" && object.string().find(".so") != std::string::npos) {
      return object;
    }
  }
  return fs::canonical("/proc/self/exe", error);
}

}  // namespace

std::string FindBesideUs(const std::string& file) {
  std::error_code error;
  const std::string folder = Settings::Read(ProcessEnvironment()).Text(Setting::kLibDir);
  if (!folder.empty()) {
    const fs::path path = fs::path(folder) / file;
    return fs::exists(path, error) ? path.string() : "";
  }
  const fs::path here = OwnObject().parent_path();
  for (const fs::path& path : {here / file, here.parent_path() / "lib" / file}) {
    if (fs::exists(path, error)) return path.string();
  }
  return "";
}

}  // namespace diapason
