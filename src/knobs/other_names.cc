#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "knobs/context.h"

namespace diapason::knobs {
namespace {

// Names of other software that jobs set beside the libraries' variables. The lists need not be
// complete: a name counts as a slip only if it is nearly one of these.
constexpr const char* kKnown[] = {
    // PyTorch
    "TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_COORD_CHECK_MILSEC", "TORCH_NCCL_CUDA_EVENT_CACHE",
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_NCCL_DESYNC_DEBUG",
    "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_ENABLE_MONITORING", "TORCH_NCCL_ENABLE_TIMING",
    "TORCH_NCCL_EXTRA_DUMP_ON_EXEC", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "TORCH_NCCL_HIGH_PRIORITY",
    "TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN", "TORCH_NCCL_NAN_CHECK",
    "TORCH_NCCL_PROPAGATE_ERROR", "TORCH_NCCL_RANKS_PER_ROOT", "TORCH_NCCL_RETHROW_CUDA_ERRORS",
    "TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "TORCH_NCCL_TRACE_CPP_STACK", "TORCH_NCCL_USE_COMM_NONBLOCKING",
    "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TORCH_BLAS_PREFER_HIPBLASLT", "TORCH_COMPILE_DEBUG",
    "TORCH_CPP_LOG_LEVEL", "TORCH_CUDA_ARCH_LIST", "TORCH_CUDNN_V8_API_ENABLED",
    "TORCH_DISTRIBUTED_DEBUG", "TORCH_DISTRIBUTED_DETAIL", "TORCH_DIST_INIT_BARRIER",
    "TORCH_EXTENSIONS_DIR", "TORCH_FR_BUFFER_SIZE", "TORCH_FR_CPP_STACK", "TORCH_FR_DUMP_TEMP_FILE",
    "TORCH_GLOO_LAZY_INIT", "TORCH_HOME", "TORCH_LOGS", "TORCH_SHOW_CPP_STACKTRACES",
    "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "TORCH_TRACE", "TORCH_USE_CUDA_DSA",
    "TORCH_VERSION", "TORCH_XLA_FLAGS",
    // UCX
    "UCX_TLS", "UCX_NET_DEVICES", "UCX_LOG_LEVEL", "UCX_LOG_FILE", "UCX_IB_GID_INDEX", "UCX_IB_SL",
    "UCX_IB_TRAFFIC_CLASS", "UCX_IB_PCI_RELAXED_ORDERING", "UCX_IB_REG_METHODS",
    "UCX_IB_GPU_DIRECT_RDMA", "UCX_IB_ADDR_TYPE", "UCX_IB_PREFER_NEAREST_DEVICE",
    "UCX_IB_ROCE_REACHABILITY_MODE", "UCX_RNDV_THRESH", "UCX_RNDV_SCHEME", "UCX_RNDV_FRAG_SIZE",
    "UCX_ZCOPY_THRESH", "UCX_BCOPY_THRESH", "UCX_MEMTYPE_CACHE", "UCX_MEMTYPE_REG_WHOLE",
    "UCX_MAX_RNDV_RAILS", "UCX_MAX_EAGER_RAILS", "UCX_SOCKADDR_TLS_PRIORITY",
    "UCX_WARN_UNUSED_ENV_VARS", "UCX_CUDA_COPY_DMABUF", "UCX_CUDA_IPC_CACHE",
    "UCX_RC_MLX5_TX_NUM_GET_BYTES", "UCX_RC_TIMEOUT", "UCX_RC_RETRY_COUNT", "UCX_UD_TIMEOUT",
    "UCX_TCP_CM_REUSEADDR", "UCX_ERROR_SIGNALS", "UCX_HANDLE_ERRORS", "UCX_PROTO_ENABLE",
    "UCX_PROTO_INFO", "UCX_UNIFIED_MODE", "UCX_ADDRESS_VERSION", "UCX_REG_NONBLOCK_MEM_TYPES",
    "UCX_SOCKADDR_CM_ENABLE", "UCX_KEEPALIVE_INTERVAL", "UCX_USE_MT_MUTEX", "UCX_STATS_DEST",
    "UCX_POSIX_USE_PROC_LINK", "UCX_HOME", "UCX_DIR",
    // libfabric
    "FI_PROVIDER", "FI_PROVIDER_PATH", "FI_LOG_LEVEL", "FI_LOG_PROV", "FI_LOG_SUBSYS",
    "FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE", "FI_EFA_ENABLE_SHM_TRANSFER",
    "FI_EFA_SET_CUDA_SYNC_MEMOPS", "FI_EFA_TX_MIN_CREDITS", "FI_EFA_USE_HUGE_PAGE",
    "FI_EFA_MR_CACHE_ENABLE", "FI_EFA_RECVWIN_SIZE", "FI_HMEM_CUDA_USE_GDRCOPY",
    "FI_HMEM_DISABLE_P2P", "FI_HMEM_CUDA_ENABLE_XFER", "FI_MR_CACHE_MONITOR",
    "FI_MR_CACHE_MAX_COUNT", "FI_MR_CACHE_MAX_SIZE", "FI_UNIVERSE_SIZE", "FI_TCP_IFACE",
    "FI_SOCKETS_IFACE", "FI_PSM3_UUID", "FI_VERBS_IFACE", "FI_VERBS_PREFER_XRC",
    "FI_VERBS_MR_CACHE_ENABLE", "FI_OFI_RXM_USE_SRX", "FI_OFI_RXM_BUFFER_SIZE",
    "FI_OPT_CUDA_API_PERMITTED", "FI_CXI_ATS", "FI_CXI_DEFAULT_CQ_SIZE",
    "FI_CXI_DISABLE_HOST_REGISTER", "FI_CXI_DISABLE_CQ_HUGETLB", "FI_CXI_RDZV_PROTO",
    "FI_CXI_RDZV_THRESHOLD", "FI_CXI_RDZV_GET_MIN", "FI_CXI_RDZV_EAGER_SIZE",
    "FI_CXI_RX_MATCH_MODE", "FI_CXI_OFLOW_BUF_SIZE", "FI_CXI_DEFAULT_TX_SIZE", "FI_CXI_DEFAULT_VNI",
    "FI_CXI_REQ_BUF_SIZE", "FI_CXI_REQ_BUF_MIN_POSTED", "FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD",
    "FI_CXI_OPTIMIZED_MRS",
    // Gloo, CUDA, ROCm
    "GLOO_SOCKET_IFNAME", "GLOO_DEVICE_TRANSPORT", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING", "CUDA_HOME",
    "CUDA_PATH", "CUDA_VERSION", "CUDA_CACHE_PATH", "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_LOG_DIRECTORY", "HSA_FORCE_FINE_GRAIN_PCIE", "HSA_NO_SCRATCH_RECLAIM",
    "HSA_ENABLE_SDMA", "HSA_ENABLE_IPC_MODE_LEGACY", "HSA_OVERRIDE_GFX_VERSION", "HSA_XNACK",
    "HIP_VISIBLE_DEVICES", "HIP_FORCE_DEV_KERNARG", "ROCR_VISIBLE_DEVICES", "OMP_NUM_THREADS",
    "OMP_PROC_BIND", "OMP_PLACES", "OMP_SCHEDULE", "OMP_STACKSIZE", "OMP_WAIT_POLICY"};

constexpr size_t kLongName = 16;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string WithoutDigits(std::string text) {
  std::erase_if(text, IsDigit);
  return text;
}

}  // namespace

bool IsSlip(const std::string& name, const std::string& known) {
  if (name == known || name.size() > 128 || WithoutDigits(name) == WithoutDigits(known))
    return false;
  const size_t apart =
      name.size() > known.size() ? name.size() - known.size() : known.size() - name.size();
  if (apart > 2) return false;
  const size_t distance = EditDistance(name, known);
  return distance == 1 || (distance == 2 && known.size() >= kLongName);
}

std::string SlipOfOthers(const std::string& name) {
  const auto begin = std::begin(kKnown);
  const auto end = std::end(kKnown);
  if (std::find(begin, end, name) != end || name.size() < 8) return "";
  const auto found =
      std::find_if(begin, end, [&name](const char* known) { return IsSlip(name, known); });
  return found == end ? "" : *found;
}

bool IsBuildName(const std::string& name) {
  // Of scripts and build systems: places, versions, programs and their arguments.
  for (const char* last :
       {"_HOME",    "_ROOT",      "_DIR",      "_DIRS",     "_PATH",    "_SRC",     "_SOURCE",
        "_BIN",     "_VERSION",   "_VER",      "_VERSIONS", "_INCLUDE", "_LIB",     "_LIBS",
        "_LIBRARY", "_LIBRARIES", "_PREFIX",   "_URL",      "_TAG",     "_BRANCH",  "_COMMIT",
        "_REPO",    "_IMAGE",     "_PACKAGE",  "_PKG",      "_TAR",     "_TARBALL", "_ARGS",
        "_OPTS",    "_OPTIONS",   "_FLAGS",    "_CMD",      "_EXE",     "_SO",      "_SHA",
        "_SUFFIX",  "_ENV",       "_ENVS",     "_ENV_VARS", "_VARS",    "_INSTALL", "_BUILD",
        "_MAJOR",   "_MINOR",     "_PATCH",    "_SCRIPT",   "_LOG",     "_LOGS",    "_OUT",
        "_OUTPUT",  "_RESULTS",   "_HOSTFILE", "_SETTINGS", "_CONFIG",  "_PARAMS",  "_RPM",
        "_DEB",     "_LINK",      "_LDFLAGS",  "_CFLAGS",   "_HOSTS"}) {
    if (name.ends_with(last)) return true;
  }
  for (const char* first : {"NCCL_TEST", "RCCL_TEST", "NCCL_BENCH", "NCCL_BUILD", "NCCL_PLUGIN_",
                            "NCCL_GIT", "RCCL_GIT", "RCCL_BUILD", "NCCL_STATIC", "NCCL_INSTALL"}) {
    if (name.starts_with(first)) return true;
  }
  return false;
}

}  // namespace diapason::knobs
