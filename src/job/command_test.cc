#include "job/command.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/temporary_file.h"
#include "base/text.h"
#include "job/option_shapes.h"
#include "job/shell_text.h"

namespace diapason::job {
namespace {

std::vector<std::string> Words(const std::string& line) {
  // As a shell splits it: quotes are kept together.
  std::vector<std::string> words;
  const std::vector<std::vector<ShellTextWord>> commands = SimpleCommands(line);
  for (const std::vector<ShellTextWord>& command : commands) {
    for (const ShellTextWord& word : command) words.push_back(word.text);
  }
  return words;
}

JobCommand Read(const std::string& line, const std::string& version = "mpirun (Open MPI) 4.1.4") {
  ReadOptions options;
  options.version = [version](const std::string&) { return version; };
  return ReadCommand(Words(line), options);
}

struct Line {
  const char* line;
  Launcher launcher;
  const char* program;  // the ranks' program with its arguments
  int hosts = 0;
};

TEST(CommandTest, LaunchersAndWhereTheirOptionsEnd) {
  const Line kLines[] = {
      {"./train --steps 3", Launcher::kNone, "./train --steps 3"},
      {"python3 -u train.py -x 1", Launcher::kNone, "python3 -u train.py -x 1"},
      {"mpirun -n 4 ./a -x B", Launcher::kOpenMpi, "./a -x B"},
      {"/usr/bin/mpirun -np 8 --bind-to core --map-by ppr:8:node -x PATH -x A=1 ./a",
       Launcher::kOpenMpi, "./a"},
      {"mpirun --allow-run-as-root --oversubscribe -np 2 python3 train.py", Launcher::kOpenMpi,
       "python3 train.py"},
      {"mpirun --mca btl tcp,self --mca pml ob1 -H n1:8,n2:8,n1:8 -n 16 ./a", Launcher::kOpenMpi,
       "./a", 2},
      {"mpirun --host=n1 -n 2 ./a", Launcher::kOpenMpi, "./a", 1},
      {"mpirun -np 2 -- ./a", Launcher::kOpenMpi, "./a"},
      {"orterun -c 2 --output-filename out ./a", Launcher::kOpenMpi, "./a"},
      {"mpirun", Launcher::kOpenMpi, ""},
      {"mpiexec.hydra -n 4 -ppn 2 -hosts a,b -genv A 1 ./a", Launcher::kHydra, "./a", 2},
      {"srun ./a", Launcher::kSrun, "./a"},
      {"srun -N 2 -n 16 --gpus-per-node=8 ./train.sh -N 3", Launcher::kSrun, "./train.sh -N 3", 2},
      {"srun -N2 -n16 -lu ./a", Launcher::kSrun, "./a", 2},
      {"srun --nodes=1-4 --export ALL,A=1 --mpi pmix ./a", Launcher::kSrun, "./a", 4},
      {"srun --exclusive --label --kill-on-bad-exit=1 --cpu-bind none ./a", Launcher::kSrun, "./a"},
      {"srun --container-image=nvcr.io#x --container-mounts=/a:/b --no-container-mount-home ./a",
       Launcher::kSrun, "./a"},
      {"srun -p gpu -A acct -t 10:00 -J name -o out.%j bash -c 'echo a'", Launcher::kSrun,
       "bash -c echo a"},
      {"srun -N2 torchrun --nnodes 2 train.py", Launcher::kSrun, "torchrun --nnodes 2 train.py", 2},
      {"torchrun --nproc-per-node 8 train.py --lr 3", Launcher::kTorchrun, "train.py --lr 3", 1},
      {"torchrun --nproc_per_node=8 --nnodes=1:4 --standalone -m pkg.train --x",
       Launcher::kTorchrun, "pkg.train --x", 4},
      {"torchrun --no-python --nproc-per-node 2 ./a", Launcher::kTorchrun, "./a", 1},
      {"torchrun -r 3 -t 3 --rdzv-backend c10d --rdzv-endpoint h:1 --nnodes 2 t.py",
       Launcher::kTorchrun, "t.py", 2},
      {"python -m torch.distributed.run --nproc_per_node 4 t.py", Launcher::kTorchrun, "t.py", 1},
      {"python3.11 -u -X dev -m torch.distributed.launch --use_env t.py", Launcher::kTorchrun,
       "t.py", 1},
      {"python -m pkg.train --nnodes 3", Launcher::kNone, "python -m pkg.train --nnodes 3"},
      {"python -c 'import torch'", Launcher::kNone, "python -c import torch"},
      {"deepspeed --hostfile /none --num_gpus 4 train.py --deepspeed c.json", Launcher::kDeepspeed,
       "train.py --deepspeed c.json", 1},
      {"deepspeed --num_nodes 2 --no_local_rank train.py", Launcher::kDeepspeed, "train.py", 2},
      {"accelerate launch --multi_gpu --num_processes 8 --num_machines 2 train.py",
       Launcher::kAccelerate, "train.py", 2},
      {"accelerate config", Launcher::kNone, "accelerate config"},
      {"diapason launch -n 4 --prefix --env A=1 -- ./a", Launcher::kDiapason, "./a", 1},
      {"docker run --rm --gpus all -e A=1 -v /x:/y image ./a", Launcher::kContainer, "image ./a",
       1},
      {"podman exec -it name ./a", Launcher::kContainer, "name ./a", 1},
      {"ssh host ./a", Launcher::kSsh, ""},
      {"sbatch job.sh", Launcher::kBatch, ""},
  };
  for (const Line& one : kLines) {
    const JobCommand read = Read(one.line);
    EXPECT_EQ(LauncherName(read.launcher), LauncherName(one.launcher)) << one.line;
    EXPECT_EQ(Join(read.Program(), " "), one.program) << one.line;
    EXPECT_EQ(read.hosts, one.hosts) << one.line;
    EXPECT_TRUE(read.prefixes.empty()) << one.line;
  }
}

TEST(CommandTest, Prefixes) {
  const struct {
    const char* line;
    const char* prefixes;
    const char* first;
    const char* program;
  } kLines[] = {
      {"env A=1 B=2 mpirun -n 2 ./a", "env", "mpirun", "./a"},
      {"env -u LD_PRELOAD A=1 torchrun t.py", "env", "torchrun", "t.py"},
      {"nice srun ./a", "nice", "srun", "./a"},
      {"nice -n 5 srun ./a", "nice", "srun", "./a"},
      {"nice -n5 ionice -c 2 -n 0 srun ./a", "nice,ionice", "srun", "./a"},
      {"nice -5 --adjustment=3 srun ./a", "nice", "srun", "./a"},
      {"timeout 60 mpirun ./a", "timeout", "mpirun", "./a"},
      {"timeout -s INT -k 5 1h nohup mpirun ./a", "timeout,nohup", "mpirun", "./a"},
      {"timeout --signal=INT --foreground 60 ./a -n 3", "timeout", "./a", "./a -n 3"},
      {"numactl --cpunodebind=0 --membind 0 mpirun ./a", "numactl", "mpirun", "./a"},
      {"numactl -N 0 -m 0 -l ./a", "numactl", "./a", "./a"},
      {"numactl -C0-3 -- ./a", "numactl", "./a", "./a"},
      {"taskset -c 0-3 ./a", "taskset", "./a", "./a"},
      {"taskset 0xf ./a -c 1", "taskset", "./a", "./a -c 1"},
      {"chrt -f 5 ./a", "chrt", "./a", "./a"},
      {"stdbuf -oL -e 0 setsid -w ./a", "stdbuf,setsid", "./a", "./a"},
      {"/usr/bin/time -v -o t.txt ./a", "time", "./a", "./a"},
      {"strace -f -o trace mpirun ./a", "strace", "mpirun", "./a"},
      {"salloc -N 2 -p gpu srun ./a", "salloc", "srun", "./a"},
      {"sudo -u me -E A=1 ./a", "sudo", "./a", "./a"},
      {"A=1 B=2 mpirun ./a", "", "mpirun", "./a"},
      {"env", "env", "", ""},
      {"timeout", "timeout", "", ""},
  };
  for (const auto& one : kLines) {
    const JobCommand read = Read(one.line);
    std::vector<std::string> prefixes;
    for (const CommandPart& prefix : read.prefixes) prefixes.push_back(prefix.name);
    EXPECT_EQ(Join(prefixes, ","), one.prefixes) << one.line;
    EXPECT_EQ(read.first.name, BaseName(one.first)) << one.line;
    EXPECT_EQ(Join(read.Program(), " "), one.program) << one.line;
  }
  EXPECT_EQ(Read("salloc -N 2 srun ./a").hosts, 2);
  EXPECT_TRUE(Read("env -i A=1 ./a").clears);
  EXPECT_TRUE(Read("sudo ./a").clears);
  // An option that splits its word is not read; the launcher behind it is named.
  EXPECT_EQ(Read("env -S 'A=1 x' mpirun ./a").hidden, "mpirun");
}

TEST(CommandTest, MpirunSaysWhoseItIs) {
  const char* line = "mpirun -n 2 -hosts a,b ./a";
  EXPECT_EQ(Read(line, "mpirun (Open MPI) 5.0.2").launcher, Launcher::kOpenMpi);
  EXPECT_EQ(Read(line, "HYDRA build details: Version: 4.1").launcher, Launcher::kHydra);
  EXPECT_EQ(Read(line, "Intel(R) MPI Library for Linux* OS").launcher, Launcher::kHydra);
  // It says nothing: by its options.
  EXPECT_EQ(Read(line, "").launcher, Launcher::kHydra);
  EXPECT_EQ(Read("mpirun -n 2 ./a", "").launcher, Launcher::kOpenMpi);
  // By its name alone, without asking.
  EXPECT_EQ(Read("mpirun.openmpi ./a", "HYDRA").launcher, Launcher::kOpenMpi);
}

TEST(CommandTest, VariablesThatTheCommandSets) {
  const auto set = [](const std::string& line) {
    std::vector<std::string> texts;
    for (const CommandVariable& one : Read(line).variables) {
      texts.push_back(one.removed ? "-" + one.name : one.name + "=" + one.value);
    }
    return Join(texts, " ");
  };
  EXPECT_EQ(set("env A=1 -u B mpirun ./a"), "A=1");
  EXPECT_EQ(set("env -u B --unset=C A=1 mpirun -x D=2 -x E ./a X=3"), "-B -C A=1 D=2");
  EXPECT_EQ(set("mpiexec.hydra -genv A 1 -env B 2 ./a"), "A=1 B=2");
  EXPECT_EQ(set("srun --export=ALL,A=1,B ./a"), "A=1");
  EXPECT_EQ(set("docker run -e A=1 --env B=2 -e C image"), "A=1 B=2");
  EXPECT_EQ(set("./a B=2"), "");
}

TEST(CommandTest, HostsOfAFileAndOfAnAllocation) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/hosts";
  std::ofstream(file) << "n1 slots=8\n# n3\nn2:8\n";
  EXPECT_EQ(Read("mpirun --hostfile " + file + " ./a").hosts, 2);
  EXPECT_EQ(Read("mpirun --hostfile /none ./a").hosts, 0);
  EXPECT_EQ(Read("deepspeed --hostfile=" + file + " t.py").hosts, 2);
  const MapEnvironment allocation(std::map<std::string, std::string>{{"SLURM_JOB_NUM_NODES", "3"}});
  ReadOptions options;
  options.environment = &allocation;
  EXPECT_EQ(ReadCommand({"srun", "./a"}, options).hosts, 3);
  EXPECT_EQ(ReadCommand({"srun", "-N1", "./a"}, options).hosts, 1);
  EXPECT_EQ(ReadCommand({"torchrun", "t.py"}, options).hosts, 1);
}

TEST(CommandTest, ShellTexts) {
  const JobCommand read =
      ReadCommand({"bash", "-euo", "pipefail", "-c", "cd /x && A=1 mpirun -n 2 ./a | tee log"});
  ASSERT_EQ(read.inner.size(), 3U);
  EXPECT_EQ(read.text, 4U);
  EXPECT_EQ(read.Starting().first.name, "mpirun");
  EXPECT_EQ(Join(read.Program(), " "), "./a");
  EXPECT_EQ(ReadCommand({"sh", "-lc", "srun ./a"}).Starting().launcher, Launcher::kSrun);
  EXPECT_EQ(ReadCommand({"sh", "-c", "sh -c 'srun ./a'"}).Starting().launcher, Launcher::kSrun);
  // A script is a program like any other.
  EXPECT_TRUE(ReadCommand({"bash", "-x", "job.sh", "-c"}).inner.empty());
  EXPECT_EQ(Read("wrapper --x mpirun ./a").hidden, "mpirun");
}

TEST(CommandTest, AsksTheRealMpirun) {
  // Whether there is one or not: it never fails.
  const JobCommand read = ReadCommand({"mpirun", "-n", "2", "./a"});
  EXPECT_NE(read.launcher, Launcher::kNone);
  EXPECT_EQ(ReadCommand({"/nonexistent/mpirun", "./a"}).launcher, Launcher::kOpenMpi);
}

}  // namespace
}  // namespace diapason::job
