#include "logs/trouble.h"

#include <algorithm>

namespace diapason::logs {
namespace {

constexpr size_t kMostPlaces = 4;
constexpr size_t kMostSayers = 16;

constexpr auto kError = Severity::kError;
constexpr auto kWarning = Severity::kWarning;
constexpr auto kNote = Severity::kNote;

// A line without its numbers: lines with the same shape report the same for another rank.
std::string ShapeOf(std::string_view message) {
  std::string shape;
  for (const char c : message.substr(0, 120)) {
    const bool digit =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f' && !shape.empty() && shape.back() == '#');
    if (!digit) {
      shape += c;
    } else if (shape.empty() || shape.back() != '#') {
      shape += '#';
    }
  }
  return shape;
}

}  // namespace

const std::vector<TroubleKind>& TroubleKinds() {
  static const std::vector<TroubleKind> kinds = {
      {"rank.duplicate-gpu", "Duplicate GPU detected", kError, false,
       "Two ranks of one communicator use the same GPU",
       "give every rank a GPU of its own: set the device from the local rank before the first "
       "call, and look at CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES of both ranks"},
      {"version.mismatch", "Mismatched NCCL version", kError, false,
       "Ranks of one communicator run different versions of the library",
       "install one version everywhere; look at LD_LIBRARY_PATH and at the container image of the "
       "ranks named"},
      {"rank.count-differs", "mismatch in info from procs", kError, false,
       "Ranks that met under one id disagree about how many ranks there are",
       "make every process pass the same number of ranks (WORLD_SIZE), and start no second job "
       "with the same id, address and port"},
      {"rank.twice", "has already checked in", kError, false,
       "Two processes came with the same rank number",
       "look at how the launcher hands out RANK; a process left over from an earlier job does this "
       "too"},
      {"ib.completion", "Got completion from peer", kError, false,
       "InfiniBand or RoCE transfers failed",
       "look at the switch port and cable of the devices named (error counters in "
       "/sys/class/infiniband/*/ports/*/counters), at the GID and traffic class of RoCE, and at "
       "the log of the peer: it may simply have died first"},
      {"ib.event", "async fatal event", kError, false, "A network adapter reported a fatal event",
       "read the kernel log of that host; the port or the adapter went down"},
      {"ib.event", "Got non-fatal async event", kWarning, false,
       "A network adapter reported an event", "read the kernel log of that host for link changes"},
      {"net.mixed-links", "incompatible devices", kError, false,
       "InfiniBand and RoCE adapters were to be connected to each other",
       "select adapters of one link type with NCCL_IB_HCA, the same on every host"},
      {"net.mixed-links", "device is incompatible with the local", kError, false,
       "InfiniBand and RoCE adapters were to be connected to each other",
       "select adapters of one link type with NCCL_IB_HCA, the same on every host"},
      {"mem.registration", "Call to ibv_reg_mr", kError, true,
       "Memory could not be registered with the network adapter",
       "raise the limit on locked memory to unlimited (ulimit -l, in containers --ulimit "
       "memlock=-1), and for GPU memory load nvidia_peermem or use a kernel with DMA-BUF"},
      {"mem.registration", "Call to ibv_reg_dmabuf_mr", kError, true,
       "GPU memory could not be registered with the network adapter through DMA-BUF",
       "set NCCL_DMABUF_ENABLE=0 to go back to nvidia_peermem, or update driver and kernel"},
      {"mem.shm", "shared memory segment", kError, false,
       "Shared memory between the processes of a host could not be made",
       "give /dev/shm more room (docker --shm-size, Kubernetes an emptyDir of medium Memory), and "
       "let the processes of a host share one IPC namespace"},
      {"mem.shm", "failed to create shared memory", kError, false,
       "Shared memory between the processes of a host could not be made",
       "give /dev/shm more room (docker --shm-size, Kubernetes an emptyDir of medium Memory)"},
      {"mem.shm", "fallocate: Failed to extend", kError, true, "/dev/shm is full",
       "give /dev/shm more room (docker --shm-size, Kubernetes an emptyDir of medium Memory), and "
       "remove nccl-* files that dead processes have left there"},
      {"mem.gpu", "out of memory", kError, true, "A GPU ran out of memory",
       "leave room for the library's buffers (channels x protocols x NCCL_BUFFSIZE on every "
       "communicator): fewer communicators, a smaller NCCL_BUFFSIZE or NCCL_MAX_NCHANNELS, or less "
       "for the framework's cache"},
      {"mem.gpu", "Failed to CUDA ", kError, false, "GPU memory could not be allocated",
       "leave room for the library's buffers, or have fewer and smaller ones"},
      {"mem.host", "Failed to malloc", kError, false, "Host memory could not be allocated",
       "look at the memory limit of the job or container"},
      {"gpu.cuda-error", "Cuda failure", kError, true, "A call of CUDA or HIP failed",
       "the first such error of the earliest rank counts; read the kernel log (dmesg) of that host "
       "for Xid or amdgpu errors"},
      {"gpu.cuda-error", "HIP failure", kError, true, "A call of CUDA or HIP failed",
       "the first such error of the earliest rank counts; read the kernel log (dmesg) of that "
       "host"},
      {"link.p2p-broken", "P2P is disabled between NVLINK connected GPUs", kError, false,
       "GPUs with NVLink between them cannot reach each other's memory",
       "this is a fault of hardware, driver or Fabric Manager: read nvidia-smi topo -p2p r and the "
       "Fabric Manager's log; a virtual machine may hide it"},
      {"link.p2p-disabled", "P2P is disabled between connected GPUs", kWarning, true,
       "GPUs that are connected cannot reach each other's memory",
       "switch off ACS on the PCIe switches and the IOMMU (or give both GPUs to one group); see "
       "nvidia-smi topo -p2p r"},
      {"link.nvls-bind", "Failed to bind NVLink SHARP", kWarning, true,
       "NVLink SHARP could not be set up",
       "restart the Fabric Manager of that host; until then NCCL_NVLS_ENABLE=0 avoids the attempt"},
      {"op.truncated", "essage truncated", kError, false, "A rank sent more than its peer expected",
       "both sides must call the same collective with the same count and type; compare the last "
       "operations of the two ranks"},
      {"op.no-algorithm", "no algorithm/protocol available", kError, false,
       "NCCL_ALGO or NCCL_PROTO leaves no way to run a collective",
       "take the variable out, or name the functions it is meant for"},
      {"net.no-interface", "no socket interface found", kError, false,
       "No network interface could be used",
       "look at NCCL_SOCKET_IFNAME: it must name an interface that this host has"},
      {"net.no-interface", "No IP interface found", kError, false,
       "No network interface could be used",
       "look at NCCL_SOCKET_IFNAME: it must name an interface that this host has"},
      {"net.no-interface", "no interface found", kError, false,
       "No network interface could be used",
       "look at NCCL_SOCKET_IFNAME: it must name an interface that this host has"},
      {"net.no-interface", "no device found matching", kError, false,
       "No network interface could be used", "look at NCCL_OOB_NET_IFNAME and NCCL_SOCKET_IFNAME"},
      {"net.no-plugin", "Failed to initialize any NET plugin", kError, false,
       "No network could be used at all",
       "look at NCCL_NET and NCCL_NET_PLUGIN; without them the library falls back to sockets"},
      {"net.peer-gone", "Connection closed by remote peer", kError, false,
       "A peer closed its connection in the middle of the work",
       "look for the rank that ended first: its log has the cause, the others only follow"},
      {"net.peer-gone", "remote process exited", kError, true,
       "A peer ended in the middle of the work",
       "look for the rank that ended first: its log has the cause, the others only follow"},
      {"net.connect", "Connection refused", kError, false, "A peer refused the connection",
       "the peer had ended, or a firewall is between the hosts, or both sides chose interfaces "
       "that do not reach each other: set NCCL_SOCKET_IFNAME"},
      {"net.connect", "No route to host", kError, false, "A peer cannot be reached",
       "the interfaces chosen do not reach each other: set NCCL_SOCKET_IFNAME to the one that "
       "does, and look at firewalls"},
      {"net.connect", "socketPollConnect", kError, false, "A connection to a peer failed",
       "look at firewalls between the hosts, and set NCCL_SOCKET_IFNAME to an interface that "
       "reaches all of them"},
      {"net.connect", "exceeded error retry count", kError, false,
       "A connection to a peer failed after many attempts",
       "look at firewalls between the hosts, and set NCCL_SOCKET_IFNAME to an interface that "
       "reaches all of them"},
      {"net.connect", "Call to connect ", kError, false, "A connection to a peer failed",
       "look at firewalls between the hosts, and set NCCL_SOCKET_IFNAME"},
      {"test.failed", "Test NCCL failure", kError, true, "A test program stopped with an error",
       "read the WARN lines before it"},
      {"test.failed", "Test CUDA failure", kError, true, "A test program stopped with an error",
       "read the lines before it"},
      {"op.failed", "unhandled system error", kError, true, "The library gave up: system error",
       "the WARN line of the earliest rank says which call failed; NCCL_DEBUG=INFO makes it "
       "print them"},
      {"op.failed", "unhandled cuda error", kError, true, "The library gave up: CUDA error",
       "the WARN line of the earliest rank says which call failed"},
      {"op.failed", "ncclInternalError: ", kError, true, "The library gave up: internal error",
       "the WARN line of the earliest rank says more"},
      {"op.aborted", "is in abort state", kNote, false, "Communicators were aborted",
       "something went wrong before; the earliest error counts"},
      {"op.aborted", "encountered a fatal error", kError, false, "A communicator met a fatal error",
       "the earliest WARN line of all ranks says why"},
      {"plugin.msccl", "MSCCL++: Cannot enable", kNote, false, "MSCCL++ could not be used",
       "nothing has to be done; RCCL uses its own kernels"},
      {"sys.call-failed", "Call to ", kError, false, "A call to the system failed",
       "the text behind 'failed' is the system's reason"},
  };
  return kinds;
}

Troubles::Troubles() : kinds(TroubleKinds().size() + 1) {}

int Troubles::Classify(std::string_view message, bool warning) {
  const std::vector<TroubleKind>& kinds = TroubleKinds();
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (!warning && !kinds[i].in_info) continue;
    if (message.find(kinds[i].needle) != std::string_view::npos) return static_cast<int>(i);
  }
  return -1;
}

void Troubles::Add(size_t kind, const Spot& spot, std::string_view line, std::string_view message,
                   const std::string& sayer) {
  Trouble& trouble = kinds[kind];
  ++trouble.count;
  if (!sayer.empty() &&
      std::find(trouble.sayers.begin(), trouble.sayers.end(), sayer) == trouble.sayers.end()) {
    if (trouble.sayers.size() < kMostSayers) {
      trouble.sayers.push_back(sayer);
    } else {
      trouble.sayers_left_out = 1;
    }
  }
  const size_t most = kind == Other() ? 2 * kMostPlaces : kMostPlaces;
  if (trouble.places.size() >= most) return;
  std::string shape = ShapeOf(message);
  if (std::find(trouble.shapes.begin(), trouble.shapes.end(), shape) != trouble.shapes.end()) {
    return;
  }
  trouble.shapes.push_back(std::move(shape));
  trouble.places.push_back(MakePlace(spot, line));
}

bool Troubles::Any() const {
  for (size_t i = 0; i + 1 < kinds.size(); ++i) {
    if (kinds[i].count > 0 && TroubleKinds()[i].severity == kError) return true;
  }
  return false;
}

std::string_view IbStatusText(int64_t status) {
  switch (status) {
    case 1:
      return "the message was longer than the receiver's buffer";
    case 4:
      return "local protection error: the memory was not registered, or no longer";
    case 5:
      return "flushed: the connection had failed before";
    case 9:
      return "the remote side called the request invalid";
    case 10:
      return "the remote side refused access to its memory";
    case 11:
      return "the remote side failed";
    case 12:
      return "no answer after all retries: the peer, a cable or the fabric is gone";
    case 13:
      return "the peer was never ready to receive";
    default:
      return "";
  }
}

}  // namespace diapason::logs
