#include "watch/job_processes.h"

#include <gtest/gtest.h>

#include "host/fake_process.h"

namespace diapason::watch {
namespace {

using host::FakeRoot;

// A process with NCCL mapped; `environment` with '\0' after each variable.
void AddRank(const FakeRoot& fake, int pid, int parent, const std::string& environment,
             uint64_t start = 500) {
  host::AddProcess(fake, pid, "python3", parent, 2048, start);
  const std::string folder = Format("/proc/{}", pid);
  fake.Write(
      folder + "/maps",
      "7f0000000000-7f0000001000 r-xp 00000000 08:01 42    /opt/nccl/lib/libnccl.so.2.28.9\n");
  fake.Write(folder + "/environ", environment);
}

std::string Variables(std::initializer_list<std::string> variables) {
  std::string text;
  for (const std::string& one : variables) text += one + std::string(1, '\0');
  return text;
}

std::vector<pid_t> Pids(const std::vector<JobProcess>& processes) {
  std::vector<pid_t> pids;
  for (const JobProcess& process : processes) pids.push_back(process.pid);
  return pids;
}

TEST(JobProcesses, ReadsWhatIdentifiesARank) {
  const FakeRoot fake;
  AddRank(fake, 40, 7,
          Variables({"RANK=2", "WORLD_SIZE=4", "MASTER_ADDR=h", "MASTER_PORT=1",
                     "NCCL_RAS_ADDR=localhost:9"}));
  fake.Write("/proc/40/status", "Name:\tpython3\nNSpid:\t40\t12\t1\nVmRSS:\t4 kB\n");
  JobProcess process;
  ASSERT_TRUE(ReadJobProcess(fake.tree(), 40, &process));
  EXPECT_EQ(process.inner_pid, 1);
  EXPECT_EQ(process.rank, 2);
  EXPECT_EQ(process.world, 4);
  EXPECT_EQ(process.marks, "MASTER_ADDR=h MASTER_PORT=1");
  EXPECT_EQ(process.ras_address, "localhost:9");
  EXPECT_EQ(process.library, "/opt/nccl/lib/libnccl.so.2.28.9");
  EXPECT_EQ(StateOf(fake.tree(), 40, 500), 'S');
  EXPECT_EQ(StateOf(fake.tree(), 40, 501), 'X');
  EXPECT_EQ(StateOf(fake.tree(), 41, 500), 'X');
}

TEST(JobProcesses, AProcessWithoutTheLibraryIsNone) {
  const FakeRoot fake;
  host::AddProcess(fake, 40, "sleep");
  fake.Write("/proc/40/maps", "7f0000000000-7f0000001000 r-xp 00000000 08:01 42 /lib/libc.so.6\n");
  fake.Write("/proc/40/environ", Variables({"RANK=0"}));
  JobProcess process;
  EXPECT_FALSE(ReadJobProcess(fake.tree(), 40, &process));
  EXPECT_TRUE(LibraryProcesses(fake.tree()).empty());
}

TEST(JobProcesses, LaunchersAndWorkersAreNoRanks) {
  const FakeRoot fake;
  AddRank(fake, 30, 2, "", 100);  // torchrun imports torch as well
  AddRank(fake, 40, 30, Variables({"RANK=0", "MASTER_ADDR=h", "MASTER_PORT=1"}), 200);
  AddRank(fake, 41, 30, Variables({"RANK=1", "MASTER_ADDR=h", "MASTER_PORT=1"}), 201);
  AddRank(fake, 50, 40, Variables({"RANK=0", "MASTER_ADDR=h", "MASTER_PORT=1"}), 300);
  EXPECT_EQ(Pids(LibraryProcesses(fake.tree())), std::vector<pid_t>({40, 41}));
}

TEST(JobProcesses, JobsAreToldApart) {
  const FakeRoot fake;
  AddRank(fake, 40, 7, Variables({"RANK=0", "MASTER_ADDR=h", "MASTER_PORT=1"}));
  AddRank(fake, 41, 8, Variables({"RANK=1", "MASTER_ADDR=h", "MASTER_PORT=1"}));
  AddRank(fake, 42, 7, Variables({"RANK=0", "MASTER_ADDR=h", "MASTER_PORT=2"}));
  AddRank(fake, 43, 9, Variables({"SLURM_JOB_ID=5", "SLURM_STEP_ID=0", "SLURM_PROCID=0"}));
  AddRank(fake, 44, 10, Variables({"SLURM_JOB_ID=5", "SLURM_STEP_ID=1", "SLURM_PROCID=0"}));
  AddRank(fake, 45, 77, "");
  AddRank(fake, 46, 77, "");
  const auto jobs = SplitIntoJobs(LibraryProcesses(fake.tree()));
  ASSERT_EQ(jobs.size(), 5u);
  EXPECT_EQ(Pids(jobs[0]), std::vector<pid_t>({40, 41}));
  EXPECT_EQ(Pids(jobs[1]), std::vector<pid_t>({42}));
  EXPECT_EQ(Pids(jobs[4]), std::vector<pid_t>({45, 46}));
}

}  // namespace
}  // namespace diapason::watch
