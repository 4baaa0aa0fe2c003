#include "plugin/tuner/chain.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "base/encoding.h"
#include "base/file.h"
#include "base/text.h"

namespace diapason::plugin {
namespace {

constexpr int kMostCells = 256;
constexpr size_t kLargestLibrary = size_t{256} << 20;

// The structures of all versions begin with a name and three callbacks. `init` has the same form in
// v2 to v4 and from v5 on, the last callback from v2 on, and `get_coll_info` from v4 on.
template <typename Tuner>
const Tuner* As(void* symbol) {
  return static_cast<const Tuner*>(symbol);
}

// Accepts the forms that NCCL accepts: a file, or a short name.
void* OpenLibrary(const std::string& name, std::string* error) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* first_error = dlerror();
  *error = first_error != nullptr ? first_error : "it cannot be opened";
  if (name.find('/') != std::string::npos) return nullptr;
  return dlopen(("libnccl-tuner-" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
}

bool IsOurs(void* symbol) {
  Dl_info theirs;
  Dl_info ours;
  return dladdr(symbol, &theirs) != 0 && dladdr(reinterpret_cast<void*>(&IsOurs), &ours) != 0 &&
         theirs.dli_fbase == ours.dli_fbase;
}

}  // namespace

void KeptConstants::Keep(abi::Constants* constants) {
  constants_ = constants;
  const char* bytes = reinterpret_cast<const char*>(constants);
  if (constants != nullptr) before_.assign(bytes, bytes + abi::kConstantsBytes);
}

void KeptConstants::Restore() {
  if (constants_ != nullptr) std::memcpy(constants_, before_.data(), before_.size());
}

Result<std::unique_ptr<Chain>> Chain::Open(const std::string& name, const CommInit& init) {
  std::string error;
  void* library = OpenLibrary(name, &error);
  if (library == nullptr) {
    return NotFound(
        Format("the chained tuner '%s' cannot be opened: %s", name.c_str(), error.c_str()));
  }
  std::unique_ptr<Chain> chain(new Chain);
  std::string offered;
  // v1 has no context and v2 no table: neither can replace the other.
  const int oldest = init.api >= 2 ? 2 : 1;
  for (int api = abi::kNewestApi; api >= 1; --api) {
    void* symbol = dlsym(library, Format("ncclTunerPlugin_v%d", api).c_str());
    if (symbol == nullptr) continue;
    offered = Format("v%d", api) + (offered.empty() ? "" : ", " + offered);
    if (chain->symbol_ != nullptr || api > init.api || api < oldest) continue;
    chain->symbol_ = symbol;
    chain->api_ = api;
  }
  if (offered.empty()) {
    return Unavailable(Format("the chained tuner '%s' has no tuner API", name.c_str()));
  }
  if (chain->symbol_ == nullptr) {
    return Unavailable(
        Format("the chained tuner '%s' speaks API %s, which does not fit the "
               "library's v%d",
               name.c_str(), offered.c_str(), init.api));
  }
  if (IsOurs(chain->symbol_)) {
    return Invalid(Format("the chained tuner '%s' is this plugin itself", name.c_str()));
  }
  const Status started = chain->Init(init);
  if (!started.ok()) return started.WithContext("the chained tuner '" + name + "'");
  return chain;
}

Status Chain::Init(const CommInit& init) {
  const auto ranks = static_cast<size_t>(init.shape.ranks);
  const auto nodes = static_cast<size_t>(init.shape.nodes);
  const auto* tuner = As<abi::TunerV6>(symbol_);
  if (tuner->init == nullptr || tuner->get_coll_info == nullptr || tuner->finalize == nullptr) {
    return Unavailable("leaves out a callback");
  }
  const int result = api_ == 1 ? As<abi::TunerV1>(symbol_)->init(ranks, nodes, init.logger)
                     : api_ <= 4
                         ? As<abi::TunerV4>(symbol_)->init(ranks, nodes, init.logger, &context_)
                         : tuner->init(&context_, init.comm_id, ranks, nodes, init.logger,
                                       init.domain, init.constants);
  if (result != abi::kSuccess) return Unavailable(Format("failed to start (result %d)", result));
  initialised_ = true;
  return {};
}

Chain::~Chain() {
  if (!initialised_) return;
  if (api_ == 1) {
    As<abi::TunerV1>(symbol_)->destroy();
  } else {
    As<abi::TunerV6>(symbol_)->finalize(context_);
  }
}

void Chain::AskTable(const Question& question, int collective, CostTable* table,
                     int* channels) noexcept {
  const int count = table->algorithms * table->protocols;
  if (count > kMostCells) return;
  float before[kMostCells];
  std::copy_n(table->cells, count, before);
  const int channels_before = *channels;
  auto** cells = reinterpret_cast<float**>(table->cells);
  int result = abi::kSuccess;
  switch (api_) {
    case 2: {
      const auto offers = [&](int algorithm) {
        return table->Has(algorithm, kSimple) && table->At(algorithm, kSimple) >= 0.0f ? 1 : 0;
      };
      int algorithm = kKeep;
      int protocol = kKeep;
      result = As<abi::TunerV2>(symbol_)->get_coll_info(
          context_, collective, question.bytes, offers(kCollNetChain),
          offers(kNvls) | offers(kNvlsTree), question.pipe_ops, &algorithm, &protocol, channels);
      if (result == abi::kSuccess && table->Has(algorithm, protocol) &&
          table->At(algorithm, protocol) >= 0.0f) {
        table->cells[algorithm * table->protocols + protocol] = 0.0f;
      }
      break;
    }
    case 3:
      result = As<abi::TunerV3>(symbol_)->get_coll_info(context_, collective, question.bytes,
                                                        question.pipe_ops, cells, table->algorithms,
                                                        table->protocols, channels);
      break;
    default:
      result = As<abi::TunerV6>(symbol_)->get_coll_info(
          context_, collective, question.bytes, question.pipe_ops, cells, table->algorithms,
          table->protocols, question.reg_buff, channels);
  }
  if (result == abi::kSuccess) return;
  std::copy_n(before, count, table->cells);
  *channels = channels_before;
}

void Chain::AskPair(const Question& question, int collective, int collnet, int nvls, int* algorithm,
                    int* protocol, int* channels) noexcept {
  const int before[3] = {*algorithm, *protocol, *channels};
  int result = abi::kSuccess;
  if (api_ == 1) {
    result =
        As<abi::TunerV1>(symbol_)->get_coll_info(collective, question.bytes, collnet, nvls,
                                                 question.pipe_ops, algorithm, protocol, channels);
  } else if (api_ == 2) {
    result = As<abi::TunerV2>(symbol_)->get_coll_info(context_, collective, question.bytes, collnet,
                                                      nvls, question.pipe_ops, algorithm, protocol,
                                                      channels);
  }
  if (result == abi::kSuccess) return;
  *algorithm = before[0];
  *protocol = before[1];
  *channels = before[2];
}

int Chain::ChunkSize(int collective, size_t bytes, int algorithm, int protocol, int channels,
                     size_t* chunk_size) noexcept {
  if (api_ < 6) return abi::kSuccess;
  const auto* tuner = As<abi::TunerV6>(symbol_);
  if (tuner->get_chunk_size == nullptr) return abi::kSuccess;
  const size_t before = *chunk_size;
  if (tuner->get_chunk_size(context_, collective, bytes, algorithm, protocol, channels,
                            chunk_size) != abi::kSuccess) {
    *chunk_size = before;
  }
  return abi::kSuccess;
}

std::string Chain::Identity() const {
  Dl_info where;
  const std::string path =
      dladdr(symbol_, &where) != 0 && where.dli_fname != nullptr ? where.dli_fname : "";
  const Result<std::string> content = ReadFile(path, kLargestLibrary);
  // A file that cannot be read must not compare equal to another one: its path and the error
  // replace the digest.
  const std::string digest =
      content.ok() ? Format("%016llx", static_cast<unsigned long long>(Fnv1a64(content.value())))
                   : "unreadable:" + path;
  std::string identity = path.substr(path.rfind('/') + 1) + ":" + description() + ":" + digest;
  std::replace(identity.begin(), identity.end(), ' ', '_');
  return identity;
}

std::string Chain::description() const {
  // The name is the first member in every version.
  const char* name = *static_cast<const char* const*>(symbol_);
  return Format("%s (v%d)", name != nullptr ? name : "unnamed", api_);
}

}  // namespace diapason::plugin
