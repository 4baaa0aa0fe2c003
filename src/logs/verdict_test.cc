// Cause before consequence, the verdict, and lines of all kinds through the reader.
#include "logs/verdict.h"

#include "base/text.h"
#include "logs/logs_test_util.h"

namespace diapason::logs {
namespace {

Diagnosis Judged(const std::string& text, const std::string& name = "job.log") {
  return DiagnoseJob(Read(text, name));
}

// Through the same reader as files, with the prefixes that launchers and containers write.
TEST(Messages, ExamplesAreReadWithAnyPrefix) {
  const std::vector<messages::Message>& known = messages::Catalogue::BuiltIn().messages();
  const std::vector<std::string> prefixes = {"",
                                             "[rank3]:[E1115 19:50:08.42 x.cpp:629] ",
                                             "[1,3]<stderr>:",
                                             " 3: ",
                                             "[default3]:",
                                             "2025-11-15T19:40:01.123456789Z "};
  for (size_t i = 0; i < known.size(); ++i) {
    for (const std::string& example : known[i].examples) {
      const bool warn = Contains(example, "NCCL WARN ");
      for (const std::string& prefix : prefixes) {
        std::string text = prefix + (warn ? "node1:100:140 [0] " : "") + example + "\n";
        if (known[i].only_warn && !warn) text = "Last error:\n" + text;
        const LogFacts facts = Read(text);
        size_t found = 0;
        for (size_t j = 0; j < known.size(); ++j) {
          if (facts.troubles.kinds[j].count == 0) continue;
          EXPECT_TRUE(known[j].id == known[i].id && known[j].title == known[i].title)
              << known[j].id << " instead of " << known[i].id << ": " << text;
          ++found;
        }
        EXPECT_EQ(found, known[i].cause == messages::Cause::kBenign ? 0U : 1U) << text;
      }
    }
  }
}

TEST(Verdict, TheCauseComesFirstAndTheRestIsFolded) {
  const Diagnosis diagnosis = Judged(
      Warn(0, "socketProgress: Connection closed by remote peer n3<1>") +
      Warn(1, "NET/IB : Got completion from peer 10.0.0.2<1> with status=12 opcode=0 len=0") +
      Warn(3, "Cuda failure 'out of memory'") + "[rank3]: RuntimeError: NCCL error in: x.cpp:1\n");
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.findings[0].id, "mem.gpu");
  EXPECT_EQ(diagnosis.verdict.certainty, "cause");
  EXPECT_EQ(diagnosis.verdict.cause_class, "resource");
  EXPECT_EQ(diagnosis.verdict.follows, 3U);
  EXPECT_TRUE(diagnosis.verdict.text.starts_with("Cause: GPU out of memory (n3:103)"))
      << diagnosis.verdict.text;
  EXPECT_TRUE(Contains(diagnosis.findings[0].evidence.back(), "and 3 lines that follow from it"));
}

TEST(Verdict, TheRankThatRaisedAnExceptionIsTheCause) {
  const Diagnosis diagnosis = Judged(
      "[rank0]:[E1115 19:50:08.4 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective "
      "operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
      "Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
      "[rank2]: Traceback (most recent call last):\n"
      "[rank2]:   File \"/a/train.py\", line 12, in step\n"
      "[rank2]:     x = table[key]\n"
      "[rank2]: KeyError: 'tokens'\n");
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings[0].id, "program.exception");
  EXPECT_EQ(diagnosis.verdict.rank, 2);
  EXPECT_TRUE(Contains(diagnosis.findings[0].title, "Rank 2 raised KeyError: 'tokens'"));
  EXPECT_TRUE(Contains(Join(diagnosis.findings[0].evidence, " "), "train.py"));
}

TEST(Verdict, ExceptionsOfThePeersFollow) {
  const Diagnosis diagnosis =
      Judged("[rank0]: BrokenPipeError: [Errno 32] gone\n[rank1]: ValueError: bad batch\n");
  EXPECT_TRUE(Contains(diagnosis.verdict.text, "Rank 1 raised ValueError: bad batch"));
  EXPECT_EQ(diagnosis.verdict.follows, 1U);
}

TEST(Verdict, TorchrunNamesTheRankThatFailedFirst) {
  const Diagnosis diagnosis = Judged(
      "Root Cause (first observed failure):\n[0]:\n  time      : 2025-01-01_00:00:00\n"
      "  host      : node7\n  rank      : 5 (local_rank: 1)\n  exitcode  : -9 (pid: 4321)\n"
      "  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 4321\n");
  EXPECT_EQ(diagnosis.verdict.rank, 5);
  EXPECT_TRUE(Contains(diagnosis.verdict.text, "SIGKILL")) << diagnosis.verdict.text;
  EXPECT_TRUE(Contains(diagnosis.verdict.text, "rank 5 (node7)")) << diagnosis.verdict.text;
}

TEST(Verdict, WithoutACauseTheFirstRankThatFailedIsNamed) {
  const Diagnosis diagnosis = Judged(
      "Root Cause (first observed failure):\n[0]:\n  host      : node7\n"
      "  rank      : 4 (local_rank: 0)\n  exitcode  : 1 (pid: 55)\n");
  EXPECT_EQ(diagnosis.verdict.certainty, "unknown");
  EXPECT_TRUE(Contains(diagnosis.verdict.text, "rank 4 on node7")) << diagnosis.verdict.text;
}

TEST(Verdict, WhatIsNotKnownIsCalledSo) {
  const Diagnosis warned =
      Judged(Warn(0, "A warning without a known meaning") +
             "[rank0]: RuntimeError: NCCL error in: x.cpp:1, NCCL version 2\n");
  EXPECT_EQ(warned.verdict.certainty, "unknown");
  EXPECT_TRUE(Contains(warned.verdict.text, "A warning without a known meaning"))
      << warned.verdict.text;
  EXPECT_EQ(Judged("[rank0]: Traceback (most recent call last):\n").verdict.certainty, "unknown");
  const Diagnosis cascade = Judged(Warn(0, "socketProgress: Connection closed by remote peer x"));
  EXPECT_EQ(cascade.verdict.certainty, "unknown");
  EXPECT_EQ(Worst(cascade.findings), Severity::kError);
}

TEST(Verdict, HarmlessLinesAreNoFault) {
  const Diagnosis diagnosis = Judged(
      Init(0, 1, true) + Init(0, 1, false) +
      "[rank0]:[W1115 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been "
      "destroyed before we destruct ProcessGroupNCCL.\n" +
      Info(0,
           "socketPollConnect: connect to 10.0.0.1<4> returned Connection refused, retrying "
           "(1/34) after sleep for 100 msec") +
      "  File \"x.py\", line 3, in f\n    raise ValueErrors\nepoch 1 without ValueError: fine\n");
  EXPECT_EQ(Worst(diagnosis.findings), Severity::kFine) << diagnosis.verdict.text;
  EXPECT_EQ(diagnosis.verdict.certainty, "none");
}

TEST(Verdict, AbsentRanksAreNamedOnlyIfTheLogsShowEnough) {
  const auto timeout = [](int rank) {
    return Format(
        "[rank{}]:[E1115 19:50:08.4 x.cpp:629] [Rank {}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
        "ran for 600010 milliseconds before timing out.\n",
        rank, rank);
  };
  std::string most;
  for (int rank = 1; rank < 7; ++rank) most += timeout(rank);
  EXPECT_TRUE(Contains(Judged(most).verdict.text, "rank 0 did not time out"));
  EXPECT_FALSE(Contains(Judged(timeout(5)).verdict.text, "did not time out"));
  EXPECT_FALSE(Contains(Judged(timeout(0) + timeout(1)).verdict.text, "every rank"));
}

TEST(Verdict, GpuDirectIsMissingOnOneHost) {
  const std::string text =
      Info(0, "Channel 00/0 : 0[1] -> 1[2] [receive] via NET/IB/1", "nodeA") +
      Info(1, "Channel 00/0 : 0[1] -> 1[2] [send] via NET/IB/0/GDRDMA", "nodeB");
  EXPECT_TRUE(Contains(Shows(text, "net.gdr-off").title, "nodeA only"));
}

TEST(Exceptions, LastLinesOfTracebacksAreRecognised) {
  std::string_view type;
  std::string_view text;
  for (const std::string line :
       {"ValueError: x y", "[rank3]: ValueError: x y", "[rank3]:ValueError: x y",
        "(Worker pid=12) ERROR 11-15 12:00:01 [core.py:3] ValueError: x y",
        "2025-11-15 12:00:00 ERROR ValueError: x y", "[pod/a/b] 12:00:00 | ValueError: x y"}) {
    ASSERT_TRUE(ExceptionIn(line, &type, &text)) << line;
    EXPECT_EQ(type, "ValueError");
    EXPECT_EQ(text, "x y");
  }
  for (const std::string line : {"we caught a ValueError: x", "    raise ValueError(x)", "Error: x",
                                 "ValueErrors: x", "", "[", "("}) {
    EXPECT_FALSE(ExceptionIn(line, &type, &text)) << line;
  }
}

}  // namespace
}  // namespace diapason::logs
