#include "knobs/files/read_file.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "knobs/files/collector.h"

namespace diapason::knobs {
namespace {

// "NAME=value@line", with '-' before overridden ones, '?' before unknown values and '!' before
// those that are removed.
std::string Read(const std::string& text, const std::string& name = "f",
                 std::vector<Finding>* findings = nullptr) {
  FileReading read = ReadVariables(text, name, {});
  std::string said;
  for (const Assignment& one : read.assignments) {
    said += (said.empty() ? "" : " ") + std::string(one.overridden ? "-" : "") +
            (one.unset ? "!" : "") + (one.known ? "" : "?") + one.name + "=" + one.value + "@" +
            one.source.substr(one.source.rfind(':') + 1);
  }
  if (findings != nullptr) *findings = read.findings;
  return said;
}

std::string Shell(const std::string& text) { return Read(text, "f.sh"); }

TEST(ReadLiterals, SentencesAreNoCommands) {
  EXPECT_EQ(Read("{\"comment\": \"NCCL_IB_DISABLE=true was tried\"}", "f.json"), "");
  EXPECT_EQ(Read("print(\"NCCL_BUFFSIZE=4M is wrong\")\n", "f.py"), "");
  EXPECT_EQ(Shell("python - <<'PY'\nprint(\"NCCL_BUFFSIZE=4M is wrong\")\nPY\n"), "");
  EXPECT_EQ(Read("os.system(\"NCCL_DEBUG=INFO python train.py\")\n", "f.py"), "NCCL_DEBUG=INFO@1");
  EXPECT_EQ(Read("os.system(\"NCCL_DEBUG=INFO ./train\")\n", "f.py"), "NCCL_DEBUG=INFO@1");
}

TEST(ReadShell, AssignmentsAndExports) {
  EXPECT_EQ(Shell("# NCCL_DEBUG=INFO\n\n  export NCCL_DEBUG=INFO   # why\n"), "NCCL_DEBUG=INFO@3");
  EXPECT_EQ(Shell("export NCCL_ALGO=\"ring;allreduce:tree\" NCCL_PROTO='LL'"),
            "NCCL_ALGO=ring;allreduce:tree@1 NCCL_PROTO=LL@1");
  EXPECT_EQ(Shell("export NCCL_ALGO=ring;export NCCL_PROTO=LL"),
            "NCCL_ALGO=ring@1 NCCL_PROTO=LL@1");
  EXPECT_EQ(Shell("export NCCL_A\\\nLGO=ring\nexport NCCL_PROTO=LL\n"),
            "NCCL_ALGO=ring@1 NCCL_PROTO=LL@3");
  EXPECT_EQ(Shell("setenv NCCL_DEBUG WARN"), "NCCL_DEBUG=WARN@1");
  EXPECT_EQ(Shell("NCCL_DEBUG=INFO\r\n"), "NCCL_DEBUG=INFO@1");
  EXPECT_EQ(Shell("PATH=/bin\nSECRET=1\nnccl_debug=1\nsrun python train.py\n"), "");
  EXPECT_EQ(Shell("NCCL_DEBUG=INFO\nNCCL_DEBUG=WARN\n"), "-NCCL_DEBUG=INFO@1 NCCL_DEBUG=WARN@2");
  EXPECT_EQ(Shell("NCCL_DEBUG=INFO\nunset NCCL_DEBUG\n"), "-NCCL_DEBUG=INFO@1");
  // A branch does not change what holds outside it; a later line outside changes both.
  EXPECT_EQ(Shell("export NCCL_DEBUG=INFO\nif x; then\nunset NCCL_DEBUG\nfi\n"),
            "NCCL_DEBUG=INFO@1 !NCCL_DEBUG=@3");
  EXPECT_EQ(Shell("if x; then\nexport NCCL_DEBUG=INFO\nfi\nexport NCCL_DEBUG=WARN\n"),
            "-NCCL_DEBUG=INFO@2 NCCL_DEBUG=WARN@4");
  EXPECT_EQ(Shell("NCCL_DEBUG=INFO ./a\nexport NCCL_DEBUG=WARN\n"),
            "NCCL_DEBUG=INFO@1 NCCL_DEBUG=WARN@2");
}

TEST(ReadShell, Values) {
  EXPECT_EQ(Shell("export NCCL_DEBUG=${NCCL_DEBUG:-INFO}"), "NCCL_DEBUG=INFO@1");
  EXPECT_EQ(Shell("export NCCL_DEBUG=\"${LEVEL:-$OTHER}\""), "?NCCL_DEBUG=${LEVEL:-$OTHER}@1");
  EXPECT_EQ(Shell("export NCCL_DEBUG=$(cat level file)"), "?NCCL_DEBUG=$(cat level file)@1");
  EXPECT_EQ(Shell("export NCCL_DEBUG"), "?NCCL_DEBUG=@1");
  EXPECT_EQ(Shell(": \"${NCCL_X:=1}\""), "NCCL_X=1@1");
  // Only where nothing is set yet; with a colon, nothing is not a value.
  EXPECT_EQ(Shell("NCCL_X=2\n: ${NCCL_X:=1}"), "NCCL_X=2@1");
  EXPECT_EQ(Shell("NCCL_X=\n: ${NCCL_X:=1}"), "-NCCL_X=@1 NCCL_X=1@2");
  EXPECT_EQ(Shell("NCCL_X=\n: ${NCCL_X=1}"), "NCCL_X=@1");
  EXPECT_EQ(Shell(": ${=} ${:=1} ${NCCL_X:-1}"), "");
}

TEST(ReadShell, Launchers) {
  EXPECT_EQ(Shell("mpirun -x NCCL_DEBUG=WARN -x NCCL_ALGO ./a.out"),
            "NCCL_DEBUG=WARN@1 ?NCCL_ALGO=@1");
  EXPECT_EQ(Shell("docker run --env=NCCL_DEBUG=WARN -e NCCL_PROTO='LL' -eNCCL_ALGO=Ring img"),
            "NCCL_DEBUG=WARN@1 NCCL_PROTO=LL@1 NCCL_ALGO=Ring@1");
  EXPECT_EQ(Shell("#SBATCH --export=ALL,NCCL_DEBUG=INFO,B=2,NCCL_PROTO=LL"),
            "NCCL_DEBUG=INFO@1 NCCL_PROTO=LL@1");
  EXPECT_EQ(Shell("#SBATCH -N 2\n#SBATCH --nodes=2 # NCCL_DEBUG=INFO"), "");
  EXPECT_EQ(Shell("srun --export ALL,NCCL_X=1 ./x"), "NCCL_X=1@1");
  EXPECT_EQ(Shell("srun --export=\"ALL,NCCL_ALGO='ring,tree',NCCL_X=1\" ./x"),
            "NCCL_ALGO=ring,tree@1 NCCL_X=1@1");
  EXPECT_EQ(Shell("mpirun -genv NCCL_DEBUG INFO -env NCCL_PROTO LL ./x"),
            "NCCL_DEBUG=INFO@1 NCCL_PROTO=LL@1");
  EXPECT_EQ(Shell("mpirun -genv NCCL_DEBUG"), "");
  EXPECT_EQ(Shell("qsub -v NCCL_X=1,NCCL_Y=2 job"), "NCCL_X=1@1 NCCL_Y=2@1");
}

TEST(ReadShell, LinesThatSetNothing) {
  for (const char* line : {"NCCL_DEBUG = INFO", "export NCCL_DEBUG INFO",
                           "export NCCL_DEBUG = INFO", "NCCL_DEBUG= INFO"}) {
    std::vector<Finding> findings;
    (void)Read(line, "f.sh", &findings);
    ASSERT_EQ(findings.size(), 1u) << line;
    EXPECT_EQ(findings[0].id, "env.bad-line");
    EXPECT_NE(findings[0].action.find("NCCL_DEBUG=INFO"), std::string::npos) << findings[0].action;
    EXPECT_EQ(findings[0].evidence, std::vector<std::string>{"f.sh:1"});
  }
  for (const char* line :
       {"export NCCL_DEBUG", "export NCCL_DEBUG NCCL_ALGO", "NCCL_DEBUG= ./a.out", "SECRET = 1",
        "srun --export=ALL,NCCL_X=1", "mpirun -x NCCL_X=1"}) {
    std::vector<Finding> findings;
    (void)Read(line, "f.sh", &findings);
    EXPECT_TRUE(findings.empty()) << line << ": " << findings[0].title;
  }
}

TEST(ReadVariables, ZeroIsNoApproval) {
  std::vector<Finding> findings;
  EXPECT_EQ(Read("echo $NCCL_DEBUG\n", "f.sh", &findings), "");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::kNote);
  EXPECT_EQ(findings[0].title, "1 name occurs that could not be read as assignments");
  EXPECT_EQ(findings[0].evidence, std::vector<std::string>{"f.sh:1: NCCL_DEBUG"});
  (void)Read("# NCCL_X=1\necho 1\n", "f.sh", &findings);
  EXPECT_TRUE(findings.empty());
}

TEST(ReadVariables, FormsByContent) {
  const auto form = [](const std::string& text) { return FormText(RecogniseForm(text, "")); };
  EXPECT_EQ(form("NCCL_DEBUG=INFO\nNCCL_ALGO=ring;allreduce:tree\n"), "a list of variables");
  EXPECT_EQ(form("NCCL_DEBUG=INFO ./a\n"), "a shell script");
  EXPECT_EQ(form("apiVersion: v1\nkind: Pod\nspec:\n  a: 1\n"), "a Kubernetes file");
  EXPECT_EQ(form("services:\n  a:\n    environment:\n      NCCL_DEBUG: INFO\n"), "a compose file");
  EXPECT_EQ(form("FROM x\nENV A=1\nRUN ls\n"), "a Dockerfile");
  EXPECT_EQ(form("import os\nos.environ['A'] = '1'\n"), "a Python program");
  EXPECT_EQ(form("{\"NCCL_DEBUG\": \"INFO\"}"), "a JSON file");
  EXPECT_EQ(form(std::string("A=1\0B=2\0", 8)), "the environment of a process");
  EXPECT_EQ(form(""), "a shell script");
}

TEST(ReadVariables, TheLibraryIsGuessedFromTheFile) {
  EXPECT_EQ(ReadVariables("export NCCL_DEBUG=INFO", "f.sh", {}).library, Library::kNccl);
  EXPECT_EQ(ReadVariables("image: rocm/pytorch\n", "f.yaml", {}).library, Library::kRccl);
  EXPECT_TRUE(ReadVariables("nvidia-smi || rocm-smi\n", "f.sh", {}).either);
}

TEST(ReadVariables, EndsOnHostileInput) {
  EXPECT_EQ(Shell("NCCL_X=" + std::string(1 << 20, 'a')), "");
  std::string many;
  for (int i = 0; i < 20000; ++i) many += Format("NCCL_V{}={}\n", i, i);
  EXPECT_LE(ReadVariables(many, "f.sh", {}).assignments.size(), 10000u);
  for (const char* name : {"f.sh", "f.yaml", "f.json", "f.py", "Dockerfile", "f.env", "f.toml"}) {
    for (const std::string piece : {"'", "\"", "${", "$(", "`", "<<A\n", "a=(", "(", "[", "{", "- ",
                                    "a: |\n", "\"a\": {", "NCCL_X=\"", "if\n", "\\", "\\\n"}) {
      std::string text;
      for (int i = 0; i < 3000; ++i) text += piece;
      (void)Read(text, name);
    }
  }
}

TEST(CountsInFiles, OnlyCapitalsOfTheFamilies) {
  EXPECT_TRUE(CountsInFiles("NCCL_DEBUG"));
  EXPECT_TRUE(CountsInFiles("CCL_DEBUG"));
  EXPECT_TRUE(CountsInFiles("OMP_NUM_THREADS"));
  EXPECT_FALSE(CountsInFiles("nccl_debug"));
  EXPECT_FALSE(CountsInFiles("MY_NCCL_DEBUG"));
  EXPECT_FALSE(CountsInFiles("CCL_WORKER_COUNT"));
  EXPECT_FALSE(CountsInFiles("NCCL_"));
}

}  // namespace
}  // namespace diapason::knobs
