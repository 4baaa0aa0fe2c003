#include "plugin/tuner/chain.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/encoding.h"
#include "base/file.h"
#include "base/text.h"
#include "plugin/abi/constants.h"

namespace diapason::plugin {
namespace {

constexpr size_t kLargestLibrary = size_t{256} << 20;

// The structures of all versions begin with a name and three callbacks. `init` has the same form in
// v2 to v4 and from v5 on, the last callback from v2 on, and `get_coll_info` from v4 on.
template <typename Tuner>
const Tuner* As(void* symbol) {
  return static_cast<const Tuner*>(symbol);
}

}  // namespace

Result<std::unique_ptr<Chain>> Chain::Open(const FoundTuner& found, const CommInit& init) {
  const std::string& name = found.name;
  void* library = found.library;
  std::unique_ptr<Chain> chain(new Chain);
  std::string offered;
  // v1 has no context and v2 no table: neither can replace the other.
  const int oldest = init.api >= 2 ? 2 : 1;
  for (int api = abi::kNewestApi; api >= 1; --api) {
    void* symbol = dlsym(library, Format("ncclTunerPlugin_v{}", api).c_str());
    if (symbol == nullptr) continue;
    offered = Format("v{}", api) + (offered.empty() ? "" : ", " + offered);
    if (chain->symbol_ != nullptr || api > init.api || api < oldest) continue;
    chain->symbol_ = symbol;
    chain->api_ = api;
  }
  if (offered.empty()) {
    return Invalid(Format("the chained tuner '{}' has no tuner API", name));
  }
  if (chain->symbol_ == nullptr) {
    return Invalid(
        Format("the chained tuner '{}' speaks API {}, which does not fit the "
               "library's v{}",
               name, offered, init.api));
  }
  const Status started = chain->Init(init);
  if (!started.ok()) return started.WithContext("the chained tuner '" + name + "'");
  return chain;
}

// A tuner of another layout of the constants gets a copy, which is taken over afterwards: the
// library does the same for a tuner that it loads itself.
int Chain::InitWithConstants(const CommInit& init) {
  abi::Constants* constants = init.constants;
  alignas(double) char copy[ConstantsBytes(abi::kNewestApi)];
  const bool converted = constants != nullptr && ConstantsBytes(api_) != ConstantsBytes(init.api);
  if (converted) {
    constants = reinterpret_cast<abi::Constants*>(copy);
    ConvertConstants(init.constants, init.api, constants, api_);
  }
  const int result = As<abi::TunerV6>(symbol_)->init(
      &context_, init.comm_id, static_cast<size_t>(init.shape.ranks),
      static_cast<size_t>(init.shape.nodes), init.logger, init.domain, constants);
  if (converted) ConvertConstants(constants, api_, init.constants, init.api);
  return result;
}

Status Chain::Init(const CommInit& init) {
  const auto ranks = static_cast<size_t>(init.shape.ranks);
  const auto nodes = static_cast<size_t>(init.shape.nodes);
  const auto* tuner = As<abi::TunerV6>(symbol_);  // v7 has the same callbacks
  if (tuner->init == nullptr || tuner->get_coll_info == nullptr || tuner->finalize == nullptr) {
    return Unavailable("leaves out a callback");
  }
  const int result = api_ == 1 ? As<abi::TunerV1>(symbol_)->init(ranks, nodes, init.logger)
                     : api_ <= 4
                         ? As<abi::TunerV4>(symbol_)->init(ranks, nodes, init.logger, &context_)
                         : InitWithConstants(init);
  if (result != abi::kSuccess) return Unavailable(Format("failed to start (result {})", result));
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

std::string Chain::File() const {
  Dl_info where;
  return dladdr(symbol_, &where) != 0 && where.dli_fname != nullptr ? where.dli_fname : "";
}

std::string Chain::Identity() const {
  const std::string path = File();
  const Result<std::string> content = ReadFile(path, kLargestLibrary);
  // A file that cannot be read must not compare equal to another one: its path and the error
  // replace the digest.
  const std::string digest =
      content.ok() ? Format("{:016x}", Fnv1a64(content.value())) : "unreadable:" + path;
  std::string identity = path.substr(path.rfind('/') + 1) + ":" + NameAndApi() + ":" + digest;
  std::replace(identity.begin(), identity.end(), ' ', '_');
  return identity;
}

std::string Chain::NameAndApi() const {
  // The name is the first member in every version.
  const char* name = *static_cast<const char* const*>(symbol_);
  return Format("{} (v{})", name != nullptr ? name : "unnamed", api_);
}

std::string Chain::description() const {
  const std::string path = File();
  return NameAndApi() + " of " + path.substr(path.rfind('/') + 1);
}

}  // namespace diapason::plugin
