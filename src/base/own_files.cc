#include "base/own_files.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "base/environment.h"
#include "base/settings.h"

namespace diapason {
namespace {

namespace fs = std::filesystem;

// The file that contains this function: a program, or a library in another program's process.
fs::path OwnObject(std::error_code& error) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&OwnObject), &info) != 0 && info.dli_fname != nullptr) {
    const fs::path object = fs::canonical(info.dli_fname, error);
    if (!error && object.extension() != "" && object.string().find(".so") != std::string::npos) {
      return object;
    }
  }
  return fs::canonical("/proc/self/exe", error);
}

}  // namespace

std::string FindBesideUs(const std::string& file, std::string* why_not) {
  std::error_code error;
  const auto missing = [&](const std::string& why) -> std::string {
    if (why_not != nullptr) *why_not = why;
    return "";
  };
  const std::string folder = Settings::Read(ProcessEnvironment()).Text(Setting::kLibDir);
  if (!folder.empty()) {
    const fs::path path = fs::path(folder) / file;
    if (fs::exists(path, error)) return path.string();
    return missing("DIAPASON_LIB_DIR (" + folder + ") has no " + file);
  }
  const fs::path object = OwnObject(error);
  if (object.empty()) {
    return missing(file + " cannot be looked for: /proc/self/exe cannot be read (" +
                   error.message() + "); is /proc mounted?");
  }
  const fs::path here = object.parent_path();
  for (const fs::path& path : {here / file, here.parent_path() / "lib" / file}) {
    if (fs::exists(path, error)) return path.string();
  }
  return missing("");
}

}  // namespace diapason
