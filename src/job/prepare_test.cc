#include "job/prepare.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "job/checks.h"
#include "policy/inline.h"

namespace diapason::job {
namespace {

using Variables = std::map<std::string, std::string>;

std::string Value(const PreparedJob& job, const std::string& name) {
  for (const RankVariable& one : job.variables) {
    if (one.name == name) return one.value;
  }
  return "(not set)";
}

const Finding* Find(const std::vector<Finding>& findings, const std::string& id) {
  for (const Finding& one : findings) {
    if (one.id == id) return &one;
  }
  return nullptr;
}

class PrepareTest : public testing::Test {
 protected:
  PrepareTest() {
    policy_ = Path("policy.conf");
    Write(policy_,
          "# verified: 1.50 x over 2 sizes\nallreduce,0,1048576,tree,simple,-1,-1,-1,-1,-1\n");
    request_.command = {"./a"};
    request_.policy = policy_;
    request_.journal_dir = Path("journals");
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  Result<PreparedJob> Prepared(const Variables& environment = {}) {
    return Prepare(request_, MapEnvironment(environment));
  }

  TemporaryFolder folder_;
  std::string policy_;
  JobRequest request_;
};

TEST_F(PrepareTest, APolicyTravelsInline) {
  const Result<PreparedJob> job = Prepared({{"DIAPASON_POLICY", "/elsewhere"},
                                            {"DIAPASON_POLICY_INLINE", "of another job"},
                                            {"DIAPASON_MODE", "off"}});
  ASSERT_TRUE(job.ok()) << job.status().message();
  const Result<policy::Policy> sent =
      policy::DecodeInline(Value(job.value(), "DIAPASON_POLICY_INLINE"));
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(sent.value().rules.size(), 1U);
  EXPECT_EQ(Value(job.value(), "DIAPASON_MODE"), "static");
  EXPECT_EQ(Value(job.value(), "NCCL_TUNER_PLUGIN"), Value(job.value(), "NCCL_PROFILER_PLUGIN"));
  EXPECT_TRUE(FileExists(Value(job.value(), "NCCL_TUNER_PLUGIN")));
  EXPECT_EQ(job.value().evidence.at(2), "verified: 1.50 x over 2 sizes");
  EXPECT_TRUE(Value(job.value(), "DIAPASON_JOURNAL").starts_with(Path("journals") + "/run-"));
  EXPECT_EQ(job.value().handed.environment.at("DIAPASON_MODE"), "static");
  // Nothing that only learning needs.
  EXPECT_EQ(Value(job.value(), "DIAPASON_LEARNED"), "(not set)");
  EXPECT_EQ(Value(job.value(), "NCCL_RAS_ENABLE"), "(not set)");
}

TEST_F(PrepareTest, ThePolicyOfTheEnvironment) {
  request_.policy.clear();
  const Result<PreparedJob> job = Prepared({{"DIAPASON_POLICY", policy_}});
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job.value().policy_name, policy_);
  EXPECT_FALSE(Prepared().value().policy.has_value());
}

TEST_F(PrepareTest, BadPolicies) {
  request_.policy = Path("none");
  EXPECT_TRUE(Prepared().status().message().find("there is no policy") != std::string::npos);
  request_.policy = policy_;
  Write(policy_, "allreduce,0,1,badring,simple,-1,-1,-1,-1,-1\n");
  EXPECT_TRUE(Prepared().status().message().find("unknown algorithm 'badring'") !=
              std::string::npos);
  Write(policy_, "# diapason: version=1 library=openmpi\nallreduce,0,1,ring,-1,-1,-1,-1,-1,-1\n");
  EXPECT_FALSE(Prepared().ok());
}

TEST_F(PrepareTest, Learning) {
  request_.policy.clear();
  request_.mode = JobMode::kLearn;
  request_.learned = Path("learned.conf");
  Write(request_.learned, "# of before\n");
  request_.store = "file:/shared";
  const Result<PreparedJob> job = Prepared();
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(Value(job.value(), "DIAPASON_LEARNED"), request_.learned);
  EXPECT_EQ(job.value().learned_before, "# of before\n");
  EXPECT_EQ(Value(job.value(), "DIAPASON_STORE"), "file:/shared");
  EXPECT_TRUE(Value(job.value(), "DIAPASON_JOB").starts_with("run-"));
  // Another launcher names the job itself.
  EXPECT_EQ(Value(Prepared({{"SLURM_JOB_ID", "7"}}).value(), "DIAPASON_JOB"), "(not set)");
  // The user's own word on RAS stays.
  EXPECT_EQ(Value(Prepared({{"NCCL_RAS_ENABLE", "1"}}).value(), "NCCL_RAS_ENABLE"), "(not set)");
  request_.learned = "/nonexistent/folder/learned.conf";
  EXPECT_TRUE(Prepared().status().message().find("--learned") != std::string::npos);
}

TEST_F(PrepareTest, ANameAndFurtherVariables) {
  request_.job = "tune-1";
  request_.variables = {{"DIAPASON_JOURNAL_TIMES", "1"}, {"DIAPASON_MODE", "observe"}};
  const PreparedJob job =
      Prepared({{"SLURM_JOB_ID", "7"}, {"DIAPASON_JOURNAL_TIMES", "0"}, {"DIAPASON_JOB", "mine"}})
          .value();
  EXPECT_EQ(job.Variable("DIAPASON_JOB"), "tune-1");
  EXPECT_EQ(job.Variable("DIAPASON_JOURNAL_TIMES"), "1");
  EXPECT_EQ(job.Variable("DIAPASON_MODE"), "observe");
  EXPECT_EQ(job.Variable("DIAPASON_REWARD"), "");
  EXPECT_EQ(job.handed.environment.at("DIAPASON_MODE"), "observe");
}

TEST_F(PrepareTest, LearningOnSeveralHostsHasAStoreThatIsServedHere) {
  request_.mode = JobMode::kLearn;
  request_.learned = Path("learned.conf");
  request_.command = {"srun", "-N", "2", "./a"};
  {
    const PreparedJob job = Prepared().value();
    EXPECT_EQ(Find(job.findings, "job.no-store"), nullptr);
    ASSERT_NE(job.served_store, nullptr);
    EXPECT_EQ(job.Variable("DIAPASON_STORE"), job.served_store->url());
    EXPECT_GE(job.Variable("DIAPASON_SECRET").size(), 43U);
    // Never on a command line.
    for (const std::string& word : job.handed.words) {
      EXPECT_EQ(word.find(job.Variable("DIAPASON_SECRET")), std::string::npos);
    }
  }
  const PreparedJob redis = Prepared({{"DIAPASON_STORE", "redis://h"}}).value();
  EXPECT_EQ(Find(redis.findings, "job.no-store"), nullptr);
  EXPECT_EQ(redis.served_store, nullptr);
  EXPECT_EQ(redis.Variable("DIAPASON_SECRET"), "");
  request_.command = {"srun", "-N", "1", "./a"};
  const PreparedJob one = Prepared().value();
  EXPECT_EQ(Find(one.findings, "job.no-store"), nullptr);
  EXPECT_EQ(one.served_store, nullptr);
  // torchrun is started on every host: no one of them hands a secret to the others.
  request_.command = {"torchrun", "--nnodes", "2", "./a.py"};
  EXPECT_NE(Find(Prepared().value().findings, "job.no-store"), nullptr);
}

TEST_F(PrepareTest, PluginsOfTheUserAreChained) {
  const Result<PreparedJob> job =
      Prepared({{"NCCL_TUNER_PLUGIN", "/site/tuner.so"}, {"NCCL_PROFILER_PLUGIN", "inspector"}});
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(Value(job.value(), "DIAPASON_CHAIN"), "/site/tuner.so");
  EXPECT_EQ(Value(job.value(), "DIAPASON_PROFILER_CHAIN"), "inspector");
  const Finding* finding = Find(job.value().findings, "job.replaced");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::kNote);
  const Result<PreparedJob> ours = Prepared({{"NCCL_TUNER_PLUGIN", "libnccl-tuner-diapason.so"}});
  EXPECT_EQ(Value(ours.value(), "DIAPASON_CHAIN"), "(not set)");
}

TEST_F(PrepareTest, SettingsOfTheUserArePassedOn) {
  const PreparedJob job = Prepared({{"DIAPASON_REWARD", "gpu"},
                                    {"NCCL_TUNER_EPS", "0.2"},
                                    {"DIAPASON_SECRET", "of comm.h"},
                                    {"DIAPASON_POLICY", "/replaced"}})
                              .value();
  EXPECT_EQ(Value(job, "DIAPASON_REWARD"), "gpu");
  EXPECT_EQ(Value(job, "NCCL_TUNER_EPS"), "0.2");
  EXPECT_EQ(Value(job, "DIAPASON_SECRET"), "(not set)");
  request_.journal_dir.clear();
  const PreparedJob named = Prepared({{"DIAPASON_JOURNAL", Path("mine/j.%h.%p")}}).value();
  EXPECT_EQ(named.journal_dir, Path("mine"));
  EXPECT_EQ(named.own_folder, nullptr);
}

TEST_F(PrepareTest, JournalsHaveAPlace) {
  request_.journal_dir = policy_ + "/below-a-file";
  EXPECT_TRUE(Prepared().status().message().find("cannot create the folder") != std::string::npos);
  request_.journal_dir.clear();
  std::string own;
  {
    const Result<PreparedJob> job = Prepared();
    own = job.value().journal_dir;
    EXPECT_EQ(::access(own.c_str(), W_OK), 0);
    EXPECT_EQ(Value(job.value(), "DIAPASON_JOURNAL_LIMIT"), "32MiB");
    Write(own + "/" + job.value().journal_stem + "h.1.jsonl", "x");
    Write(own + "/run-another.h.1.jsonl", "x");
    EXPECT_EQ(job.value().Journals().size(), 1U);
  }
  EXPECT_NE(::access(own.c_str(), F_OK), 0);
  request_.dry_run = true;
  EXPECT_EQ(Prepared().value().own_folder, nullptr);
}

TEST_F(PrepareTest, VariablesThatWinOverATuner) {
  const std::vector<Finding> findings = Prepared({{"NCCL_ALGO", "Ring"}}).value().findings;
  const Finding* fights = Find(findings, "env.fights-tuner");
  ASSERT_NE(fights, nullptr);
  EXPECT_EQ(fights->severity, Severity::kWarning);
  EXPECT_NE(Find(Prepared({{"DIAPASON_NUMERICS", "fast"}}).value().findings, "job.bad-setting"),
            nullptr);
  EXPECT_NE(Find(Prepared({{"OMPI_COMM_WORLD_RANK", "1"}}).value().findings, "job.inside"),
            nullptr);
  EXPECT_EQ(Worst(Prepared().value().findings), Severity::kFine);
}

TEST_F(PrepareTest, VersionsOfTheLibrary) {
  request_.mode = JobMode::kLearn;
  request_.learned = Path("learned.conf");
  const MapEnvironment ras(Variables{{"NCCL_RAS_ENABLE", "1"}});
  PreparedJob job = Prepare(request_, ras).value();
  job.library.version = 23102;
  EXPECT_NE(Find(CheckJob(job, ras), "env.ras-learning"), nullptr);
  job.library.version = 22703;
  EXPECT_NE(Find(CheckJob(job, ras), "env.old-library"), nullptr);
  job.library.version = 21803;
  const std::vector<Finding> old = CheckJob(job, ras);
  ASSERT_NE(Find(old, "job.old-library"), nullptr);
  EXPECT_EQ(Find(old, "job.old-library")->severity, Severity::kError);
  job.library.version = 22809;
  EXPECT_EQ(Worst(CheckJob(job, ras)), Severity::kFine);
}

TEST(EvidenceTest, InFrontOfRows) {
  const std::map<int, std::string> evidence =
      EvidenceIn("# verified: a\n# another remark\nrow\nrow\n\n#learned: b\nrow\n# verified: c\n");
  EXPECT_EQ(evidence, (std::map<int, std::string>{{3, "verified: a"}, {7, "learned: b"}}));
  EXPECT_TRUE(EvidenceIn("").empty());
}

}  // namespace
}  // namespace diapason::job
