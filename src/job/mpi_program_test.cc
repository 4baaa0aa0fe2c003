#include "job/mpi_program.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "base/temporary_file.h"
#include "job/prepare.h"

namespace diapason::job {
namespace {

TEST(MpiProgram, ScriptsAndProgramsWithoutMpiAreNone) {
  const std::map<std::string, std::string> variables = {{"PATH", "/usr/bin:/bin"}};
  const MapEnvironment environment(variables);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"mpirun", "-n", "2", "/proc/self/exe"}, {"sh"}, {"/no/such/program"}, {"mpirun"}}) {
    ReadOptions options;
    options.version = [](const std::string&) { return "mpirun (Open MPI) 4.1.4"; };
    EXPECT_FALSE(IsMpiProgram(ReadCommand(words, options), environment)) << words[0];
  }
}

std::vector<Finding> OwnRules(const std::vector<std::string>& words,
                              const std::map<std::string, std::string>& variables = {}) {
  ReadOptions options;
  options.version = [](const std::string&) { return "mpirun (Open MPI) 4.1.4"; };
  return CheckOwnRules(ReadCommand(words, options), MapEnvironment(variables));
}

TEST(MpiProgram, ACommandThatChoosesAlgorithmsItselfIsTold) {
  EXPECT_TRUE(OwnRules({"mpirun", "--mca", "btl", "self", "./a"}).empty());
  EXPECT_TRUE(OwnRules({"mpirun", "--mca", "coll_tuned_priority", "30", "./a"}).empty());
  EXPECT_EQ(OwnRules({"mpirun", "--mca", "coll_tuned_use_dynamic_rules", "1", "./a"}).size(), 1u);
  EXPECT_EQ(OwnRules({"mpirun", "--mca", "coll_tuned_bcast_algorithm", "1", "./a"}).size(), 1u);
  const std::vector<Finding> found =
      OwnRules({"./a"}, {{"OMPI_MCA_coll_tuned_allreduce_algorithm", "4"}, {"HOME", "/"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].evidence[0], "OMPI_MCA_coll_tuned_allreduce_algorithm=4");
}

class PrepareMpiTest : public testing::Test {
 protected:
  PrepareMpiTest() {
    request_.kind = JobKind::kMpi;
    request_.mode = JobMode::kObserve;
    request_.command = {"./a"};
    request_.journal_dir = folder_.path() + "/records";
  }
  Result<PreparedJob> Prepared(const std::map<std::string, std::string>& environment = {}) {
    return Prepare(request_, MapEnvironment(environment));
  }
  TemporaryFolder folder_;
  JobRequest request_;
};

TEST_F(PrepareMpiTest, TheRecorderIsPreloadedBeforeOthers) {
  const Result<PreparedJob> job = Prepared({{"LD_PRELOAD", "/other.so"}});
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_TRUE(job.value().mpi);
  EXPECT_EQ(job.value().Variable("LD_PRELOAD"), job.value().plugin + ":/other.so");
  EXPECT_TRUE(job.value().Variable("DIAPASON_MPI_RECORD").ends_with("%h.%p.mpirec"));
  EXPECT_EQ(job.value().Variable("NCCL_TUNER_PLUGIN"), "");
  EXPECT_EQ(job.value().Variable(kUseRulesVariable), "");
}

TEST_F(PrepareMpiTest, APolicyBecomesARulesFileThatIsNoRecording) {
  request_.mode = JobMode::kStatic;
  request_.policy = folder_.path() + "/p.conf";
  std::ofstream(request_.policy)
      << "# diapason: version=1 library=openmpi\nallreduce,0,65536,ring,-1,-1,-1,-1,-1,-1\n";
  const Result<PreparedJob> job = Prepared();
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job.value().Variable(kUseRulesVariable), "1");
  const Result<std::string> rules = ReadFile(job.value().Variable(kRulesFileVariable), 65536);
  ASSERT_TRUE(rules.ok());
  EXPECT_NE(rules.value().find("# MPI_Allreduce"), std::string::npos);
  EXPECT_TRUE(job.value().Journals().empty());
}

TEST_F(PrepareMpiTest, PoliciesOfOthersAndModesOfThePluginAreRefused) {
  request_.mode = JobMode::kStatic;
  request_.policy = folder_.path() + "/p.conf";
  std::ofstream(request_.policy)
      << "# diapason: version=1 library=nccl\nallreduce,0,65536,tree,simple,-1,-1,-1,-1,-1\n";
  EXPECT_FALSE(Prepared().ok());
  request_.policy.clear();
  request_.mode = JobMode::kLearn;
  const Result<PreparedJob> learning = Prepared();
  ASSERT_FALSE(learning.ok());
  EXPECT_NE(learning.status().message().find("diapason tune"), std::string::npos);
}

}  // namespace
}  // namespace diapason::job
