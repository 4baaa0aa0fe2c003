#include <algorithm>

#include "base/text.h"
#include "doctor/checks.h"

namespace diapason::doctor {
namespace {

void CheckPairs(const CheckInputs& facts, std::vector<Finding>* findings) {
  std::vector<std::string> refused;
  std::vector<std::string> far;
  size_t allowed = 0;
  bool refused_on_link = false;
  for (const host::GpuPair& pair : facts.machine.pairs) {
    // Both directions are nearly always the same.
    const std::string text = Format("GPU {} to GPU {}: {}", pair.from, pair.to,
                                    pair.path.empty() ? "path not known" : pair.path);
    if (pair.peer_read == false) {
      refused.push_back(text);
      refused_on_link = refused_on_link || pair.path.starts_with("NV") || pair.path == "XGMI";
    } else if (pair.peer_read == true) {
      ++allowed;
    }
    if (pair.path == "SYS" && pair.from < pair.to) far.push_back(text);
  }
  if (!refused.empty()) {
    AddFinding(findings, "p2p.refused", refused_on_link ? Severity::kError : Severity::kWarning,
               Format("the driver refuses peer access between {} of {} pairs of GPUs: copies go "
                      "through host memory",
                      refused.size(), facts.machine.pairs.size()),
               refused,
               "look at MIG, at the hypervisor's and the firmware's settings (ACS, IOMMU), and at "
               "whether this model has peer access at all");
  } else if (allowed > 0) {
    AddFinding(findings, "p2p.allowed", Severity::kFine,
               Format("peer access between all {} pairs of GPUs", allowed),
               {"path: " + facts.machine.pairs.front().path});
  }
  if (!far.empty() && (facts.live || facts.amd())) {
    AddFinding(findings, "p2p.far", Severity::kNote,
               Format("{} of GPUs reach each other only across sockets", Count(far.size(), "pair")),
               far);
  }
}

void CheckAccessControl(const CheckInputs& facts, std::vector<Finding>* findings) {
  const bool matters = facts.machine.gpus.size() + facts.machine.rdma.size() >= 2 &&
                       !facts.machine.gpus.empty() && facts.system.pci_ports > 0;
  // A virtual machine needs it, and its user cannot change it.
  if (!matters || !facts.machine.hypervisor.empty()) return;
  if (!facts.system.access_control) {
    AddFinding(findings, "pci.acs", Severity::kNote,
               "whether PCIe access control (ACS) is on cannot be told without root",
               {Format("/sys/bus/pci/devices/*/config: only the first 64 bytes can be read, of "
                       "{} bridges",
                       facts.system.pci_ports)},
               "run this once as root");
    return;
  }
  const std::vector<std::string>& ports = *facts.system.access_control;
  if (ports.empty()) {
    AddFinding(findings, "pci.acs", Severity::kFine, "PCIe access control (ACS) redirects nothing");
    return;
  }
  std::vector<std::string> evidence;
  for (const std::string& port : ports) {
    evidence.push_back("/sys/bus/pci/devices/" + port + "/config: request or completion redirect");
  }
  AddFinding(findings, "pci.acs", Severity::kWarning,
             Format("PCIe access control (ACS) is on at {}: traffic between devices below a switch "
                    "goes up to the processor and back",
                    Count(ports.size(), "port")),
             evidence,
             "turn it off in the firmware, or at every boot with setpci (ECAP_ACS+6.w=0)");
}

void CheckIommu(const CheckInputs& facts, std::vector<Finding>* findings) {
  if (facts.machine.gpus.empty() || facts.system.iommu.empty()) return;
  if (facts.system.iommu != "translated") {
    AddFinding(findings, "pci.iommu", Severity::kFine,
               facts.system.iommu == "off" ? "no IOMMU translates devices' addresses"
                                           : "the IOMMU passes devices' addresses through",
               {"/sys/class/iommu, iommu_group/type"});
    return;
  }
  AddFinding(findings, "pci.iommu",
             facts.machine.hypervisor.empty() ? Severity::kWarning : Severity::kNote,
             "the IOMMU translates the addresses of GPUs and adapters: direct access between them "
             "is slow or fails",
             {"/sys/bus/pci/devices/*/iommu_group/type: not 'identity'",
              "/proc/cmdline: " + facts.system.command_line.substr(0, 200)},
             "add iommu=pt (with intel_iommu=on or amd_iommu=on) to the kernel's command line");
}

void CheckGpuDirect(const CheckInputs& facts, std::vector<Finding>* findings) {
  if (facts.machine.gpus.empty() || facts.machine.rdma.empty()) return;
  const host::System& system = facts.system;
  if (system.peer_memory || system.dma_buf) {
    AddFinding(findings, "rdma.gpudirect", Severity::kFine,
               Format("network adapters can reach GPU memory directly ({})",
                      system.peer_memory ? "peer memory module" : "DMA-BUF"));
    return;
  }
  AddFinding(findings, "rdma.gpudirect", Severity::kWarning,
             "network adapters cannot reach GPU memory: every byte between hosts goes through host "
             "memory",
             {facts.amd() ? "/sys/kernel/mm/memory_peers/amdkfd: not there; kernel without "
                            "CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY"
                          : "/sys/module/nvidia_peermem: not there; DMA-BUF needs the open kernel "
                            "modules and Linux 5.12",
              "kernel " + facts.machine.kernel},
             facts.amd() ? "use the driver's DKMS package with an RDMA stack that has peer memory"
                         : "modprobe nvidia_peermem, or install the driver's open kernel modules");
}

}  // namespace

void CheckPeerAccess(const CheckInputs& facts, std::vector<Finding>* findings) {
  CheckPairs(facts, findings);
  CheckAccessControl(facts, findings);
  CheckIommu(facts, findings);
  CheckGpuDirect(facts, findings);
}

}  // namespace diapason::doctor
