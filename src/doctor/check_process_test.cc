#include "doctor/check_process.h"

#include <gtest/gtest.h>

namespace diapason::doctor {
namespace {

host::ThreadSample Thread(pid_t tid, const std::string& name, host::ThreadRole role, double user,
                          double wait, int cpu) {
  host::ThreadSample thread;
  thread.tid = tid;
  thread.name = name;
  thread.role = role;
  thread.user_s = user;
  thread.wait_s = wait;
  thread.last_cpu = cpu;
  thread.allowed_cpus = "0-3";
  return thread;
}

ProcessFacts Job() {
  ProcessFacts facts;
  facts.before.pid = facts.after.pid = 4711;
  facts.before.time_s = 100;
  facts.after.time_s = 102;
  facts.before.resident = facts.after.resident = uint64_t{1} << 30;
  facts.before.threads = {Thread(1, "python", host::ThreadRole::kOther, 10, 0, 2),
                          Thread(2, "NCCL Progress 0", host::ThreadRole::kProgress, 5, 0, 3)};
  facts.after.threads = {Thread(1, "python", host::ThreadRole::kOther, 12, 0, 2),
                         Thread(2, "NCCL Progress 0", host::ThreadRole::kProgress, 6, 0, 3),
                         Thread(3, "new", host::ThreadRole::kOther, 50, 0, 3)};
  facts.mapped = {{"/lib/libnccl.so.2", false, 0}};
  return facts;
}

const Finding* Find(const std::vector<Finding>& findings, const std::string& id) {
  for (const Finding& finding : findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}

TEST(UseOfThreads, SharesOfTheTimeBetween) {
  const ProcessFacts facts = Job();
  const std::vector<ThreadUse> uses = UseOfThreads(facts.before, facts.after);
  ASSERT_EQ(uses.size(), 2u);  // the third was not there before
  EXPECT_EQ(uses[0].name, "python");
  EXPECT_DOUBLE_EQ(uses[0].busy, 1);
  EXPECT_DOUBLE_EQ(uses[1].busy, 0.5);
}

TEST(CheckProcess, NothingWrong) {
  const std::vector<Finding> findings = CheckProcess(Job());
  EXPECT_EQ(Worst(findings), Severity::kNote);  // the diapason plugin is not loaded
  ASSERT_NE(Find(findings, "process.threads"), nullptr);
  EXPECT_NE(Find(findings, "process.threads")->evidence[0].find("NCCL Progress 0: 50 %"),
            std::string::npos);
}

TEST(CheckProcess, TwoLibrariesAndAReplacedOne) {
  ProcessFacts facts = Job();
  facts.mapped.push_back({"/venv/nvidia/nccl/lib/libnccl.so.2", true, 0});
  facts.mapped.push_back({"/x/libnccl-tuner-diapason.so", false, 0});
  const std::vector<Finding> findings = CheckProcess(facts);
  ASSERT_NE(Find(findings, "process.two-libraries"), nullptr);
  EXPECT_EQ(Find(findings, "process.two-libraries")->severity, Severity::kError);
  ASSERT_NE(Find(findings, "process.library-replaced"), nullptr);
  EXPECT_EQ(Find(findings, "process.plugin")->severity, Severity::kFine);
}

// Unreadable libraries are not missing libraries.
TEST(CheckProcess, NothingIsSaidOfLibrariesThatCannotBeSeen) {
  ProcessFacts facts = Job();
  facts.mapped.clear();
  EXPECT_NE(Find(CheckProcess(facts), "process.no-library"), nullptr);
  facts.mapped_known = false;
  facts.unknown = {"/proc/4711/maps cannot be read"};
  const std::vector<Finding> findings = CheckProcess(facts);
  EXPECT_EQ(Find(findings, "process.no-library"), nullptr);
  EXPECT_EQ(Find(findings, "process.plugin"), nullptr);
  ASSERT_NE(Find(findings, "process.unknown"), nullptr);
  EXPECT_EQ(Worst(findings), Severity::kNote);
}

TEST(MemoryMoved, HasNoNegativeZero) {
  ProcessFacts facts = Job();
  facts.after.resident -= 4096;
  EXPECT_EQ(MemoryMoved(facts.before, facts.after), "+0.0 MiB in 2.0 s");
  facts.after.resident -= uint64_t{3} << 20;
  EXPECT_EQ(MemoryMoved(facts.before, facts.after), "-3.0 MiB in 2.0 s");
}

TEST(CheckProcess, ThreadsInEachOthersWay) {
  ProcessFacts facts = Job();
  facts.after.threads[1].wait_s = 1;
  facts.after.threads[0].last_cpu = 3;
  const std::vector<Finding> findings = CheckProcess(facts);
  ASSERT_NE(Find(findings, "process.starved"), nullptr);
  EXPECT_NE(Find(findings, "process.starved")->evidence[0].find("waited 50 %"), std::string::npos);
  ASSERT_NE(Find(findings, "process.shared-cpu"), nullptr);
}

TEST(CheckProcess, MemoryAndLimits) {
  ProcessFacts facts = Job();
  facts.after.resident += uint64_t{200} << 20;
  facts.after.swapped = 4096;
  facts.after.open_files = 950;
  facts.mapped.push_back({"/lib/libibverbs.so.1", false, 0});
  facts.limits =
      "Max open files            1024                 4096                 files\n"
      "Max locked memory         65536                65536                bytes\n";
  const std::vector<Finding> findings = CheckProcess(facts);
  EXPECT_EQ(Find(findings, "process.memory")->severity, Severity::kNote);
  EXPECT_NE(Find(findings, "process.swapped"), nullptr);
  EXPECT_NE(Find(findings, "process.open-files"), nullptr);
  ASSERT_NE(Find(findings, "process.memlock"), nullptr);
  EXPECT_NE(Find(findings, "process.memlock")->title.find("64 KiB"), std::string::npos);
}

}  // namespace
}  // namespace diapason::doctor
