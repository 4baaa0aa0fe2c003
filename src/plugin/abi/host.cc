#include "plugin/abi/host.h"

#include <dlfcn.h>
#include <link.h>

#include <string_view>

#include "base/environment.h"

namespace diapason::plugin {
namespace {

// Subsystem bits that NCCL and RCCL share. INIT is on by default, so that messages at init show
// with plain NCCL_DEBUG=INFO.
constexpr unsigned long kSubsystemInit = 0x1;
constexpr unsigned long kSubsystemTuning = 0x40;
constexpr unsigned long kSubsystemAll = ~0ul;

constexpr int kFirstRcclWithShiftedLevels = 22707;

// Since 2.9 the version is major * 10000 + minor * 100 + patch.
int VersionOf(void* library) {
  using GetVersion = int (*)(int*);
  auto get_version = reinterpret_cast<GetVersion>(dlsym(library, "ncclGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != abi::kSuccess) return 0;
  return version;
}

}  // namespace

bool VariableIsSet(const char* name) {
  return !ProcessEnvironment().Get(name).value_or("").empty();
}

Host DetectHost(abi::Logger logger, const Settings& settings) {
  Host host;
  Dl_info where;
  link_map* map = nullptr;
  void* library = nullptr;
  if (logger != nullptr &&
      dladdr1(reinterpret_cast<void*>(logger), &where, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) != 0 &&
      where.dli_fname != nullptr) {
    host.file = where.dli_fname;
    // The loader's name for the file; it is empty for the main program, into which the library may
    // be linked.
    const bool main_program = map == nullptr || map->l_name == nullptr || *map->l_name == '\0';
    library = dlopen(main_program ? nullptr : map->l_name, RTLD_LAZY | RTLD_NOLOAD);
  }
  const std::string_view file = host.file;
  const std::string_view name = file.substr(file.rfind('/') == file.npos ? 0 : file.rfind('/') + 1);
  // Every RCCL and no NCCL exports mscclLoadAlgo; this also identifies an RCCL that is linked into
  // a framework's file.
  if (name.starts_with("librccl") ||
      (library != nullptr && dlsym(library, "mscclLoadAlgo") != nullptr)) {
    host.library = Library::kRccl;
  }
  if (library != nullptr) {
    host.version = VersionOf(library);
    dlclose(library);
  }
  const Result<Library> forced = ParseLibrary(settings.Text(Setting::kLibrary));
  if (forced.ok()) host.library = forced.value();
  return host;
}

HostLog::HostLog(abi::Logger logger, const Host& host) : logger_(logger) {
  const bool shifted = host.library == Library::kRccl &&
                       (host.version == 0 || host.version >= kFirstRcclWithShiftedLevels);
  warn_level_ = shifted ? 3 : 2;
  info_level_ = shifted ? 4 : 3;
}

void HostLog::Info(const std::string& text) const {
  if (logger_ == nullptr) return;
  logger_(info_level_, kSubsystemInit | kSubsystemTuning, "diapason", 0, "diapason: %s",
          text.c_str());
}

void HostLog::WarnSteppingAside(const char* why) const noexcept {
  if (logger_ == nullptr) return;
  logger_(warn_level_, kSubsystemAll, "diapason", 0,
          "diapason: stepping aside, the library decides: %s", why);
}

void HostLog::WarnCannotGoOn(const char* why) const noexcept {
  if (logger_ == nullptr) return;
  logger_(warn_level_, kSubsystemAll, "diapason", 0,
          "diapason: %s; the other ranks may have agreed to go ahead with this one, so the "
          "communicator is not created",
          why);
}

void HostLog::Warn(const std::string& text) const {
  if (logger_ == nullptr) return;
  logger_(warn_level_, kSubsystemAll, "diapason", 0, "diapason: %s", text.c_str());
}

}  // namespace diapason::plugin
