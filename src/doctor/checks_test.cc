#include "doctor/checks.h"

#include <gtest/gtest.h>

#include "doctor/checklist.h"
#include "doctor/goals.h"
#include "host/fake_tree.h"

namespace diapason::doctor {
namespace {

CheckInputs FactsOf(const host::FakeTree& fake) {
  EXPECT_EQ(fake.trouble(), "");
  return GatherFacts(RootFs(fake.root()), MapEnvironment(std::map<std::string, std::string>{}));
}

const Finding* Find(const std::vector<Finding>& findings, const std::string& id) {
  for (const Finding& finding : findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}

void ExpectFinding(const std::vector<Finding>& findings, const std::string& id, Severity severity,
                   const std::string& part) {
  const Finding* finding = Find(findings, id);
  ASSERT_NE(finding, nullptr) << id;
  EXPECT_EQ(finding->severity, severity) << id << ": " << finding->title;
  std::string all = finding->title;
  for (const std::string& line : finding->evidence) all += "\n" + line;
  EXPECT_NE(all.find(part), std::string::npos) << all;
}

ChecklistItem ItemOf(const CheckInputs& facts, const std::string& id) {
  for (const ChecklistItem& item : MakeChecklist(facts)) {
    if (item.id == id) return item;
  }
  ADD_FAILURE() << id;
  return {};
}

TEST(Doctor, NothingWrongWithAMachineInOrder) {
  const host::FakeTree fake("dgx-h100.tree");
  const std::vector<Finding> findings = CheckEverything(FactsOf(fake));
  for (const Finding& finding : findings) {
    EXPECT_LE(finding.severity, Severity::kNote) << finding.id << ": " << finding.title;
  }
  for (const char* id : {"gpu.present", "pcie.full", "rdma.active", "rdma.gpudirect", "pci.acs",
                         "pci.iommu", "numa.balancing", "library.version", "fabric.manager"}) {
    ExpectFinding(findings, id, Severity::kFine, "");
  }
}

TEST(Doctor, FindsEveryFault) {
  const host::FakeTree fake("dgx-h100-faults.tree");
  const CheckInputs facts = FactsOf(fake);
  const std::vector<Finding> findings = CheckEverything(facts);
  ExpectFinding(findings, "pcie.width", Severity::kWarning, "8 of 16 PCIe lanes");
  ExpectFinding(findings, "rdma.down", Severity::kWarning, "mlx5_5/ports/1/state: DOWN");
  ExpectFinding(findings, "rdma.errors", Severity::kWarning, "symbol_error 41");
  ExpectFinding(findings, "numa.balancing", Severity::kWarning, "numa_balancing: 1");
  ExpectFinding(findings, "shm.small", Severity::kWarning, "512 MiB");
  ExpectFinding(findings, "limit.memlock", Severity::kError, "8 MiB");
  ExpectFinding(findings, "pci.acs", Severity::kWarning, "0000:18:01.0");
  ExpectFinding(findings, "pci.iommu", Severity::kWarning, "intel_iommu=on");
  ExpectFinding(findings, "rdma.gpudirect", Severity::kWarning, "nvidia_peermem");
  ExpectFinding(findings, "fabric.manager", Severity::kError, "does not run");
  ExpectFinding(findings, "library.several", Severity::kWarning, "2.16.5");
  ExpectFinding(findings, "library.toolkit", Severity::kError, "CUDA 13.0");
  ExpectFinding(findings, "limit.stack", Severity::kNote, "unlimited");
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_EQ(ItemOf(facts, "algorithm").state, ChecklistItem::State::kNotOk);
  EXPECT_EQ(ItemOf(facts, "logging").state, ChecklistItem::State::kOk);
}

TEST(Doctor, ContainerWithDefaults) {
  const host::FakeTree fake("roce-vm.tree");
  const CheckInputs facts = FactsOf(fake);
  const std::vector<Finding> findings = CheckEverything(facts);
  ExpectFinding(findings, "shm.small", Severity::kWarning, "what containers get by default");
  ExpectFinding(findings, "rdma.no-device-files", Severity::kWarning, "/dev/infiniband");
  ExpectFinding(findings, "rdma.gid", Severity::kWarning, "no RoCE v2 address over IPv4");
  ExpectFinding(findings, "cpu.few", Severity::kWarning, "8 CPUs for 4 GPUs");
  ExpectFinding(findings, "numa.unknown", Severity::kNote, "-1");
  ExpectFinding(findings, "library.toolkit", Severity::kError, "driver 550.90.07");
  ExpectFinding(findings, "net.none", Severity::kNote, "eth0");
  ExpectFinding(findings, "limit.memlock", Severity::kWarning, "64 KiB");
  // The user of a virtual machine cannot change these.
  EXPECT_EQ(Find(findings, "pci.acs"), nullptr);
  EXPECT_EQ(ItemOf(facts, "torch").state, ChecklistItem::State::kOk);
}

TEST(Doctor, Mi300x) {
  const host::FakeTree fake("mi300x.tree");
  const CheckInputs facts = FactsOf(fake);
  const std::vector<Finding> findings = CheckEverything(facts);
  for (const Finding& finding : findings) {
    EXPECT_LE(finding.severity, Severity::kNote) << finding.id << ": " << finding.title;
  }
  ExpectFinding(findings, "link.up", Severity::kFine, "7 XGMI links up");
  ExpectFinding(findings, "library.version", Severity::kFine, "RCCL 2.21.5");
  ExpectFinding(findings, "rdma.gid-index", Severity::kFine, "GID index 3");
  EXPECT_EQ(ItemOf(facts, "links").state, ChecklistItem::State::kOk);
  EXPECT_EQ(ItemOf(facts, "links-used").state, ChecklistItem::State::kOk);
}

TEST(Doctor, Laptop) {
  const host::FakeTree fake("laptop.tree");
  const CheckInputs facts = FactsOf(fake);
  const std::vector<Finding> findings = CheckEverything(facts);
  EXPECT_EQ(Worst(findings), Severity::kNote);
  ExpectFinding(findings, "gpu.none", Severity::kNote, "");
  ExpectFinding(findings, "library.none", Severity::kNote, "");
  EXPECT_EQ(ItemOf(facts, "library").state, ChecklistItem::State::kNotApplicable);
  EXPECT_EQ(ItemOf(facts, "goal-latency").state, ChecklistItem::State::kNotApplicable);
}

// Facts that only the driver provides.
CheckInputs FourGpus() {
  CheckInputs facts;
  for (int i = 0; i < 4; ++i) {
    host::Gpu gpu;
    gpu.index = i;
    gpu.name = "NVIDIA H200";
    gpu.fabric_links = 18;
    gpu.mode = "default";
    gpu.persistence = true;
    facts.machine.gpus.push_back(gpu);
    for (int j = 0; j < 4; ++j) {
      if (i != j) facts.machine.pairs.push_back({i, j, "NV18", true});
    }
  }
  return facts;
}

TEST(Doctor, HealthOfGpus) {
  CheckInputs facts = FourGpus();
  facts.machine.gpus[1].throttling = {"thermal (hardware)"};
  facts.machine.gpus[2].ecc_uncorrected = 3;
  facts.machine.gpus[3].mode = "prohibited";
  facts.machine.gpus[0].mig = true;
  facts.machine.gpus[0].memory_bytes = uint64_t{80} << 30;
  facts.machine.gpus[0].memory_used = uint64_t{20} << 30;
  std::vector<Finding> findings;
  CheckGpus(facts, &findings);
  ExpectFinding(findings, "gpu.throttled", Severity::kWarning, "GPU 1");
  ExpectFinding(findings, "gpu.ecc", Severity::kError, "GPU 2");
  ExpectFinding(findings, "gpu.mode", Severity::kError, "GPU 3");
  ExpectFinding(findings, "gpu.mig", Severity::kWarning, "GPU 0");
  ExpectFinding(findings, "gpu.memory-used", Severity::kNote, "20 GiB of 80 GiB");
}

TEST(Doctor, PowerCapIsNoFault) {
  CheckInputs facts = FourGpus();
  facts.machine.gpus[1].throttling = {"power cap"};
  std::vector<Finding> findings;
  CheckGpus(facts, &findings);
  ExpectFinding(findings, "gpu.throttled", Severity::kNote, "power cap");
}

TEST(Doctor, MixedGpus) {
  CheckInputs facts = FourGpus();
  facts.machine.gpus[3].name = "NVIDIA A100";
  std::vector<Finding> findings;
  CheckGpus(facts, &findings);
  ExpectFinding(findings, "gpu.mixed", Severity::kWarning, "GPU 3: NVIDIA A100");
}

TEST(Doctor, LinksDownAndFabricNotReady) {
  CheckInputs facts = FourGpus();
  facts.machine.gpus[2].fabric_links = 16;
  facts.machine.gpus[2].fabric_links_down = 2;
  facts.machine.gpus[1].fabric_errors = 5000;
  facts.machine.gpus[0].fabric_state = "in progress";
  std::vector<Finding> findings;
  CheckGpuLinks(facts, &findings);
  ExpectFinding(findings, "link.down", Severity::kWarning, "GPU 2 (): 16 up, 2 down");
  ExpectFinding(findings, "link.errors", Severity::kWarning, "GPU 1");
  ExpectFinding(findings, "fabric.manager", Severity::kError, "GPU 0");
  EXPECT_EQ(ItemOf(facts, "links").state, ChecklistItem::State::kNotOk);
}

TEST(Doctor, RefusedPeerAccess) {
  CheckInputs facts = FourGpus();
  std::vector<Finding> findings;
  CheckPeerAccess(facts, &findings);
  ExpectFinding(findings, "p2p.allowed", Severity::kFine, "all 12 pairs");
  facts.machine.pairs[0].peer_read = false;
  findings.clear();
  CheckPeerAccess(facts, &findings);
  ExpectFinding(findings, "p2p.refused", Severity::kError, "1 of 12");
  facts.machine.pairs[0].path = "PHB";
  findings.clear();
  CheckPeerAccess(facts, &findings);
  ExpectFinding(findings, "p2p.refused", Severity::kWarning, "GPU 0 to GPU 1: PHB");
}

// An idle GPU lowers its link's speed; only its width is evidence then.
TEST(Doctor, SlowLinkCountsUnderLoadOnly) {
  CheckInputs facts = FourGpus();
  host::Gpu& gpu = facts.machine.gpus[0];
  gpu.link = {8, 32, 16, 16};
  gpu.power_limit_w = 700;
  gpu.power_w = 70;
  std::vector<Finding> findings;
  CheckPci(facts, &findings);
  EXPECT_EQ(Find(findings, "pcie.speed"), nullptr);
  gpu.power_w = 600;
  CheckPci(facts, &findings);
  ExpectFinding(findings, "pcie.speed", Severity::kWarning, "8 of 32 GT/s");
}

TEST(Doctor, BoundAwayFromItsGpus) {
  CheckInputs facts = FourGpus();
  facts.machine.allowed_cpus = ParseCpuList("0-15");
  facts.machine.gpus[0].cpus = "0-31";
  facts.machine.gpus[3].cpus = "32-63";
  std::vector<Finding> findings;
  CheckCpus(facts, &findings);
  ExpectFinding(findings, "cpu.affinity", Severity::kWarning, "no CPU near GPU 3");
}

TEST(Doctor, PluginInterfaces) {
  CheckInputs facts = FourGpus();
  host::LibraryFile file;
  file.path = file.real_path = "/lib/libnccl.so.2";
  file.version = 22809;
  file.tuner_apis = {2, 3, 4, 5};
  file.profiler_apis = {1, 5};
  facts.libraries = {file};
  facts.nccl = facts.job.file = file.path;
  facts.plugin = {"/lib/t.so", "", {2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}, {1}};
  std::vector<Finding> findings;
  CheckPlugin(facts, &findings);
  ExpectFinding(findings, "plugin.interface", Severity::kFine, "tuner v5, profiler v5");
  facts.libraries[0].version = 21805;
  facts.libraries[0].tuner_apis.clear();
  findings.clear();
  CheckPlugin(facts, &findings);
  ExpectFinding(findings, "plugin.interface", Severity::kNote, "plugins need 2.19");
  facts.assignments = {{"NCCL_TUNER_PLUGIN", "/lib/t.so", "environment", false, false}};
  findings.clear();
  CheckPlugin(facts, &findings);
  ExpectFinding(findings, "plugin.interface", Severity::kError, "2.18.5");
}

TEST(Doctor, ALibraryThatIsNewerThanTheCatalogue) {
  CheckInputs facts = FourGpus();
  host::LibraryFile file;
  file.path = file.real_path = "/lib/libnccl.so.2";
  file.version = knobs::Catalogue::NewestKnown(Library::kNccl) + 100;
  facts.libraries = {file};
  facts.job.file = file.path;
  std::vector<Finding> findings;
  CheckLibraries(facts, &findings);
  ExpectFinding(findings, "library.newer", Severity::kNote, "is newer than the versions");
  facts.libraries[0].version = knobs::Catalogue::NewestKnown(Library::kNccl);
  findings.clear();
  CheckLibraries(facts, &findings);
  for (const Finding& finding : findings) EXPECT_NE(finding.id, "library.newer");
}

TEST(Doctor, Goals) {
  const std::vector<GoalResult> goals = {
      {"gradients", "allreduce 10MB", "at most 1 ms", "89 us", "[88 us, 91 us]", "met"},
      {"scaling to four GPUs", "allreduce 100MB 4 ranks", "at least 95 %", "91 %", "[90 %, 92 %]",
       "MISSED"},
      {"share of the link on ring", "allreduce 100MB ring", "at least 90 % of the link", "-", "-",
       "not measured: the link is not known"}};
  CheckInputs facts = FourGpus();
  facts.test.wanted = true;
  facts.test.on_gpus = true;
  facts.test.goals = goals;
  EXPECT_EQ(ItemOf(facts, "goal-latency").state, ChecklistItem::State::kOk);
  EXPECT_EQ(ItemOf(facts, "goal-scaling").state, ChecklistItem::State::kNotOk);
  EXPECT_EQ(ItemOf(facts, "goal-bandwidth").state, ChecklistItem::State::kCannotTell);
  std::vector<Finding> findings;
  CheckTest(facts, &findings);
  ExpectFinding(findings, "test.missed", Severity::kWarning, "91 %");
  // Ranks that share a GPU miss targets for one GPU per rank: not a fault.
  facts.test.shared = true;
  findings.clear();
  CheckTest(facts, &findings);
  EXPECT_EQ(Worst(findings), Severity::kNote);
  ExpectFinding(findings, "test.shared", Severity::kNote, "do not apply");
  EXPECT_NE(std::string(kGoals).find("link_share_at_least"), std::string::npos);
}

TEST(Doctor, ATestThatDoesNotEndSaysWhatToDo) {
  CheckInputs facts = FourGpus();
  facts.test.wanted = true;
  facts.test.on_gpus = true;
  facts.test.ranks = 4;
  facts.test.trouble = "the ranks did not start: the program has not answered";
  facts.test.timed_out = true;
  std::vector<Finding> findings;
  CheckTest(facts, &findings);
  ExpectFinding(findings, "test.timeout", Severity::kError, "did not end in time");
  ASSERT_EQ(findings.size(), 1u);
  for (const char* part : {"diapason bench -g 4", "NCCL_SOCKET_IFNAME", "--no-test"}) {
    EXPECT_NE(findings[0].action.find(part), std::string::npos) << findings[0].action;
  }
  facts.test.on_gpus = false;
  findings.clear();
  CheckTest(facts, &findings);
  ExpectFinding(findings, "test.timeout", Severity::kWarning, "did not end in time");
  EXPECT_NE(findings[0].action.find("--backend gloo"), std::string::npos) << findings[0].action;
}

TEST(Doctor, ATestThatWasTooSlowShowsWhatItHas) {
  CheckInputs facts = FourGpus();
  facts.test.wanted = true;
  facts.test.on_gpus = true;
  facts.test.goals = {
      {"gradients", "allreduce 10MB", "at most 1 ms", "3 ms", "[3 ms, 4 ms]", "MISSED"}};
  facts.test.left_out = 8;
  std::vector<Finding> findings;
  CheckTest(facts, &findings);
  ExpectFinding(findings, "test.slow", Severity::kWarning, "before 8 of 9 goals");
  ExpectFinding(findings, "test.missed", Severity::kWarning, "3 ms");
}

TEST(Doctor, TimeOutThatEndsNothing) {
  CheckInputs facts = FourGpus();
  EXPECT_EQ(ItemOf(facts, "time-out").state, ChecklistItem::State::kCannotTell);
  facts.assignments = {{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", "environment", false, false}};
  EXPECT_EQ(ItemOf(facts, "time-out").state, ChecklistItem::State::kNotOk);
}

TEST(Doctor, Names) {
  EXPECT_EQ(GpuNames({3}), "GPU 3");
  EXPECT_EQ(GpuNames({0, 2, 5}), "GPUs 0, 2 and 5");
  EXPECT_EQ(GpuNames({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), "GPUs 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
  EXPECT_EQ(AboutLimit(uint64_t{64} << 20), "64 MiB");
  EXPECT_EQ(AboutLimit(host::kUnlimited), "unlimited");
}

}  // namespace
}  // namespace diapason::doctor
