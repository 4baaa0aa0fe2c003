#include "job/hand_over.h"

#include <gtest/gtest.h>

#include <map>

#include "base/text.h"

namespace diapason::job {
namespace {

const std::vector<RankVariable> kTwo = {{"NCCL_TUNER_PLUGIN", "/p/x.so"},
                                        {"DIAPASON_MODE", "learn"}};
const std::vector<RankPath> kPaths = {{"/p/x.so", false}, {"/j", true}};

HandedOver Hand(std::vector<std::string> words,
                const std::map<std::string, std::string>& environment = {}) {
  ReadOptions options;
  options.version = [](const std::string&) { return std::string("Open MPI"); };
  return HandOver(ReadCommand(std::move(words), options), kTwo, kPaths,
                  MapEnvironment(environment));
}

std::string Text(std::vector<std::string> words,
                 const std::map<std::string, std::string>& environment = {}) {
  return Join(Hand(std::move(words), environment).words, " ");
}

std::string Ids(const HandedOver& handed, Severity severity) {
  std::vector<std::string> ids;
  for (const Finding& one : handed.findings) {
    if (one.severity == severity) ids.push_back(one.id);
  }
  return Join(ids, " ");
}

TEST(HandOverTest, InheritedEnvironment) {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"./a", "-x"},
                                             {"torchrun", "t.py"},
                                             {"accelerate", "launch", "t.py"},
                                             {"env", "A=1", "nice", "python3", "t.py"},
                                             {"srun", "./a"},
                                             {"srun", "--export=ALL,A=1", "./a"},
                                             {"diapason", "launch", "-n", "2", "--", "./a"}}) {
    const HandedOver handed = Hand(words);
    EXPECT_EQ(handed.words, words);
    EXPECT_TRUE(handed.findings.empty()) << words[0];
    EXPECT_EQ(handed.environment.at("DIAPASON_MODE"), "learn");
    EXPECT_EQ(handed.environment.at("NCCL_TUNER_PLUGIN"), "/p/x.so");
  }
}

TEST(HandOverTest, OpenMpi) {
  const std::string ours = "-x NCCL_TUNER_PLUGIN -x DIAPASON_MODE";
  EXPECT_EQ(Text({"mpirun", "-n", "2", "./a"}), "mpirun " + ours + " -n 2 ./a");
  EXPECT_EQ(Text({"timeout", "60", "mpirun", "./a"}), "timeout 60 mpirun " + ours + " ./a");
  EXPECT_EQ(Text({"mpirun", "-x", "DIAPASON_MODE", "./a"}),
            "mpirun -x NCCL_TUNER_PLUGIN -x DIAPASON_MODE ./a");
  EXPECT_EQ(Text({"mpirun", "-n", "1", "./a", ":", "-n", "1", "./b"}),
            "mpirun " + ours + " -n 1 ./a : " + ours + " -n 1 ./b");
  EXPECT_EQ(Hand({"mpirun", "./a"}).way, "mpirun -x");
  // Open MPI refuses -x beside its other way.
  EXPECT_EQ(Text({"mpirun", "--mca", "mca_base_env_list", "A;B=1", "./a"}),
            "mpirun --mca mca_base_env_list A;B=1;NCCL_TUNER_PLUGIN;DIAPASON_MODE ./a");
  const HandedOver listed = Hand({"mpirun", "./a"}, {{"OMPI_MCA_mca_base_env_list", "A"}});
  EXPECT_EQ(Join(listed.words, " "), "mpirun ./a");
  EXPECT_EQ(listed.environment.at("OMPI_MCA_mca_base_env_list"),
            "A;NCCL_TUNER_PLUGIN;DIAPASON_MODE");
}

TEST(HandOverTest, Hydra) {
  EXPECT_EQ(Text({"mpiexec.hydra", "-n", "2", "./a"}),
            "mpiexec.hydra -genv NCCL_TUNER_PLUGIN /p/x.so -genv DIAPASON_MODE learn -n 2 ./a");
}

TEST(HandOverTest, PasswordsAreOnNoCommandLine) {
  const std::vector<RankVariable> store = {{"DIAPASON_STORE", "redis://user:word@host"}};
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"mpiexec.hydra", "./a"},
                                             {"env", "-i", "./a"},
                                             {"mpirun.openmpi", "./a"},
                                             {"srun", "--export=NONE", "./a"}}) {
    const HandedOver handed = HandOver(ReadCommand(words), store, {},
                                       MapEnvironment(std::map<std::string, std::string>{}));
    EXPECT_EQ(Join(handed.words, " ").find("word"), std::string::npos) << words[0];
    EXPECT_EQ(handed.environment.at("DIAPASON_STORE"), "redis://user:word@host");
  }
}

TEST(HandOverTest, Slurm) {
  const std::string names = "NCCL_TUNER_PLUGIN,DIAPASON_MODE";
  EXPECT_EQ(Text({"srun", "--export=NONE", "./a"}), "srun --export=" + names + " ./a");
  EXPECT_EQ(Text({"srun", "--export", "A,B=1", "./a"}), "srun --export A,B=1," + names + " ./a");
  EXPECT_EQ(Text({"srun", "--export=A,DIAPASON_MODE", "./a"}),
            "srun --export=A,DIAPASON_MODE,NCCL_TUNER_PLUGIN ./a");
  // As sbatch --export=NONE leaves it.
  EXPECT_EQ(Text({"srun", "./a"}, {{"SLURM_EXPORT_ENV", "NONE"}}),
            "srun --export=" + names + " ./a");
  EXPECT_EQ(Text({"srun", "--export=ALL", "./a"}, {{"SLURM_EXPORT_ENV", "NONE"}}),
            "srun --export=ALL ./a");
  EXPECT_EQ(Ids(Hand({"srun", "--export=NIL", "./a"}), Severity::kNote), "job.export");
  // Only srun's own options count.
  EXPECT_EQ(Text({"srun", "./a", "--export=NONE"}), "srun ./a --export=NONE");
}

TEST(HandOverTest, SlurmContainers) {
  EXPECT_EQ(Text({"srun", "--container-image=i", "./a"}),
            "srun --container-env=NCCL_TUNER_PLUGIN,DIAPASON_MODE "
            "--container-mounts=/p:/p:ro,/j:/j --container-image=i ./a");
  EXPECT_EQ(Text({"srun", "--container-image", "i", "--container-env=A", "--container-mounts",
                  "/p:/p,/x:/j", "./a"}),
            "srun --container-image i --container-env=A,NCCL_TUNER_PLUGIN,DIAPASON_MODE "
            "--container-mounts /p:/p,/x:/j,/j:/j ./a");
}

TEST(HandOverTest, Containers) {
  EXPECT_EQ(Text({"docker", "run", "--rm", "image", "./a"}),
            "docker run -e NCCL_TUNER_PLUGIN -e DIAPASON_MODE -v /p:/p:ro -v /j:/j --rm image ./a");
  const HandedOver running = Hand({"podman", "exec", "name", "./a"});
  EXPECT_EQ(Join(running.words, " "), "podman exec -e NCCL_TUNER_PLUGIN -e DIAPASON_MODE name ./a");
  EXPECT_EQ(Ids(running, Severity::kWarning), "job.unsure");
}

TEST(HandOverTest, PrefixesThatDropVariables) {
  const std::string ours = "NCCL_TUNER_PLUGIN=/p/x.so DIAPASON_MODE=learn";
  EXPECT_EQ(Text({"env", "-i", "A=1", "./a"}), "env -i A=1 " + ours + " ./a");
  EXPECT_EQ(Text({"env", "-u", "DIAPASON_MODE", "./a"}), "env -u DIAPASON_MODE " + ours + " ./a");
  EXPECT_EQ(Text({"env", "-u", "OTHER", "./a"}), "env -u OTHER ./a");
  const HandedOver root = Hand({"sudo", "./a"});
  EXPECT_EQ(Join(root.words, " "), "sudo " + ours + " ./a");
  EXPECT_EQ(Ids(root, Severity::kWarning), "job.unsure");
}

TEST(HandOverTest, ShellTexts) {
  const std::string ours = "-x NCCL_TUNER_PLUGIN -x DIAPASON_MODE";
  EXPECT_EQ(Hand({"bash", "-c", "cd x && mpirun -n $N ./a \"b c\" | tee log"}).words.back(),
            "cd x && mpirun " + ours + " -n $N ./a \"b c\" | tee log");
  EXPECT_EQ(Hand({"sh", "-c", "srun --export=NONE ./a; srun ./b"}).words.back(),
            "srun '--export=NCCL_TUNER_PLUGIN,DIAPASON_MODE' ./a; srun ./b");
  EXPECT_EQ(Hand({"sh", "-c", "bash -c 'mpirun ./a'"}).words.back(),
            "bash -c 'mpirun " + ours + " ./a'");
  EXPECT_EQ(Hand({"env", "-i", "sh", "-c", "mpirun ./a"}).words.back(), "mpirun " + ours + " ./a");
  EXPECT_EQ(Ids(Hand({"sh", "-c", "export DIAPASON_MODE=off; ./a"}), Severity::kError),
            "job.overridden");
}

TEST(HandOverTest, WhatDoesNotArrive) {
  EXPECT_EQ(Ids(Hand({"ssh", "host", "./a"}), Severity::kError), "job.not-handed-over");
  EXPECT_EQ(Ids(Hand({"sbatch", "job.sh"}), Severity::kError), "job.not-handed-over");
  EXPECT_EQ(Ids(Hand({"deepspeed", "--num_nodes", "2", "t.py"}), Severity::kError),
            "job.not-handed-over");
  EXPECT_EQ(Ids(Hand({"deepspeed", "--hostfile", "/none", "t.py"}), Severity::kError), "");
  EXPECT_EQ(Ids(Hand({"env", "NCCL_TUNER_PLUGIN=other", "./a"}), Severity::kError),
            "job.overridden");
  EXPECT_EQ(Ids(Hand({"mpirun", "-x", "DIAPASON_MODE=off", "./a"}), Severity::kError),
            "job.overridden");
  EXPECT_EQ(Ids(Hand({"env", "NCCL_TUNER_PLUGIN=/p/x.so", "./a"}), Severity::kError), "");
  EXPECT_EQ(Ids(Hand({"wrapper", "mpirun", "./a"}), Severity::kNote), "job.unsure");
}

}  // namespace
}  // namespace diapason::job
