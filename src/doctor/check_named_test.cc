#include <gtest/gtest.h>

#include "doctor/checks.h"
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

CheckInputs FactsWith(const host::FakeTree& fake, std::map<std::string, std::string> variables) {
  return GatherFacts(RootFs(fake.root()), MapEnvironment(std::move(variables)));
}

TEST(Doctor, InterfacesThatVariablesNameMustExist) {
  const host::FakeTree fake("dgx-h100.tree");
  const CheckInputs plain = FactsOf(fake);
  ASSERT_FALSE(plain.machine.interfaces.empty());
  std::string up;
  for (const host::NetInterface& one : plain.machine.interfaces) {
    if (one.up && one.name != "lo") up = one.name;
  }
  ASSERT_NE(up, "");
  const auto socket = [&fake](const std::string& value) {
    const std::vector<Finding> findings =
        CheckEverything(FactsWith(fake, {{"NCCL_SOCKET_IFNAME", value}}));
    const Finding* finding = Find(findings, "net.named");
    return finding == nullptr ? Severity::kNote : finding->severity;
  };
  EXPECT_EQ(socket(up), Severity::kFine);
  EXPECT_EQ(socket("=" + up), Severity::kFine);
  EXPECT_EQ(socket(up.substr(0, up.size() - 1)), Severity::kFine);
  EXPECT_EQ(socket("=" + up.substr(0, up.size() - 1)), Severity::kError);
  EXPECT_EQ(socket("^docker,lo"), Severity::kFine);
  EXPECT_EQ(socket("nosuch"), Severity::kError);
  EXPECT_EQ(socket("nosuch," + up), Severity::kFine);
  ExpectFinding(CheckEverything(FactsWith(fake, {{"GLOO_SOCKET_IFNAME", "nosuch"}})),
                "net.named-gloo", Severity::kError, "nosuch");
  EXPECT_EQ(Find(CheckEverything(FactsWith(fake, {{"GLOO_SOCKET_IFNAME", up}})), "net.named-gloo"),
            nullptr);
}

TEST(Doctor, AdaptersThatVariablesNameMustExist) {
  const host::FakeTree fake("dgx-h100.tree");
  const auto adapter = [&fake](const std::string& value) {
    const std::vector<Finding> findings =
        CheckEverything(FactsWith(fake, {{"NCCL_IB_HCA", value}}));
    const Finding* finding = Find(findings, "rdma.named");
    return finding == nullptr ? "none"
                              : std::string(SeverityName(finding->severity)) + " " + finding->title;
  };
  EXPECT_EQ(adapter("mlx5_0").substr(0, 3), "ok ");
  EXPECT_EQ(adapter("=mlx5_0:1,mlx5_1:1"), "ok NCCL_IB_HCA chooses 2 ports");
  EXPECT_EQ(adapter("=mlx5_0,mlx5_77"),
            "warning NCCL_IB_HCA names mlx5_77, which this host does not have");
  EXPECT_NE(adapter("mlx5_0:7").find("chooses no RDMA port"), std::string::npos);
  EXPECT_NE(adapter("^mlx5").find("chooses no RDMA port"), std::string::npos);
  EXPECT_EQ(adapter("^mlx5_0").substr(0, 3), "ok ");
  ExpectFinding(CheckEverything(FactsWith(fake, {{"UCX_NET_DEVICES", "mlx5_0:1,mlx5_0:9"}})),
                "net.named-ucx", Severity::kWarning, "mlx5_0:9");
  EXPECT_EQ(
      Find(CheckEverything(FactsWith(fake, {{"UCX_NET_DEVICES", "mlx5_0:1"}})), "net.named-ucx"),
      nullptr);
}

TEST(Doctor, TheKernelLogNamesFaults) {
  host::FakeTree fake("dgx-h100.tree");
  EXPECT_EQ(Find(CheckEverything(FactsOf(fake)), "kernel.log"), nullptr);
  fake.Add(
      "/var/log/kern.log = host kernel: usb 1-1: new device\nhost kernel: [12.3] NVRM: Xid "
      "(PCI:0000:41:00): 79, pid=12, GPU has fallen off the bus.\nhost kernel: NVRM: Xid "
      "(PCI:0000:41:00): 31, pid=12, MMU Fault\nhost kernel: NVRM: Xid (PCI:0000:41:00): 31, "
      "pid=13, MMU Fault\nhost kernel: NVRM: Xid (PCI:0000:41:00): 777, x");
  const std::vector<Finding> findings = CheckEverything(FactsOf(fake));
  ExpectFinding(findings, "kernel.xid", Severity::kError, "the GPU has fallen off the bus");
  size_t notes = 0;
  size_t unknown = 0;
  for (const Finding& finding : findings) {
    if (finding.id != "kernel.xid") continue;
    notes += finding.title.find("Xid 31 of GPU 0000:41:00, 2 times") != std::string::npos ? 1 : 0;
    unknown += finding.title.find("Xid 777") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(notes, 1u);
  EXPECT_EQ(unknown, 1u);
  host::FakeTree amd("mi300x.tree");
  amd.Add("/var/log/kern.log = amdgpu 0000:05:00.0: amdgpu: GPU reset begin!");
  ExpectFinding(CheckEverything(FactsOf(amd)), "kernel.amdgpu", Severity::kWarning, "0000:05:00");
  host::FakeTree fine("mi300x.tree");
  fine.Add("/var/log/kern.log = amdgpu 0000:05:00.0: amdgpu: Using DMA");
  ExpectFinding(CheckEverything(FactsOf(fine)), "kernel.log", Severity::kFine, "no fault");
  ExpectFinding(CheckEverything(FactsOf(fine)), "gpu.architecture", Severity::kFine,
                "gfx942; RCCL needs no HDP flush");
}

TEST(Doctor, LimitsOfAControlGroup) {
  host::FakeTree fake("mi300x.tree");
  fake.Add("/proc/self/cgroup = 0::/job");
  fake.Add("/sys/fs/cgroup/job/memory.max = 1073741824");
  fake.Add("/sys/fs/cgroup/job/pids.max = 512");
  const std::vector<Finding> findings = CheckEverything(FactsOf(fake));
  ExpectFinding(findings, "container.memory", Severity::kNote, "/sys/fs/cgroup/job/memory.max");
  ExpectFinding(findings, "container.tasks", Severity::kNote, "/sys/fs/cgroup/job/pids.max: 512");
  host::FakeTree old("mi300x.tree");
  old.Add("/proc/self/cgroup = 4:memory:/job\n5:pids:/job");
  old.Add("/sys/fs/cgroup/memory/job/memory.limit_in_bytes = 2147483648");
  old.Add("/sys/fs/cgroup/pids/job/pids.max = max");
  const std::vector<Finding> of_old = CheckEverything(FactsOf(old));
  ExpectFinding(of_old, "container.memory", Severity::kNote, "memory.limit_in_bytes");
  EXPECT_EQ(Find(of_old, "container.tasks"), nullptr);
}

}  // namespace
}  // namespace diapason::doctor
