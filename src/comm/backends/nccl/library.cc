#include "comm/backends/nccl/library.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "base/environment.h"
#include "base/text.h"
#include "comm/gpu/symbols.h"
#include "domain/library_version.h"

namespace diapason::comm::nccl {
namespace {

std::string Load(void* library, NcclApi* api) {
  gpu::Symbols symbols(library);
  symbols.Find("ncclGetUniqueId", &api->GetUniqueId);
  symbols.Find("ncclCommInitRankConfig", &api->CommInitRankConfig);
  symbols.Find("ncclCommFinalize", &api->CommFinalize);
  symbols.Find("ncclCommDestroy", &api->CommDestroy);
  symbols.Find("ncclCommAbort", &api->CommAbort);
  symbols.Find("ncclCommGetAsyncError", &api->CommGetAsyncError);
  symbols.Find("ncclGetErrorString", &api->GetErrorString);
  symbols.Find("ncclGetLastError", &api->GetLastError);
  symbols.Find("ncclAllReduce", &api->AllReduce);
  symbols.Find("ncclBroadcast", &api->Broadcast);
  symbols.Find("ncclReduce", &api->Reduce);
  symbols.Find("ncclAllGather", &api->AllGather);
  symbols.Find("ncclReduceScatter", &api->ReduceScatter);
  symbols.Find("ncclSend", &api->Send);
  symbols.Find("ncclRecv", &api->Recv);
  symbols.Find("ncclGroupStart", &api->GroupStart);
  symbols.Find("ncclGroupEnd", &api->GroupEnd);
  return symbols.missing();
}

struct Opened {
  void* library = nullptr;
  std::string name;
};

Result<Opened> OpenFile(const Flavor& flavor, const std::string& title) {
  // Two copies of the library in one process would not coordinate their use of the GPU.
  for (const char* file : flavor.files) {
    if (void* library = dlopen(file, RTLD_NOW | RTLD_NOLOAD)) return Opened{library, file};
  }
  const std::string named = Settings::Read(ProcessEnvironment()).Text(flavor.file_setting);
  if (!named.empty()) {
    if (void* library = dlopen(named.c_str(), RTLD_NOW | RTLD_LOCAL)) return Opened{library, named};
    const char* why = dlerror();
    const auto& info = SettingTable()[static_cast<size_t>(flavor.file_setting)];
    return Unavailable(Format("no {}: {}: {}", title, info.name, why != nullptr ? why : ""));
  }
  for (const char* file : flavor.files) {
    if (void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return Opened{library, file};
  }
  return Unavailable(Format("no {}: {} cannot be opened", title, flavor.files.front()));
}

Result<const NcclApi*> Open(const Flavor& flavor) {
  const std::string title(LibraryTitle(flavor.library));
  ASSIGN_OR_RETURN(const Opened opened, OpenFile(flavor, title));
  const std::string& name = opened.name;

  NcclApi api{};
  api.title = title;
  api.library = flavor.library;
  gpu::Symbols symbols(opened.library);
  symbols.Find("ncclGetVersion", &api.GetVersion);
  if (!symbols.missing().empty() || api.GetVersion(&api.version) != kSuccess) {
    return Unavailable(Format("{} is not {}: it tells no version", name, title));
  }
  if (api.version < kFirstVersion) {
    return Unavailable(
        Format("{} {} is too old: 2.18 or later is needed", title, api.VersionText()));
  }
  if (const std::string missing = Load(opened.library, &api); !missing.empty()) {
    return Unavailable(Format("{} {} has no {}", title, api.VersionText(), missing));
  }
  return new NcclApi(api);  // never freed, as the library stays loaded
}

}  // namespace

std::string NcclApi::VersionText() const {
  return LibraryVersionText(LibraryVersionOfCode(version));
}

std::string NcclApi::ErrorText(NcclResult result) const {
  std::string text = title + ": " + GetErrorString(result);
  // The last warning of the whole process: possibly an old one, but usually the cause.
  const char* last = GetLastError(nullptr);
  if (last != nullptr && *last != '\0') text += Format(" (last warning: {})", last);
  return text;
}

Result<const NcclApi*> OpenNccl(const Flavor& flavor) {
  static std::mutex mutex;
  static auto& known = *new std::map<Library, const NcclApi*>();  // used until the process ends
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = known.find(flavor.library); found != known.end()) return found->second;
  // A failure is not cached: the program may later set a path, or load the library itself.
  Result<const NcclApi*> api = Open(flavor);
  if (api.ok()) known[flavor.library] = api.value();
  return api;
}

}  // namespace diapason::comm::nccl
