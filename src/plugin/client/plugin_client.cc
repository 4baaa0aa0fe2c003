#include "plugin/client/plugin_client.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>

#include "base/text.h"

namespace diapason::client {
namespace {

constexpr int kNewestApi = 7;
constexpr int kFirstWithLastOfEquals = 23100;

using LogFunction = void (*)(int level, unsigned long flags, const char* file, int line,
                             const char* format, ...);

std::vector<LogLine> g_log;
int g_version = 0;
Library g_library = Library::kNccl;

void LogFromPlugin(int level, unsigned long, const char*, int, const char* format, ...) {
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  const int warning_level = g_library == Library::kRccl ? 3 : 2;
  g_log.push_back({level <= warning_level, text});
}

// The members of each version, in their published order.
struct OldForm {
  const char* name;
  int (*init)(size_t, size_t, LogFunction, void**);
  void* get_coll_info;
  int (*end)(void*);
};
struct NewForm {
  const char* name;
  int (*init)(void**, uint64_t, size_t, size_t, LogFunction, void*, void*);
  void* get_coll_info;
  int (*end)(void*);
};
struct FirstForm {
  const char* name;
  int (*init)(size_t, size_t, LogFunction);
  void* get_coll_info;
  int (*end)();
};
using AskV1 = int (*)(int, size_t, int, int, int, int*, int*, int*);
using AskV2 = int (*)(void*, int, size_t, int, int, int, int*, int*, int*);
using AskV3 = int (*)(void*, int, size_t, int, float**, int, int, int*);
using AskV4 = int (*)(void*, int, size_t, int, float**, int, int, int, int*);

// Space for the constants of every version and ncclNvlDomainInfo_v5_t, with a reserve for members
// that later releases add.
struct Constants {
  double values[512] = {};
};

class Client : public PluginClient {
 public:
  Client(void* symbol, int api) : symbol_(symbol) {
    api_ = api;
    const char* name = *static_cast<const char* const*>(symbol);
    name_ = name != nullptr ? name : "";
  }

  Status Start(const Shape& shape, uint64_t comm_id) override {
    const auto ranks = static_cast<size_t>(shape.ranks);
    const auto nodes = static_cast<size_t>(shape.nodes);
    int result = 0;
    if (api_ == 1) {
      result = static_cast<FirstForm*>(symbol_)->init(ranks, nodes, LogFromPlugin);
    } else if (api_ <= 4) {
      result = static_cast<OldForm*>(symbol_)->init(ranks, nodes, LogFromPlugin, &context_);
    } else {
      int domain[3] = {static_cast<int>(shape.nodes), static_cast<int>(ranks / nodes),
                       static_cast<int>(ranks / nodes)};
      Constants constants;
      result = static_cast<NewForm*>(symbol_)->init(&context_, comm_id, ranks, nodes, LogFromPlugin,
                                                    domain, &constants);
    }
    return Check(result, "init");
  }

  Result<int> Ask(const Question& question, const Support& support, CostTableArgs* cost,
                  Config* answer) override {
    void* function = static_cast<OldForm*>(symbol_)->get_coll_info;
    const int collective = static_cast<int>(question.collective);
    auto** table = reinterpret_cast<float**>(cost->cells.data());
    int channels = 0;
    int result = 0;
    switch (api_) {
      case 1:
        result = reinterpret_cast<AskV1>(function)(
            collective, question.bytes, support.collnet, support.nvls, question.pipe_ops,
            &answer->algorithm, &answer->protocol, &channels);
        break;
      case 2:
        result = reinterpret_cast<AskV2>(function)(
            context_, collective, question.bytes, support.collnet, support.nvls, question.pipe_ops,
            &answer->algorithm, &answer->protocol, &channels);
        break;
      case 3:
        result = reinterpret_cast<AskV3>(function)(context_, collective, question.bytes,
                                                   question.pipe_ops, table, cost->algorithms,
                                                   cost->protocols, &channels);
        break;
      default:
        result = reinterpret_cast<AskV4>(function)(context_, collective, question.bytes,
                                                   question.pipe_ops, table, cost->algorithms,
                                                   cost->protocols, question.reg_buff, &channels);
    }
    RETURN_IF_ERROR(Check(result, "getCollInfo"));
    return channels;
  }

  Status Stop() override {
    const int result = api_ == 1 ? static_cast<FirstForm*>(symbol_)->end()
                                 : static_cast<OldForm*>(symbol_)->end(context_);
    context_ = nullptr;
    return Check(result, api_ >= 5 ? "finalize" : "destroy");
  }

 private:
  static Status Check(int result, const char* what) {
    if (result == 0) return {};
    return Unavailable(
        Format("the plugin's {} returned {}; the library would fail the job", what, result));
  }

  void* symbol_;
  void* context_ = nullptr;
};

}  // namespace

int CostTableArgs::Cheapest(bool last_of_equals) const {
  int best = -1;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!(cells[i] >= 0)) continue;
    const float least = best < 0 ? cells[i] : cells[static_cast<size_t>(best)];
    if (best < 0 || cells[i] < least || (last_of_equals && cells[i] == least)) {
      best = static_cast<int>(i);
    }
  }
  return best;
}

Result<std::unique_ptr<PluginClient>> PluginClient::Open(const std::string& path, int api) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return NotFound(Format("cannot load the plugin: {}", dlerror()));
  }
  // Only diapason's own plugin has this function.
  if (void* rehearse = dlsym(library, "diapason_rehearse"); rehearse != nullptr) {
    reinterpret_cast<void (*)(int)>(rehearse)(1);
  }
  for (int version = api == 0 ? kNewestApi : api; version >= 1; --version) {
    void* symbol = dlsym(library, Format("ncclTunerPlugin_v{}", version).c_str());
    if (symbol != nullptr) {
      return std::unique_ptr<PluginClient>(std::make_unique<Client>(symbol, version));
    }
    if (api != 0) break;
  }
  return Unavailable(api == 0 ? "'" + path + "' is no tuner plugin"
                              : Format("'{}' has no tuner API v{}", path, api));
}

bool PluginClient::last_of_equals() const {
  return g_version != 0 ? g_version >= kFirstWithLastOfEquals : api_ >= kNewestApi;
}

const std::vector<LogLine>& PluginClient::Log() { return g_log; }
void PluginClient::PretendVersion(int version) { g_version = version; }
void PluginClient::PretendLibrary(Library library) { g_library = library; }

}  // namespace diapason::client

namespace {

using VersionFunction = int (*)(int*);

VersionFunction VersionIn(const char* library) {
  void* handle = library == nullptr ? nullptr : ::dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  const auto found = reinterpret_cast<VersionFunction>(::dlsym(handle, "ncclGetVersion"));
  ::dlclose(handle);
  return found;
}

}  // namespace

// A plugin asks the object that contains its logger for the library's version; here that is this
// program. A real library in this process resolves ncclGetVersion to this function too, and gets
// its own version from it.
extern "C" __attribute__((visibility("default"))) int ncclGetVersion(  // NOLINT: its name
    int* version) {
  *version = diapason::client::g_version;
  if (diapason::client::g_version != 0) return 0;
  Dl_info caller{};
  (void)::dladdr(__builtin_return_address(0), &caller);
  for (const char* library : {caller.dli_fname, "libnccl.so.2", "librccl.so.1"}) {
    const VersionFunction real = VersionIn(library);
    if (real != nullptr && real != &ncclGetVersion) return real(version);
  }
  return 1;
}
