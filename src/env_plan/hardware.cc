#include <algorithm>
#include <set>

#include "base/text.h"
#include "env_plan/plan.h"

namespace diapason::env_plan {
namespace {

constexpr int kManyCores = 64;

void AmdNotes(PlanBuilder* builder, const std::set<std::string>& architectures) {
  for (const std::string& name : architectures) {
    const bool direct = name == "gfx90a" || name.rfind("gfx94", 0) == 0;
    if (name == "gfx906" || name == "gfx908") {
      builder->Note(name,
                    "with GPUDirect RDMA the proxy flushes the HDP (the GPU's host data path) "
                    "by a register before it sends; it is done once for what has arrived, "
                    "nothing has to be set");
    } else if (direct) {
      builder->Note(name, std::string("RCCL needs no HDP flush on it") +
                              (name == "gfx90a"
                                   ? "; LL128 is on by itself where RCCL has a tuning table"
                                   : "; newer versions of RCCL know it better, see that yours is "
                                     "not old"));
    } else if (name.rfind("gfx95", 0) == 0) {
      builder->Note(name, "only a recent RCCL knows it: see in the log which version runs");
    }
  }
  if (builder->Reads("RCCL_NET_HDP_FLUSH")) {
    builder->LeaveOut(
        "RCCL_NET_HDP_FLUSH", builder->DefaultOf("RCCL_NET_HDP_FLUSH"),
        "the flush is left to RCCL; it is for machines on which data sent by GPUDirect "
        "RDMA was seen to be stale",
        true);
  }
  if (builder->machine().rdma.empty()) return;
  builder->Note(
      "GPUDirect RDMA",
      "with NCCL_DEBUG=INFO look for 'GPU Direct RDMA Enabled for GPU'; where it says "
      "Disabled, the driver's peer memory is missing (/sys/kernel/mm/memory_peers/amdkfd) "
      "or the distance is larger than NCCL_NET_GDR_LEVEL allows");
}

void NvidiaNotes(PlanBuilder* builder) {
  if (builder->machine().rdma.empty()) return;
  builder->Note(
      "GPUDirect RDMA",
      "with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH look for 'GPU Direct RDMA "
      "Enabled for GPU' and '/GDRDMA' in the lines of channels; where they are missing, "
      "load nvidia-peermem or use a kernel and driver with DMA-BUF");
}

}  // namespace

void PlanForGpus(PlanBuilder* builder) {
  const host::Machine& machine = builder->machine();
  std::set<std::string> amd;
  bool nvidia = false;
  for (const host::Gpu& gpu : machine.gpus) {
    if (gpu.vendor == host::Vendor::kAmd) {
      // "gfx90a:sramecc+:xnack-" is gfx90a with its features.
      amd.insert(gpu.architecture.substr(0, gpu.architecture.find(':')));
    } else {
      nvidia = true;
    }
  }
  std::vector<std::string>* docker = &builder->plan()->docker_options;
  if (!amd.empty()) {
    AmdNotes(builder, amd);
    docker->insert(docker->begin(),
                   {"--device=/dev/kfd", "--device=/dev/dri", "--group-add video"});
  }
  if (nvidia) {
    NvidiaNotes(builder);
    docker->insert(docker->begin(), "--gpus all");
  }
  // Ranks of one host use /dev/shm; a container has 64 MB of it by default.
  docker->emplace_back("--shm-size=1g");
  // A bridge has neither the host's interfaces nor a route for ranks of other hosts.
  docker->emplace_back("--network=host");
}

void PlanForHost(PlanBuilder* builder) {
  const host::Machine& machine = builder->machine();
  if (!machine.cloud.empty() && builder->plan()->request.goal != PlanGoal::kBalanced &&
      builder->plan()->request.goal != PlanGoal::kDebug) {
    builder->Note(
        "cloud", "the network of a cloud (" + machine.cloud +
                     ") varies with its other users: the defaults are the safe choice, keep a "
                     "change only where repeated runs show it, and watch the spread as well as the "
                     "median");
  }
  if (machine.cores >= kManyCores || machine.numa.size() > 1) {
    builder->Note(
        "cores",
        "dedicating cores: isolcpus=CPUS on the kernel's command line takes them from the "
        "scheduler until the next boot, and only what is pinned there uses them; needs "
        "the administrator. Real-time priority (chrt -f) needs CAP_SYS_NICE, and threads "
        "that spin under SCHED_FIFO starve everything else on their core, the kernel's "
        "own threads included: only on cores that no other process needs");
  }
  if (!machine.isolated_cpus.empty()) {
    builder->Note("isolated CPUs", "the kernel keeps " + machine.isolated_cpus +
                                       " for processes pinned there: a rank that gets several of "
                                       "them is not balanced among them");
  }
}

}  // namespace diapason::env_plan
