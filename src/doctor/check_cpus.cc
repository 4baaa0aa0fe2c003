#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/checks.h"

namespace diapason::doctor {
namespace {

// NCCL starts a progress and a service thread for each GPU, beside the program's own.
constexpr double kCpusPerGpu = 3;

void CheckAffinity(const CheckInputs& facts, std::vector<Finding>* findings) {
  const host::Machine& machine = facts.machine;
  if (machine.allowed_cpus.empty()) return;
  const std::set<int> allowed(machine.allowed_cpus.begin(), machine.allowed_cpus.end());
  std::vector<int> far;
  std::vector<std::string> evidence;
  bool told = false;
  for (const host::Gpu& gpu : machine.gpus) {
    const std::vector<int> near = ParseCpuList(gpu.cpus);
    if (near.empty()) continue;
    told = true;
    if (std::any_of(near.begin(), near.end(), [&](int cpu) { return allowed.count(cpu) > 0; })) {
      continue;
    }
    far.push_back(gpu.index);
    evidence.push_back(Format("GPU {}: near CPUs {}", gpu.index, gpu.cpus));
  }
  if (!far.empty()) {
    evidence.push_back("allowed here: " + CpuListText(machine.allowed_cpus));
    AddFinding(findings, "cpu.affinity", Severity::kWarning,
               "this process may run on no CPU near " + GpuNames(far), evidence,
               "bind each rank to the CPUs of its GPU's NUMA node (--cpu-bind, numactl, cpuset)");
  } else if (told) {
    AddFinding(findings, "cpu.affinity", Severity::kFine, "this process may run near every GPU",
               {"allowed: " + CpuListText(machine.allowed_cpus)});
  }
}

void CheckAdaptersNear(const CheckInputs& facts, std::vector<Finding>* findings) {
  std::set<int> adapters;
  for (const host::RdmaPort& port : facts.machine.rdma) {
    if (port.state == "ACTIVE" && port.numa_node >= 0) adapters.insert(port.numa_node);
  }
  std::map<int, std::vector<int>> lonely;
  for (const host::Gpu& gpu : facts.machine.gpus) {
    if (gpu.numa_node >= 0 && !adapters.empty() && adapters.count(gpu.numa_node) == 0) {
      lonely[gpu.numa_node].push_back(gpu.index);
    }
  }
  for (const auto& [node, gpus] : lonely) {
    AddFinding(findings, "numa.adapters", Severity::kWarning,
               Format("{} {} on NUMA node {}, where no active network adapter is: their traffic "
                      "crosses sockets",
                      GpuNames(gpus), gpus.size() == 1 ? "is" : "are", node),
               {"/sys/class/infiniband/*/device/numa_node: active ones on node " +
                CpuListText({adapters.begin(), adapters.end()})},
               "bring up the adapters of that node, or place them there");
  }
}

}  // namespace

void CheckCpus(const CheckInputs& facts, std::vector<Finding>* findings) {
  const host::Machine& machine = facts.machine;
  const size_t gpus = machine.gpus.size();
  CheckAffinity(facts, findings);
  CheckAdaptersNear(facts, findings);
  if (machine.numa.size() > 1 && facts.system.numa_balancing.value_or(0) != 0) {
    AddFinding(findings, "numa.balancing", gpus > 0 ? Severity::kWarning : Severity::kNote,
               "the kernel moves memory between NUMA nodes on its own, and stops threads to do so",
               {Format("/proc/sys/kernel/numa_balancing: {}", *facts.system.numa_balancing)},
               "sysctl kernel.numa_balancing=0");
  } else if (facts.system.numa_balancing) {
    AddFinding(findings, "numa.balancing", Severity::kFine,
               machine.numa.size() > 1 ? "automatic NUMA balancing is off" : "one NUMA node");
  }
  const bool placeless = machine.numa.size() > 1 && gpus > 0 &&
                         std::all_of(machine.gpus.begin(), machine.gpus.end(),
                                     [](const host::Gpu& gpu) { return gpu.numa_node < 0; });
  if (placeless) {
    AddFinding(findings, "numa.unknown", Severity::kNote,
               "the machine does not say which NUMA node its GPUs are on",
               {"/sys/bus/pci/devices/*/numa_node: -1"},
               machine.hypervisor.empty() ? "" : "NCCL_TOPO_FILE with the provider's file helps");
  }
  if (!machine.governor.empty() && machine.governor != "performance" && gpus > 0) {
    AddFinding(findings, "cpu.governor", Severity::kNote,
               "the CPUs' clocks follow the load: latencies vary more",
               {"/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor: " + machine.governor},
               "cpupower frequency-set -g performance");
  } else if (!machine.governor.empty()) {
    AddFinding(findings, "cpu.governor", Severity::kFine, "CPU governor: " + machine.governor);
  }
  const double wanted = kCpusPerGpu * static_cast<double>(gpus);
  const double have =
      machine.cpu_quota > 0 ? machine.cpu_quota : static_cast<double>(machine.allowed_cpus.size());
  if (gpus > 0 && have > 0 && have < wanted) {
    AddFinding(
        findings, "cpu.few", Severity::kWarning,
        Format("{:.3g} CPUs for {} GPUs: NCCL's threads and the program's compete", have, gpus),
        {machine.cpu_quota > 0 ? Format("control group's quota: {:.3g} CPUs", have)
                               : "allowed: " + CpuListText(machine.allowed_cpus)},
        Format("give the job at least {:.0f} CPUs", wanted));
  } else if (machine.cpu_quota > 0) {
    AddFinding(
        findings, "cpu.quota", Severity::kNote,
        Format("the control group allows {:.3g} CPUs: threads that wait busily use it up, and "
               "then all of them stop",
               machine.cpu_quota),
        {Format("cpu.max: {:.3g}", machine.cpu_quota)});
  }
}

}  // namespace diapason::doctor
