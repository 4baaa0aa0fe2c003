// Findings in the logs of failing jobs. The messages are those of NCCL 2.18 to 2.30.
#include "base/text.h"
#include "logs/logs_test_util.h"

namespace diapason::logs {
namespace {

std::string Healthy() {
  std::string text;
  for (const int rank : {0, 1}) {
    text += Info(rank, "NCCL version 2.28.9+cuda12.9") + Info(rank, "cudaDriverVersion 12090") +
            Info(rank, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>") +
            Init(rank, 2, true) + Init(rank, 2, false);
  }
  return text + Info(0, "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA") +
         Call(0, 1, "AllReduce", 64) + Call(1, 1, "AllReduce", 64);
}

TEST(Diagnosis, AHealthyLogShowsNothing) {
  for (const Finding& finding : Diagnose(Read(Healthy()))) ADD_FAILURE() << finding.title;
  EXPECT_EQ(Shows("other\n\nprograms' output\n", "log.nothing").severity, Severity::kNote);
}

TEST(Diagnosis, MessagesHaveTheirRankAndPlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000",
       "rank.duplicate-gpu"},
      {"Call to ibv_reg_mr failed with error Cannot allocate memory", "limit.memlock"},
      {"Cuda failure 2 'out of memory'", "mem.gpu"},
      {"socketProgress: Connection closed by remote peer n1<41000>", "net.peer-gone"},
      {"A warning without a known meaning", "warn.other"}};
  for (const auto& [message, id] : cases) {
    const Finding finding = Shows(Healthy() + Warn(1, message), id);
    ASSERT_FALSE(finding.evidence.empty());
    EXPECT_TRUE(Contains(finding.evidence[0], "job.log:")) << finding.evidence[0];
    EXPECT_TRUE(Contains(finding.evidence[0], message.substr(0, 40))) << finding.evidence[0];
    EXPECT_TRUE(Contains(finding.title, "rank 1 (n1:101)")) << finding.title;
    EXPECT_FALSE(finding.action.empty());
    EXPECT_EQ(Diagnose(Read(Healthy() + Warn(1, message))).size(), 1U) << message;
  }
}

TEST(Diagnosis, OtherProgramsSayThatMemoryIsOut) {
  const Finding finding =
      Shows("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
            "mem.gpu");
  EXPECT_TRUE(Contains(finding.title, "rank 3")) << finding.title;
  Shows("n0: Test NCCL failure common.cu:958 'unhandled system error'\n", "op.failed");
}

TEST(Diagnosis, ErrorsOnTheirWayUpCountOnlyAlone) {
  const std::string trace =
      Info(0, "init.cc:1234 -> 2") + Info(0, "group.cc:64 -> 2 [Async thread]");
  EXPECT_TRUE(Contains(Shows(trace, "op.returned").title, "system error"));
  const std::vector<Finding> findings =
      Diagnose(Read(trace + Warn(0, "Call to ibv_create_qp failed with error Bad address")));
  EXPECT_EQ(Find(findings, "op.returned"), nullptr);
}

TEST(Diagnosis, RanksThatNeverFinished) {
  const Finding finding = Shows(
      Init(0, 4, true) + Init(0, 4, false) + Init(1, 4, true) + Init(3, 4, true), "hang.init");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_TRUE(Contains(finding.title, "Ranks 1, 3 of communicator 0xfeed")) << finding.title;
  EXPECT_TRUE(Contains(finding.title, "ranks 2 did not even begin")) << finding.title;
}

TEST(Diagnosis, WorkProvesThatInitEnded) {
  const std::string text = Init(0, 2, true) + Init(1, 2, true) + Init(1, 2, false) +
                           Call(0, 1, "AllReduce", 64) + Call(1, 1, "AllReduce", 64);
  EXPECT_EQ(Find(Diagnose(Read(text)), "hang.init"), nullptr);
}

TEST(Diagnosis, LogsOfSomeRanksOnly) {
  const Finding finding = Shows(Init(0, 8, true) + Init(0, 8, false), "rank.not-here");
  EXPECT_EQ(finding.severity, Severity::kNote);
  EXPECT_TRUE(Contains(finding.title, "1 of the 8")) << finding.title;
  EXPECT_TRUE(Contains(finding.title, "missing: 1-7")) << finding.title;
}

TEST(Diagnosis, RankNumbersThatClash) {
  const std::string other =
      "n9:999:1 [0] NCCL INFO ncclCommInitRank comm 0x9 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId "
      "9 commId 0xfeed - Init COMPLETE\n";
  Shows(Init(0, 2, true) + Init(0, 2, false) + other, "rank.twice");
  Shows(Init(0, 2, true) + Init(1, 3, true), "rank.count-differs");
  Shows(Init(0, 2, true) +
            Info(1,
                 "ncclCommInitRank comm 0x5001 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 "
                 "commId 0xfeed - Init START",
                 "n0"),
        "rank.duplicate-gpu");
}

TEST(Diagnosis, CollectivesThatDiffer) {
  const std::string start =
      Init(0, 2, true) + Init(0, 2, false) + Init(1, 2, true) + Init(1, 2, false);
  const Finding finding =
      Shows(start + Call(0, 1, "AllReduce", 64) + Call(1, 1, "AllReduce", 65), "op.mismatch");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_EQ(finding.evidence.size(), 2U);
  // Send and Recv make the counters of ranks differ; nothing follows from that.
  EXPECT_EQ(Find(Diagnose(Read(start + Call(0, 1, "Send", 4) + Call(0, 2, "AllReduce", 64) +
                               Call(1, 2, "AllReduce", 8))),
                 "op.mismatch"),
            nullptr);
}

TEST(Diagnosis, WhoIsBehind) {
  const std::string text = Healthy() + Call(0, 2, "AllGather", 8);
  EXPECT_EQ(Shows(text, "op.behind").severity, Severity::kNote);
  // It follows from a fault with a cause of its own, and counts where there is none.
  EXPECT_EQ(Find(Diagnose(Read(text + Warn(0, "Cuda failure 'x'"))), "op.behind"), nullptr);
  const Finding finding =
      Shows(text + Warn(0, "socket: Connection closed by remote peer"), "op.behind");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_TRUE(Contains(finding.title, "Rank 1 of communicator 0xfeed")) << finding.title;
  EXPECT_TRUE(Contains(finding.title, "AllGather")) << finding.title;
  EXPECT_TRUE(Contains(finding.title, "last opCount 0x1 ")) << finding.title;
  // The library writes them in base 16, "12" is eighteen.
  EXPECT_TRUE(Contains(Shows(Healthy() + Call(0, 12, "AllGather", 8), "op.behind").title,
                       "got to 0x12 (AllGather)"));
}

std::string Timeout(int rank, int sequence, const std::string& operation) {
  return Format(
      "[rank{}]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank {}] Watchdog "
      "caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, "
      "NumelIn=131072, NumelOut=131072, Timeout(ms)=600000) ran for 600081 milliseconds "
      "before timing out.\n",
      rank, rank, sequence, operation);
}

TEST(Diagnosis, TheWatchdogNamesWhoIsMissing) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) text += Init(rank, 4, true) + Init(rank, 4, false);
  for (const int rank : {0, 1, 3}) text += Timeout(rank, 1580, "ALLREDUCE");
  const Finding finding = Shows(text, "hang.timeout");
  EXPECT_TRUE(Contains(finding.title, "Collective 1580 (ALLREDUCE of 131072 elements)"))
      << finding.title;
  EXPECT_TRUE(Contains(finding.title, "ranks 0, 1, 3 after 600 s")) << finding.title;
  EXPECT_TRUE(Contains(finding.title, "rank 2 did not time out")) << finding.title;
}

TEST(Diagnosis, TheWatchdogShowsWhereRanksPart) {
  EXPECT_TRUE(
      Contains(Shows(Timeout(0, 7, "ALLREDUCE") + Timeout(1, 7, "BROADCAST"), "op.mismatch").title,
               "called different collectives"));
  EXPECT_TRUE(
      Contains(Shows(Timeout(0, 7, "ALLREDUCE") + Timeout(1, 9, "ALLREDUCE"), "hang.timeout").title,
               "rank 1 waited in a later one"));
  const std::string start =
      "[rank1]:[E1218 20:27:21.48 ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank "
      "1] Exception (either an error or timeout) detected by watchdog at work: 7, last enqueued "
      "NCCL work: ";
  const std::string end = ", last completed NCCL work: 6.\n";
  std::string other = start;
  other.replace(other.find("[rank1]"), 7, "[rank0]");
  other.replace(other.find("Rank 1]"), 7, "Rank 0]");
  const Finding finding =
      Shows(Timeout(0, 7, "X") + Timeout(1, 7, "X") + other + "12" + end + start + "8" + end,
            "hang.timeout");
  EXPECT_TRUE(Contains(finding.action, "rank 1 first")) << finding.action;
}

TEST(Diagnosis, VersionsThatDoNotFit) {
  Shows(Info(0, "NCCL version 2.28.9+cuda12.9") + Init(0, 2, true) +
            Info(1, "NCCL version 2.27.5+cuda12.9") + Init(1, 2, true),
        "version.mismatch");
  Shows(Info(0, "NCCL version 2.29.2+cuda13.1") + Info(0, "cudaDriverVersion 12040"),
        "version.driver");
  Shows(
      "# nccl-tests version 2.17.8 nccl-headers=22403 nccl-library=22809\n"
      "# Collective test starting: all_reduce_perf\n",
      "version.headers");
}

TEST(Diagnosis, PluginsThatWereAskedFor) {
  const std::string missing = Info(0, "TUNER/Plugin: Could not find: libnccl-tuner-x.so.");
  EXPECT_EQ(Find(Diagnose(Read(missing)), "plugin.missing"), nullptr);
  const Finding finding =
      Shows(Info(0, "NCCL_TUNER_PLUGIN set by environment to x") + missing, "plugin.missing");
  EXPECT_TRUE(Contains(finding.title, "libnccl-tuner-x.so")) << finding.title;
}

TEST(Diagnosis, VariablesThatDiffer) {
  const std::string names[] = {"NCCL_ALGO", "NCCL_SOCKET_IFNAME", "NCCL_IB_TIMEOUT"};
  const Severity severities[] = {Severity::kError, Severity::kNote, Severity::kWarning};
  for (int i = 0; i < 3; ++i) {
    const Finding finding = Shows(Info(0, names[i] + " set by environment to 22.") +
                                      Info(1, names[i] + " set by environment to 23."),
                                  "env.differs");
    EXPECT_EQ(finding.severity, severities[i]) << names[i];
    EXPECT_EQ(finding.evidence.size(), 2U);
  }
  const std::string one = Info(0, "NCCL_ALGO set by environment to Ring") +
                          Info(1, "NCCL_DEBUG set by environment to INFO");
  EXPECT_EQ(Shows(one, "env.not-everywhere").severity, Severity::kNote);
}

// Ranks that open one file write over each other.
TEST(Diagnosis, AbsentRanksMeanNothingInASharedLogFile) {
  const std::string begun = Init(0, 4, true, "n") + Init(2, 4, true, "n") + Init(2, 4, false, "n");
  Shows(begun, "hang.init");
  const std::string shared =
      Info(0, "NCCL_DEBUG_FILE set by environment to /tmp/nccl.%h.log", "n") + begun;
  EXPECT_EQ(Shows(shared, "log.shared-file").severity, Severity::kWarning);
  EXPECT_EQ(Find(Diagnose(Read(shared)), "hang.init"), nullptr);
  const std::string own =
      Info(0, "NCCL_DEBUG_FILE set by environment to /tmp/nccl.%h.%p", "n") + begun;
  EXPECT_EQ(Find(Diagnose(Read(own)), "log.shared-file"), nullptr);
  Shows(own, "hang.init");
}

TEST(Diagnosis, TheFullStopOfASentenceIsNoPartOfAValue) {
  const std::vector<Finding> findings =
      Diagnose(Read(Info(0, "NCCL_DEBUG set by environment to INFO.")));
  EXPECT_EQ(Find(findings, "env.bad-value"), nullptr);
}

TEST(Diagnosis, NvlinkThatIsNotUsed) {
  const std::string start = Init(0, 2, true, "n") + Init(1, 2, true, "n") + Init(0, 2, false, "n") +
                            Init(1, 2, false, "n");
  const std::string shm = Info(0, "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", "n");
  EXPECT_TRUE(Contains(Shows(start + shm, "link.no-p2p").title, "by SHM"));
  const Finding finding = Shows(start + Info(0, "+ NVL[240.0] - GPU/44000", "n") +
                                    Info(0, "NCCL_P2P_DISABLE set by environment to 1.", "n") + shm,
                                "link.nvlink-unused");
  EXPECT_TRUE(Contains(finding.action, "NCCL_P2P_DISABLE")) << finding.action;
}

TEST(Diagnosis, SocketsAndGpuDirect) {
  const std::string start = Init(0, 2, true) + Init(1, 2, true);
  const std::string socket = Info(0, "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0");
  Finding finding =
      Shows(start + socket + Info(0, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>"),
            "net.sockets");
  EXPECT_TRUE(Contains(finding.title, "although there are InfiniBand")) << finding.title;
  Shows(start + socket + Info(0, "NET/Socket : Using [0]docker0:172.17.0.1<0>"),
        "net.virtual-interface");
  const std::string ib = Info(0, "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0");
  finding = Shows(start + ib, "net.gdr-off");
  EXPECT_TRUE(Contains(finding.title, "all 1 network channels")) << finding.title;
  finding = Shows(start + ib + Info(0, "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/1/GDRDMA") +
                      Info(0, "GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 8 > 5)"),
                  "net.gdr-off");
  EXPECT_TRUE(Contains(finding.title, "1 of 2 network channels")) << finding.title;
  EXPECT_TRUE(Contains(finding.action, "too far apart")) << finding.action;
}

TEST(Diagnosis, AdaptersThatAreNotUsed) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    text += Init(rank, 8, true, rank < 4 ? "a" : "b");
  }
  text +=
      Info(0, "NET/IB : Using [0]m0:1/IB [1]m1:1/IB [2]m2:1/IB [3]m3:1/IB [RO]; OOB e:1<0>", "a");
  text += Info(0, "Channel 00/0 : 0[0] -> 4[0] [send] via NET/IB/0/GDRDMA", "a");
  EXPECT_TRUE(Contains(Shows(text, "net.few-adapters").title, "1 of 4 network adapters"));
}

TEST(Diagnosis, SlowInitAndSlowSmallMessages) {
  const Finding slow =
      Shows(Init(0, 1, true) + Init(0, 1, false) +
                Info(0,
                     "Init timings - ncclCommInitRank: rank 0 nranks 1 total 65.10 (kernels "
                     "0.10, alloc 0.20, bootstrap 60.30, allgathers 0.0)"),
            "init.slow");
  EXPECT_TRUE(Contains(slow.title, "65.1 s, most of it to find each other")) << slow.title;
  Shows(Info(0, "NCCL_PROTO set by environment to Simple") +
            Info(0, "AllReduce: 8 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}"),
        "latency.protocol");
}

TEST(Diagnosis, AffinityMemoryAndProxies) {
  Shows(Info(0,
             "ncclTopoGetCpuAffinity: Affinity for GPU 1 is empty, ignoring. (GPU affinity = "
             "0-31 ; CPU affinity = 64-95)."),
        "cpu.affinity");
  Shows(Info(0, "[Proxy Service] Device 0 CPU core 7", "n") +
            Info(1, "[Proxy Service] Device 1 CPU core 7", "n"),
        "cpu.proxies-share-core");
  Shows(Info(0, "src/init.cc:10 Cuda Alloc Size 5000000000 pointer 0x7 flags 0"), "mem.buffers");
}

TEST(Diagnosis, RcclProxyTrace) {
  const std::string head =
      "n0:100:900 [0] /rccl/src/commDump.cc:23 NCCL WARN commDump for all active ops "
      "mapSizeMB:0.01\n";
  const auto line = [](int op, const char* status, int done) {
    return Format(
        "createT:1731628, lastT:1731629, postT:17, sendT:17, cntNm:5, "
        "<17371127300000000123:{}:0>, [fu,pr,pa,tb,ck]:4,2,1,1024,512, 3->5(S), chan:1, "
        "status:{}, ns:8, nb:1024, po:8, ke:0, tail/h:3, recvT:0, connSz/h:-1, trans:4, "
        "flushed:0, recvd:0, done:{}\n",
        op, status, done);
  };
  const std::string text =
      head + line(7, "SENDING", 3) + line(6, "DONE", 8) + line(9, "POSTING", 0);
  const LogFacts facts = Read(text);
  EXPECT_EQ(facts.proxy_traces.finished, 1U);
  EXPECT_EQ(facts.proxy_traces.unfinished, 2U);
  const Finding finding = Shows(text, "hang.proxy");
  EXPECT_TRUE(Contains(finding.title, "opCount 7, rank 3 to rank 5, channel 1, 3 of 8 steps"))
      << finding.title;
  EXPECT_EQ(Find(Diagnose(facts), "warn.other"), nullptr);
}

TEST(Diagnosis, NcclProxyDump) {
  const LogFacts facts =
      Read("ACTIVE OPS\n[0-3|17| Send 1S/0]\n|\nsomething else\nv\n[X]\nFREE OPS\n[0-1]->[X]\n");
  ASSERT_EQ(facts.proxy_dumps.size(), 1U);
  EXPECT_TRUE(Contains(facts.proxy_dumps[0].text, "Send 1S/0"));
  EXPECT_FALSE(Contains(facts.proxy_dumps[0].text, "something else"));
}

// Two dumps of one rank tell what stands still; those of two ranks are not compared.
TEST(Diagnosis, DumpsAreOneRanksOwn) {
  const std::string waits = "ACTIVE OPS\n[0-3|17| Recv 1R/0]\n|\nv\n[X]\nFREE OPS\n[0-1]->[X]\n";
  const std::string empty = "ACTIVE OPS\n[X]\nFREE OPS\n[0-1]->[X]\n";
  LogFacts facts;
  EXPECT_TRUE(ReadLogText(waits + waits, "rank0.log", &facts).ok());
  EXPECT_TRUE(ReadLogText(empty, "rank1.log", &facts).ok());
  size_t stuck = 0;
  for (const Finding& finding : Diagnose(facts)) {
    if (!Contains(finding.title, "the same in both dumps")) continue;
    ++stuck;
    EXPECT_TRUE(Contains(finding.evidence[0], "rank0.log:1")) << finding.evidence[0];
  }
  EXPECT_EQ(stuck, 1U);
}

TEST(Ranks, AsPeopleWriteThem) {
  EXPECT_EQ(RanksText({3, 1, 2, 0, 9}), "0-3, 9");
  EXPECT_EQ(RanksText({4, 5}), "4, 5");
  std::vector<int64_t> odd;
  for (int i = 0; i < 40; i += 2) odd.push_back(i);
  EXPECT_EQ(RanksText(odd), "0, 2, 4, 6, 8, 10, 12, 14 and 12 more");
}

}  // namespace
}  // namespace diapason::logs
