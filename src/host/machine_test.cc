#include "host/machine.h"

#include <gtest/gtest.h>

#include "host/fake_tree.h"
#include "host/machine_parts.h"
#include "host/system.h"

namespace diapason::host {
namespace {

MapEnvironment Nothing() { return MapEnvironment(std::map<std::string, std::string>{}); }

const GpuPair* PairOf(const Machine& machine, int from, int to) {
  for (const GpuPair& pair : machine.pairs) {
    if (pair.from == from && pair.to == to) return &pair;
  }
  return nullptr;
}

TEST(LookAtMachine, Dgx) {
  const FakeTree fake("dgx-h100.tree");
  ASSERT_EQ(fake.trouble(), "");
  const Machine machine = LookAtMachine(RootFs(fake.root()), Nothing());
  EXPECT_EQ(machine.host_name, "dgx01");
  EXPECT_EQ(machine.distribution, "Ubuntu 22.04.5 LTS");
  EXPECT_EQ(machine.sockets, 2);
  EXPECT_EQ(machine.cores, 112);
  EXPECT_EQ(machine.threads, 224);
  EXPECT_EQ(machine.governor, "performance");
  EXPECT_EQ(machine.driver, "580.95.05");
  EXPECT_EQ(machine.driver_supports, "CUDA 13.0");
  EXPECT_EQ(machine.hypervisor, "");
  EXPECT_EQ(machine.container, "");
  ASSERT_EQ(machine.numa.size(), 2u);
  EXPECT_EQ(machine.numa[1].memory_bytes, uint64_t{1056695612} * 1024);
  ASSERT_EQ(machine.gpus.size(), 8u);
  EXPECT_EQ(machine.gpus_on_bus, 8);
  EXPECT_EQ(machine.gpus[3].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(machine.gpus[3].pci, "0000:61:00.0");
  EXPECT_EQ(machine.gpus[3].link.width, 16);
  EXPECT_EQ(machine.gpus[3].link.gts, 2.5);
  EXPECT_EQ(machine.gpus[3].link.most_gts, 32);
  EXPECT_EQ(machine.gpus[7].numa_node, 1);
  EXPECT_EQ(machine.gpus[7].cpus, "56-111,168-223");
  ASSERT_NE(PairOf(machine, 0, 1), nullptr);
  EXPECT_EQ(PairOf(machine, 0, 1)->path, "NODE");
  EXPECT_EQ(PairOf(machine, 0, 7)->path, "SYS");
  ASSERT_EQ(machine.rdma.size(), 8u);
  EXPECT_EQ(machine.rdma[2].state, "ACTIVE");
  EXPECT_EQ(machine.rdma[2].gbits, 400);
  EXPECT_EQ(machine.rdma[4].numa_node, 1);
  EXPECT_EQ(machine.rdma[4].pci, "0000:9a:03.0");
  ASSERT_EQ(machine.interfaces.size(), 2u);
  EXPECT_TRUE(machine.interfaces[1].virtual_one);

  const System system = LookAtSystem(RootFs(fake.root()), machine);
  EXPECT_EQ(system.memlock, kUnlimited);
  EXPECT_EQ(system.open_files, 65536u);
  EXPECT_EQ(system.iommu, "passthrough");
  EXPECT_TRUE(system.peer_memory);
  EXPECT_TRUE(system.open_driver);
  EXPECT_TRUE(system.switches);
  EXPECT_EQ(system.fabric_manager, true);
  ASSERT_TRUE(system.access_control.has_value());
  EXPECT_TRUE(system.access_control->empty());
  EXPECT_EQ(system.shm_bytes, machine.memory_bytes / 2);
  EXPECT_EQ(system.huge_pages, "madvise");
}

TEST(LookAtMachine, Mi300x) {
  const FakeTree fake("mi300x.tree");
  ASSERT_EQ(fake.trouble(), "");
  const Machine machine = LookAtMachine(RootFs(fake.root()), Nothing());
  ASSERT_EQ(machine.gpus.size(), 8u);
  EXPECT_EQ(machine.gpus[0].architecture, "gfx942");
  EXPECT_EQ(machine.gpus[0].name, "AMD Instinct MI300X OAM");
  EXPECT_EQ(machine.gpus[1].pci, "0000:26:00.0");
  EXPECT_EQ(machine.gpus[0].fabric_links, 7);
  EXPECT_EQ(machine.gpus[0].most_clock_mhz, 2100);
  EXPECT_EQ(machine.gpus[0].clock_mhz, 132);
  EXPECT_EQ(machine.gpus[0].power_limit_w, 750);
  EXPECT_EQ(machine.pairs.size(), 56u);
  EXPECT_EQ(PairOf(machine, 0, 7)->path, "XGMI");
  EXPECT_EQ(PairOf(machine, 0, 7)->peer_read, true);
  EXPECT_EQ(machine.rdma[0].rocev2_ipv4_gid, 3);
  EXPECT_EQ(machine.rdma[0].gids[3], "3: RoCE v2 ::ffff:10.0.1.0");
  EXPECT_EQ(machine.rdma[0].interface, "ens0np0");
  EXPECT_EQ(machine.driver, "6.12.12");
  const System system = LookAtSystem(RootFs(fake.root()), machine);
  EXPECT_TRUE(system.dma_buf);
  EXPECT_FALSE(system.peer_memory);
  EXPECT_EQ(system.iommu, "off");
}

TEST(LookAtMachine, ContainerOfACloud) {
  const FakeTree fake("roce-vm.tree");
  ASSERT_EQ(fake.trouble(), "");
  const Machine machine = LookAtMachine(RootFs(fake.root()), Nothing());
  EXPECT_EQ(machine.hypervisor, "kvm");
  EXPECT_EQ(machine.cloud, "oracle");
  EXPECT_EQ(machine.container, "docker");
  EXPECT_EQ(machine.cpu_quota, 8);
  EXPECT_EQ(machine.memory_limit, 274877906944u);
  EXPECT_EQ(machine.gpus[0].numa_node, -1);
  const System system = LookAtSystem(RootFs(fake.root()), machine);
  EXPECT_EQ(system.shm_bytes, uint64_t{64} << 20);
  EXPECT_EQ(system.memlock, 65536u);
  EXPECT_FALSE(system.rdma_files);
  EXPECT_FALSE(system.access_control.has_value());
}

TEST(LookAtMachine, Faults) {
  const FakeTree fake("dgx-h100-faults.tree");
  ASSERT_EQ(fake.trouble(), "");
  const Machine machine = LookAtMachine(RootFs(fake.root()), Nothing());
  EXPECT_EQ(machine.gpus[3].link.width, 8);
  EXPECT_EQ(machine.gpus[3].link.most_width, 16);
  EXPECT_EQ(machine.rdma[6].symbol_errors, 41u);
  const System system = LookAtSystem(RootFs(fake.root()), machine);
  ASSERT_TRUE(system.access_control.has_value());
  EXPECT_EQ(*system.access_control, (std::vector<std::string>{"0000:18:01.0", "0000:9a:01.0"}));
  EXPECT_EQ(system.iommu, "translated");
  EXPECT_EQ(system.fabric_manager, false);
  EXPECT_EQ(system.stack, kUnlimited);
  EXPECT_FALSE(system.dma_buf);  // the kernel would do, the driver does not
}

TEST(LookAtMachine, NothingAtAll) {
  const FakeTree fake("");
  const Machine machine = LookAtMachine(RootFs(fake.root()), Nothing());
  EXPECT_TRUE(machine.gpus.empty());
  EXPECT_EQ(machine.threads, 0);
  EXPECT_EQ(machine.driver_supports, "");
  const System system = LookAtSystem(RootFs(fake.root()), machine);
  EXPECT_FALSE(system.shm_bytes.has_value());
  EXPECT_EQ(system.iommu, "");
}

// A cyclic list of capabilities, and invalid numbers.
TEST(LookAtMachine, SurvivesNonsense) {
  FakeTree fake("");
  fake.Add("/sys/bus/pci/devices/0000:00:01.0/class = 0x060400");
  fake.Add("/sys/bus/pci/devices/0000:00:01.0/config bytes 4096 100:01000010 103:10");
  fake.Add(
      "/sys/class/kfd/kfd/topology/nodes/1/properties = gfx_target_version 90402\\nlocation_id "
      "99999999999999999999");
  fake.Add("/sys/class/kfd/kfd/topology/nodes/1/io_links/0/properties = type 11\\nnode_to 1");
  fake.Add("/sys/class/infiniband/x/ports/1/rate = nan");
  fake.Add("/sys/class/infiniband/x/ports/1/gids/0 = 0000:0000:0000:0000:0000:ffff:zz");
  fake.Add("/sys/class/net/y/speed = 99999999999");
  fake.Add("/sys/fs/cgroup/cpu.max = 5 0");
  fake.Add("/sys/devices/system/cpu/online = 0-99999999");
  const Machine machine = LookAtMachine(RootFs(fake.root()), Nothing());
  EXPECT_EQ(machine.gpus.size(), 1u);
  EXPECT_TRUE(machine.pairs.empty());
  EXPECT_EQ(machine.rdma[0].gbits, 0);
  EXPECT_EQ(machine.interfaces[0].gbits, 0);
  EXPECT_EQ(machine.cpu_quota, 0);
  const System system = LookAtSystem(RootFs(fake.root()), machine);
  ASSERT_TRUE(system.access_control.has_value());
  EXPECT_TRUE(system.access_control->empty());
}

TEST(CudaOfDriver, ByBranch) {
  EXPECT_EQ(CudaOfDriver("550.54.15"), "CUDA 12.4");
  EXPECT_EQ(CudaOfDriver("535.183.01"), "CUDA 12.2");
  EXPECT_EQ(CudaOfDriver("390.1"), "");
  EXPECT_EQ(CudaOfDriver(""), "");
}

// Below one switch, below two, at one root, on one node, across nodes.
TEST(PciPath, Distances) {
  FakeTree fake("");
  const auto device = [&](const std::string& name, const std::string& path, int node) {
    fake.Add("/sys/devices/" + path + "/" + name + "/numa_node = " + std::to_string(node));
    fake.Add("/sys/bus/pci/devices/" + name + " -> ../../../devices/" + path + "/" + name);
  };
  device("0000:05:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0", 0);
  device("0000:06:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:02.0", 0);
  device("0000:08:00.0",
         "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:03.0/0000:07:00.0/0000:07:01.0", 0);
  device("0000:20:00.0", "pci0000:00/0000:00:03.0", 0);
  device("0000:41:00.0", "pci0000:40/0000:40:01.0", 0);
  device("0000:81:00.0", "pci0000:80/0000:80:01.0", 1);
  const RootFs tree(fake.root());
  EXPECT_EQ(PciPath(tree, "0000:05:00.0", "0000:06:00.0"), "PIX");
  EXPECT_EQ(PciPath(tree, "0000:05:00.0", "0000:08:00.0"), "PXB");
  EXPECT_EQ(PciPath(tree, "0000:05:00.0", "0000:20:00.0"), "PHB");
  EXPECT_EQ(PciPath(tree, "0000:05:00.0", "0000:41:00.0"), "NODE");
  EXPECT_EQ(PciPath(tree, "0000:05:00.0", "0000:81:00.0"), "SYS");
  EXPECT_EQ(PciPath(tree, "0000:05:00.0", "0000:99:00.0"), "");
}

}  // namespace
}  // namespace diapason::host
