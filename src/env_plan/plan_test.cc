#include "env_plan/plan.h"

#include <gtest/gtest.h>

#include <set>

#include "env_plan/render.h"

namespace diapason::env_plan {
namespace {

// Two sockets of four cores with two threads each; four GPUs, two near each.
host::Machine TwoSockets(host::Vendor vendor = host::Vendor::kNvidia) {
  host::Machine machine;
  machine.numa = {{0, "0-3,8-11", 1}, {1, "4-7,12-15", 1}};
  for (int cpu = 0; cpu < 16; ++cpu) machine.allowed_cpus.push_back(cpu);
  for (int i = 0; i < 4; ++i) {
    host::Gpu gpu;
    gpu.index = i;
    gpu.vendor = vendor;
    gpu.numa_node = i / 2;
    machine.gpus.push_back(gpu);
  }
  return machine;
}
CoreOf Siblings() {
  CoreOf cores;
  for (int cpu = 0; cpu < 16; ++cpu) cores[cpu] = cpu % 8;
  return cores;
}
host::RdmaPort Port(const std::string& device, double gbits, const std::string& layer,
                    int gid = -1) {
  host::RdmaPort port;
  port.device = device;
  port.state = "ACTIVE";
  port.link_layer = layer;
  port.gbits = gbits;
  port.rocev2_ipv4_gid = gid;
  return port;
}
const PlannedSetting* Find(const EnvPlan& plan, const std::string& name) {
  for (const PlannedSetting& setting : plan.settings) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}
const LeftOutSetting* FindLeftOut(const EnvPlan& plan, const std::string& name) {
  for (const LeftOutSetting& setting : plan.left_out) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}
EnvPlan Make(PlanGoal goal, const host::Machine& machine, Library library = Library::kNccl,
             int version = 22809) {
  return MakePlan({goal, library, version, 0}, machine, Siblings(), knobs::Catalogue::BuiltIn());
}

TEST(Placement, SplitsTheCoresNearAGpuAmongItsRanks) {
  std::vector<std::string> notes;
  const std::vector<RankBinding> places = PlaceRanks(TwoSockets(), Siblings(), 4, &notes);
  ASSERT_EQ(places.size(), 4u);
  EXPECT_EQ(places[0].cpus, (std::vector<int>{0, 1, 8, 9}));  // two whole cores
  EXPECT_EQ(places[1].cpus, (std::vector<int>{2, 3, 10, 11}));
  EXPECT_EQ(places[2].cpus, (std::vector<int>{4, 5, 12, 13}));
  EXPECT_EQ(places[3].node, 1);
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(NumactlPrefix(places[0]), "numactl --physcpubind=0-1,8-9 --membind=0");
  EXPECT_EQ(TasksetPrefix(places[0]), "taskset -c 0-1,8-9");
  EXPECT_EQ(CpuMask(places[0].cpus), "0x303");
}

TEST(Placement, AWholeNodeGoesByItsName) {
  std::vector<std::string> notes;
  host::Machine machine = TwoSockets();
  machine.gpus.erase(machine.gpus.begin() + 1);
  const std::vector<RankBinding> places = PlaceRanks(machine, Siblings(), 1, &notes);
  EXPECT_EQ(NumactlPrefix(places[0]), "numactl --cpunodebind=0 --membind=0");
}

TEST(Placement, NeverLeavesTheCpusThatMayBeUsed) {
  host::Machine machine = TwoSockets();
  machine.allowed_cpus = {1, 2, 3, 9, 12};
  for (const int ranks : {1, 2, 3, 4, 7, 64}) {
    std::vector<std::string> notes;
    for (const RankBinding& place : PlaceRanks(machine, Siblings(), ranks, &notes)) {
      EXPECT_FALSE(place.cpus.empty());
      for (const int cpu : place.cpus) {
        EXPECT_TRUE((std::set<int>{1, 2, 3, 9, 12}.count(cpu) > 0)) << ranks << " " << cpu;
      }
    }
    EXPECT_EQ(notes.empty(), ranks <= 3) << ranks;
  }
}

TEST(Placement, RanksWithoutGpusAreDealtToTheNodes) {
  host::Machine machine = TwoSockets();
  machine.gpus.clear();
  std::vector<std::string> notes;
  const std::vector<RankBinding> places = PlaceRanks(machine, Siblings(), 2, &notes);
  EXPECT_EQ(places[0].node, 0);
  EXPECT_EQ(places[1].node, 1);
  EXPECT_TRUE(PlaceRanks(host::Machine(), {}, 4, &notes).empty());
}

TEST(Placement, KnowsTheUsualOrderOfThreadsWhereTheKernelIsSilent) {
  host::Machine machine = TwoSockets();
  machine.cores = 8;
  machine.threads = 16;
  std::vector<std::string> notes;
  EXPECT_EQ(PlaceRanks(machine, {}, 4, &notes)[0].cpus, (std::vector<int>{0, 1, 8, 9}));
}

TEST(Placement, SaysWhenTheMachineIsSilentAboutItsGpus) {
  host::Machine machine = TwoSockets();
  for (host::Gpu& gpu : machine.gpus) gpu.numa_node = -1;
  std::vector<std::string> notes;
  EXPECT_EQ(PlaceRanks(machine, Siblings(), 4, &notes).size(), 4u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("does not say"), std::string::npos);
}

TEST(EnvPlan, GoalsSetWhatTheyAreFor) {
  const EnvPlan latency = Make(PlanGoal::kLatency, TwoSockets());
  ASSERT_NE(Find(latency, "NCCL_PROGRESS_APPENDOP_FREQ"), nullptr);
  EXPECT_EQ(Find(latency, "NCCL_PROGRESS_APPENDOP_FREQ")->value, "1");
  EXPECT_EQ(Find(latency, "NCCL_PROXY_APPEND_BATCH_SIZE")->value, "4");
  // Copies by the proxy are off by default.
  EXPECT_EQ(Find(latency, "NCCL_P2P_USE_CUDA_MEMCPY"), nullptr);
  ASSERT_NE(FindLeftOut(latency, "NCCL_P2P_USE_CUDA_MEMCPY"), nullptr);
  EXPECT_TRUE(FindLeftOut(latency, "NCCL_P2P_USE_CUDA_MEMCPY")->is_default);
  const EnvPlan throughput = Make(PlanGoal::kThroughput, TwoSockets());
  EXPECT_EQ(Find(throughput, "NCCL_PROGRESS_APPENDOP_FREQ")->value, "16");
  EXPECT_EQ(Find(throughput, "NCCL_PROXY_APPEND_BATCH_SIZE")->value, "32");
  const EnvPlan cpu = Make(PlanGoal::kCpu, TwoSockets());
  EXPECT_EQ(Find(cpu, "NCCL_PROXY_APPEND_BATCH_SIZE")->value, "64");
  const EnvPlan balanced = Make(PlanGoal::kBalanced, TwoSockets());
  EXPECT_TRUE(balanced.settings.empty());
  EXPECT_NE(PlanText(balanced).find("nothing to set"), std::string::npos);
}

TEST(EnvPlan, WhatTheVersionDoesNotReadIsLeftOut) {
  const EnvPlan gone = Make(PlanGoal::kLatency, TwoSockets(), Library::kNccl, 23007);
  ASSERT_NE(FindLeftOut(gone, "NCCL_SHM_USE_CUDA_MEMCPY"), nullptr);
  EXPECT_FALSE(FindLeftOut(gone, "NCCL_SHM_USE_CUDA_MEMCPY")->is_default);
  EXPECT_NE(FindLeftOut(gone, "NCCL_SHM_USE_CUDA_MEMCPY")->why.find("2.30.7 does not read it"),
            std::string::npos);
  const EnvPlan old = Make(PlanGoal::kLatency, TwoSockets(), Library::kNccl, 20800);
  EXPECT_EQ(Find(old, "NCCL_PROGRESS_APPENDOP_FREQ"), nullptr);
  EXPECT_NE(FindLeftOut(old, "NCCL_PROGRESS_APPENDOP_FREQ"), nullptr);
  // Timestamps came with 2.26.
  EXPECT_EQ(Find(Make(PlanGoal::kDebug, TwoSockets(), Library::kNccl, 22105),
                 "NCCL_DEBUG_TIMESTAMP_LEVELS"),
            nullptr);
  EXPECT_NE(Find(Make(PlanGoal::kDebug, TwoSockets()), "NCCL_DEBUG_TIMESTAMP_LEVELS"), nullptr);
}

TEST(EnvPlan, RailsAreTheFastestPortsOfOneKind) {
  host::Machine machine = TwoSockets();
  machine.rdma = {Port("mlx5_0", 400, "InfiniBand"), Port("mlx5_1", 400, "InfiniBand"),
                  Port("mlx5_bond_0", 100, "Ethernet", 3)};
  machine.rdma.push_back(Port("mlx5_9", 400, "InfiniBand"));
  machine.rdma.back().state = "DOWN";
  const EnvPlan plan = Make(PlanGoal::kBalanced, machine);
  ASSERT_NE(Find(plan, "NCCL_IB_HCA"), nullptr);
  EXPECT_EQ(Find(plan, "NCCL_IB_HCA")->value, "=mlx5_0,mlx5_1");
  EXPECT_EQ(Find(plan, "NCCL_IB_TC"), nullptr);
}

TEST(EnvPlan, PortsAreNotNamedWhereAutomaticTakesTheSame) {
  host::Machine machine = TwoSockets();
  machine.rdma = {Port("mlx5_0", 400, "InfiniBand"), Port("mlx5_1", 400, "InfiniBand"),
                  Port("mlx5_2", 400, "InfiniBand")};
  EXPECT_EQ(PlanText(Make(PlanGoal::kBalanced, machine)).find("down"), std::string::npos);
  machine.rdma[1].state = "DOWN";
  const EnvPlan plan = Make(PlanGoal::kBalanced, machine);
  EXPECT_EQ(Find(plan, "NCCL_IB_HCA"), nullptr);
  ASSERT_NE(FindLeftOut(plan, "NCCL_IB_HCA"), nullptr);
  EXPECT_TRUE(FindLeftOut(plan, "NCCL_IB_HCA")->is_default);
  EXPECT_NE(FindLeftOut(plan, "NCCL_IB_HCA")->why.find("mlx5_0, mlx5_2"), std::string::npos);
  // But the user must be told.
  EXPECT_NE(PlanText(plan).find("port mlx5_1 is down"), std::string::npos);
}

TEST(EnvPlan, TheGidIndexIsSetOnlyWhereTheLibraryDoesNotLookForIt) {
  host::Machine machine = TwoSockets();
  machine.rdma = {Port("mlx5_0", 200, "Ethernet", 5), Port("mlx5_1", 200, "Ethernet", 5)};
  const EnvPlan now = Make(PlanGoal::kBalanced, machine);
  EXPECT_EQ(Find(now, "NCCL_IB_GID_INDEX"), nullptr);
  ASSERT_NE(FindLeftOut(now, "NCCL_IB_GID_INDEX"), nullptr);
  EXPECT_NE(FindLeftOut(now, "NCCL_IB_GID_INDEX")->why.find("mlx5_0 5"), std::string::npos);
  const EnvPlan before = Make(PlanGoal::kBalanced, machine, Library::kNccl, 22005);
  ASSERT_NE(Find(before, "NCCL_IB_GID_INDEX"), nullptr);
  EXPECT_EQ(Find(before, "NCCL_IB_GID_INDEX")->value, "5");
  machine.rdma[1].rocev2_ipv4_gid = 3;
  EXPECT_EQ(Find(Make(PlanGoal::kBalanced, machine, Library::kNccl, 22005), "NCCL_IB_GID_INDEX"),
            nullptr);
}

TEST(EnvPlan, InterfacesAreNamedWhereVirtualOnesAreInTheWay) {
  host::Machine machine = TwoSockets();
  machine.interfaces = {{"lo", true, 0, 65536, true, -1}, {"ens1", true, 100, 9000, false, 0}};
  EXPECT_EQ(Find(Make(PlanGoal::kBalanced, machine), "NCCL_SOCKET_IFNAME"), nullptr);
  machine.interfaces.push_back({"veth12", true, 0, 1500, true, -1});
  EXPECT_EQ(Find(Make(PlanGoal::kBalanced, machine), "NCCL_SOCKET_IFNAME")->value, "=ens1");
}

TEST(EnvPlan, CloudsWithoutRdmaGetMoreSocketsUnlessTheLibraryKnowsThem) {
  host::Machine machine = TwoSockets();
  machine.cloud = "azure";
  machine.interfaces = {{"eth0", true, 50, 1500, false, 0}};
  EXPECT_EQ(Find(Make(PlanGoal::kThroughput, machine), "NCCL_SOCKET_NTHREADS")->value, "4");
  EXPECT_EQ(Find(Make(PlanGoal::kLatency, machine), "NCCL_SOCKET_NTHREADS"), nullptr);
  machine.cloud = "aws";
  EXPECT_EQ(Find(Make(PlanGoal::kThroughput, machine), "NCCL_SOCKET_NTHREADS"), nullptr);
}

TEST(EnvPlan, ShellOutputIsSafeToSource) {
  EnvPlan plan = Make(PlanGoal::kLatency, TwoSockets());
  plan.settings.push_back({"X", "a b'; rm -rf /", "why", ""});
  const std::string shell = PlanShell(plan);
  EXPECT_NE(shell.find("export X='a b'\\''; rm -rf /'\n"), std::string::npos);
  // Nothing but comments, empty lines and export lines.
  size_t begin = 0;
  while (begin < shell.size()) {
    const size_t end = shell.find('\n', begin);
    const std::string line = shell.substr(begin, end - begin);
    EXPECT_TRUE(line.empty() || line[0] == '#' || line.rfind("export ", 0) == 0) << line;
    begin = end + 1;
  }
}

TEST(EnvPlan, SlurmCarriesOnlyWhatItsOptionCan) {
  host::Machine machine = TwoSockets();
  machine.rdma = {Port("mlx5_0", 400, "InfiniBand"), Port("mlx5_1", 400, "InfiniBand"),
                  Port("mlx5_2", 100, "Ethernet", 3)};
  const std::string slurm = PlanSlurm(Make(PlanGoal::kLatency, machine));
  EXPECT_NE(slurm.find("#SBATCH --export=ALL,NCCL_PROGRESS_APPENDOP_FREQ=1,"
                       "NCCL_PROXY_APPEND_BATCH_SIZE=4\n"),
            std::string::npos);
  EXPECT_NE(slurm.find("export NCCL_IB_HCA='=mlx5_0,mlx5_1'\n"), std::string::npos);
  EXPECT_NE(slurm.find("--cpu-bind=mask_cpu:0x303,0xc0c,0x3030,0xc0c0"), std::string::npos);
}

TEST(EnvPlan, SlurmTakesTheWholeNodeThatTheMasksName) {
  PlanRequest request{PlanGoal::kBalanced, Library::kNccl, 22809, 2};
  host::Machine machine = TwoSockets();
  const std::string slurm =
      PlanSlurm(MakePlan(request, machine, Siblings(), knobs::Catalogue::BuiltIn()));
  EXPECT_NE(slurm.find("#SBATCH --exclusive\n"), std::string::npos);
  EXPECT_NE(slurm.find("#SBATCH --gpus-per-node=4\n"), std::string::npos);
  // sbatch reads its lines up to the first command.
  EXPECT_LT(slurm.find("#SBATCH --exclusive\n"), slurm.find("srun"));
  const std::string unknown =
      PlanSlurm(MakePlan(request, host::Machine(), {}, knobs::Catalogue::BuiltIn()));
  EXPECT_EQ(unknown.find("#SBATCH --exclusive"), std::string::npos);
  EXPECT_EQ(unknown.find("--gpus-per-node"), std::string::npos);
}

TEST(EnvPlan, DockerHasTheHostsNetworkAndPlacesRanks) {
  const EnvPlan plan = Make(PlanGoal::kLatency, TwoSockets());
  const std::string docker = PlanDocker(plan);
  EXPECT_NE(docker.find("  --network=host \\\n"), std::string::npos);
  EXPECT_EQ(docker.find("--ipc"), std::string::npos);
  EXPECT_NE(docker.find("\n# " + WrapperLine(plan.places) + " COMMAND\n"), std::string::npos);
  EXPECT_NE(docker.find("  --cap-add=SYS_NICE \\\n"), std::string::npos);
  EXPECT_EQ(PlanDocker(Make(PlanGoal::kLatency, host::Machine())).find("SYS_NICE"),
            std::string::npos);
}

TEST(EnvPlan, DebugSaysWhereTheDumpGoes) {
  const EnvPlan plan = Make(PlanGoal::kDebug, TwoSockets());
  ASSERT_EQ(plan.steps.size(), 3u);
  EXPECT_NE(plan.steps[1].find("stdbuf -oL"), std::string::npos);
  EXPECT_NE(plan.steps[1].find("diapason proxy dump PID --fill"), std::string::npos);
}

}  // namespace
}  // namespace diapason::env_plan
