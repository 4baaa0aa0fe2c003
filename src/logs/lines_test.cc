// Lines: labels, prefixes, cut and long ones, and what each kind says.
#include "host/fake_process.h"
#include "logs/line.h"
#include "logs/logs_test_util.h"

namespace diapason::logs {
namespace {

LibraryLine Parse(std::string_view line) {
  LibraryLine parsed;
  const size_t at = line.find("NCCL ");
  EXPECT_TRUE(ParseLibraryLine(line, at, &parsed)) << line;
  return parsed;
}

TEST(LogLine, TakesApartEveryForm) {
  for (const std::string line : {"h1:10:11 [3] NCCL INFO Using network IB",
                                 "[2025-11-15 19:40:01] h1:10:11 [3] NCCL INFO Using network IB",
                                 "[1,7]<stdout>:h1:10:11 [3] NCCL INFO Using network IB",
                                 "[1,7]<stdout>: h1:10:11 [3] NCCL INFO Using network IB",
                                 "7: h1:10:11 [3] NCCL INFO Using network IB",
                                 "[rank7]:h1:10:11 [3] NCCL INFO Using network IB",
                                 "[default3]:h1:10:11 [3] NCCL INFO Using network IB"}) {
    const LibraryLine parsed = Parse(line);
    EXPECT_EQ(parsed.host, "h1") << line;
    EXPECT_EQ(parsed.pid, 10) << line;
    EXPECT_EQ(parsed.device, 3) << line;
    EXPECT_EQ(parsed.process, "h1:10") << line;
    EXPECT_EQ(parsed.message, "Using network IB") << line;
  }
  const LibraryLine warn = Parse("h1:10:11 [3] misc/socket.cc:520 NCCL WARN no");
  EXPECT_EQ(warn.level, Level::kWarn);
  EXPECT_EQ(warn.host, "h1");
  // Since 2.30 the function stands there too.
  EXPECT_EQ(Parse("h1:10:11 [3] socket.cc:52 (ncclX) NCCL WARN no").host, "h1");
  EXPECT_EQ(Parse("h1:10:11 NCCL CALL ncclGroupStart()").level, Level::kCall);
  EXPECT_EQ(Parse("19929 [1] NCCL INFO comm 0x2").host, "");
}

TEST(LogFacts, HdpRegistersOfTraceBuilds) {
  const LogFacts facts = Read(
      "n0:100:900 [0] 12.5 p2pSendSetup:359 NCCL TRACE Ring 00 : 0 -> 1 HDP 0x7f1000\n"
      "n0:100:900 [0] 12.6 p2pSendSetup:359 NCCL TRACE Ring 00 : 0 -> 2 HDP (nil)\n");
  EXPECT_EQ(facts.hdp.count, 1u);
  EXPECT_EQ(facts.hdp_missing.count, 1u);
}

// NCCL looks for InfiniBand where there is none, on a machine that does not report where its GPU
// is: no problem.
TEST(LogFacts, LookingForWhatIsNotThereIsNoError) {
  const LogFacts facts = Read(
      Info(0, "transport/net_ib.cc:852 -> 3") + Info(0, "Failed to initialize NET plugin IB") +
      Info(0,
           "ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU affinity =  ; CPU "
           "affinity = 0-15)."));
  EXPECT_EQ(facts.returned[3].count, 0u);
  EXPECT_EQ(facts.no_affinity.count, 0u);
  const LogFacts far =
      Read(Info(0,
                "ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU "
                "affinity = 16-31 ; CPU affinity = 0-15)."));
  EXPECT_EQ(far.no_affinity.count, 1u);
}

TEST(LogLine, KnowsLabels) {
  EXPECT_EQ(LabelOf("[1,12]<stderr>:x").rank, 12);
  EXPECT_EQ(LabelOf("[1,12]<stderr>:x").launcher, "mpirun");
  EXPECT_EQ(LabelOf(" 3: x").launcher, "srun");
  EXPECT_EQ(LabelOf("[rank3]:[E1 x").rank, 3);
  EXPECT_EQ(LabelOf("[default3]:x").rank, -1);
  EXPECT_EQ(LabelOf("  1024  256 float").length, 0U);
  EXPECT_EQ(LabelOf("").length, 0U);
}

TEST(LogLine, LinesThatCutEachOtherAreBothRead) {
  const LogFacts facts = Read(Init(0, 2, true) + "n0:100:900 [0] NCCL INFO Boots" +
                              Init(1, 2, true) + "xn0:100:900 [0] NCCL INFO Using network IB\n");
  EXPECT_EQ(facts.damaged, 2U);
  EXPECT_EQ(facts.processes.size(), 2U);
  EXPECT_EQ(facts.members.size(), 2U);
  EXPECT_EQ(facts.hosts[facts.processes[0].host], "n0");
}

TEST(LogLine, LongLinesAreCutAndWhatFollowsIsRead) {
  const std::string filler(3 << 20, 'x');
  const LogFacts facts = Read("NCCL " + filler + "\n" + Init(0, 1, true) + filler + filler + "\n" +
                              Init(0, 1, false) + std::string(70000, 'y') + "\n");
  EXPECT_EQ(facts.long_lines, 3U);
  EXPECT_EQ(facts.lines, 5U);
  ASSERT_EQ(facts.members.size(), 1U);
  EXPECT_TRUE(facts.members[0].complete);
  EXPECT_EQ(facts.Where(facts.members[0].start), "job.log:2");
}

TEST(LogLine, ALastLineWithoutFeedCounts) {
  std::string text = Init(0, 1, true) + Init(0, 1, false);
  text.pop_back();
  EXPECT_TRUE(Read(text).members[0].complete);
}

TEST(LogFacts, VersionsAndDrivers) {
  const LogFacts facts =
      Read(Info(0, "NCCL version 2.18.6+cuda12.2") + Info(0, "cudaDriverVersion 12040") +
           "n1:101:901 [0] NCCL INFO RCCL version : 2.26.6-Unknown \nHIP version  : 7.0.5\n"
           "ROCm version : 7.0.2.0-56\n");
  EXPECT_EQ(facts.libraries[0], "NCCL 2.18.6+cuda12.2");
  EXPECT_EQ(facts.libraries[1], "RCCL 2.26.6");
  EXPECT_EQ(facts.drivers[0], "CUDA driver 12.4");
  EXPECT_EQ(facts.drivers[1], "HIP 7.0.5");
  EXPECT_EQ(facts.drivers[2], "ROCm 7.0.2.0-56");
}

TEST(LogFacts, AVersionLineAlone) {
  EXPECT_EQ(Read("NCCL version 2.21.5+cuda12.4\n").libraries[0], "NCCL 2.21.5+cuda12.4");
}

TEST(LogFacts, InitOfOldAndNewVersions) {
  const LogFacts old = Read(Info(0,
                                 "comm 0x55 rank 0 nranks 4 cudaDev 1 nvmlDev 1 busId 1b000 commId "
                                 "0xabc - Init COMPLETE"));
  ASSERT_EQ(old.communicators.size(), 1U);
  EXPECT_EQ(old.communicators[0].id, 0xabcU);
  EXPECT_EQ(old.members[0].bus_id, 0x1b000U);
  const LogFacts fresh =
      Read(Info(0,
                "[Rank 0] ncclCommInitRankConfig comm 0x55 rank 0 nranks 4 cudaDev 1 nvmlDev 1 "
                "busId 1b000 commId 0xabc - Init START"));
  EXPECT_EQ(fresh.members[0].device, 1);
  EXPECT_FALSE(fresh.members[0].complete);
}

TEST(LogFacts, SplitsOfOneParentMeet) {
  // Since 2.24 a communicator that was split off has no id of its own.
  std::string text = Init(0, 2, true) + Init(1, 2, true);
  for (const int rank : {0, 1}) {
    text +=
        Info(rank, "ncclCommSplit comm 0x77" + std::to_string(rank) + " rank " +
                       std::to_string(rank) + " nranks 2 cudaDev 0 nvmlDev 0 busId 1 parent 0x" +
                       std::to_string(5000 + rank) + " splitCount 1 color 5 key 0 - Init START");
  }
  const LogFacts facts = Read(text);
  ASSERT_EQ(facts.communicators.size(), 2U);
  EXPECT_EQ(facts.communicators[1].members.size(), 2U);
}

TEST(LogFacts, ConnectionsAreCountedOncePerChannel) {
  const LogFacts facts =
      Read(Init(0, 2, true) + Init(1, 2, true) +
           Info(0, "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA/Shared") +
           Info(0, "Channel 01/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA/Shared") +
           Info(1, "Channel 00/0 : 0[0] -> 1[1] [receive] via NET/IB/0/GDRDMA/Shared") +
           Info(1, "Channel 01/0 : 0[0] -> 1[1] [receive] via NET/IB/0/GDRDMA/Shared"));
  const std::vector<HostLink> links = HostLinks(facts);
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].from, "n0");
  EXPECT_EQ(links[0].to, "n1");
  EXPECT_EQ(links[0].kind, "NET/IB with GPU Direct RDMA");
  EXPECT_EQ(links[0].channels, 2U);
  EXPECT_EQ(links[0].pairs, 1U);
}

TEST(LogFacts, WaysOfAllVersions) {
  const LogFacts facts =
      Read(Init(0, 4, true) + Info(0, "Channel 00/01 : 0[0] -> 1[1] via P2P/CUMEM/read") +
           Info(0, "Channel 00 : 0[0] -> 2[2] via SHM/direct/direct") +
           Info(0, "Channel 00/0 : 0[0] -> 3[3] via P2P/direct pointer") +
           Info(0, "Channel 02/0 : 0[0] -> 3[3] via P2P/IPC comm 0x5000 nRanks 04"));
  std::vector<std::string> kinds;
  for (const HostLink& link : HostLinks(facts)) kinds.push_back(link.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"P2P/CUMEM", "P2P/IPC", "P2P/direct", "SHM"}));
}

TEST(LogFacts, ChannelsRingsAndTrees) {
  const LogFacts facts =
      Read(Init(0, 2, true) + Info(0, "Channel 00/24 : 0 1") + Info(0, "Channel 23/24 : 0 1") +
           Info(0, "Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1") +
           Info(0,
                "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p "
                "channels per peer") +
           Info(0,
                "Init timings - ncclCommInitRank: rank 0 nranks 2 total 1.25 (kernels 0.10, alloc "
                "0.20, bootstrap 0.30, allgathers 0.0, topo 0.1, graphs 0.1, connections 0.3, rest "
                "0.1)"));
  const LoggedComm& communicator = facts.communicators[0];
  EXPECT_EQ(communicator.rings, 24);
  EXPECT_EQ(communicator.first_ring, "0 1");
  EXPECT_EQ(communicator.first_tree, "[0] 1/-1/-1->0->-1");
  EXPECT_EQ(communicator.coll_channels, 24);
  EXPECT_EQ(communicator.nvls_channels, 16);
  EXPECT_EQ(communicator.p2p_channels, 32);
  EXPECT_DOUBLE_EQ(facts.members[0].init_seconds, 1.25);
  EXPECT_DOUBLE_EQ(facts.members[0].bootstrap_seconds, 0.3);
}

TEST(LogFacts, ChoicesOfThreeForms) {
  const LogFacts facts =
      Read(Info(0, "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}") +
           Info(0, "AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}") +
           Info(0, "AllGather: 8192 Bytes -> Algo 1 proto 2 time 12.5") +
           Info(0, "16384 Bytes -> Algo 0 proto 0 time 12.5") +
           Info(0, "AllReduce: 99 Bytes -> Algo RING proto LL channel{Lo..H"));
  ASSERT_EQ(facts.choices.size(), 3U);
  EXPECT_EQ(facts.choices[0].smallest, 1024U);
  EXPECT_EQ(facts.choices[0].largest, 4096U);
  EXPECT_EQ(facts.choices[0].channels, 2);
  EXPECT_EQ(facts.words[facts.choices[1].algorithm], "RING");
  EXPECT_EQ(facts.words[facts.choices[1].protocol], "SIMPLE");
  EXPECT_EQ(facts.words[facts.choices[2].algorithm], "TREE");
  EXPECT_EQ(facts.words[facts.choices[2].collective], "?");
  EXPECT_EQ(facts.damaged, 1U);
}

TEST(Lines, CallsAreCountedByCollectiveAndSize) {
  LogFacts facts;
  std::string text;
  const auto add = [&](const char* collective, const char* count, const char* type) {
    text += std::string("h:1:1 [0] NCCL INFO ") + collective +
            ": opCount 1f sendbuff 0x7f recvbuff 0x7f count " + count + " datatype " + type +
            " op 0 root 0 comm 0x55 [nranks=8] stream 0x56\n";
  };
  add("AllReduce", "1024", "7");  // floats
  add("AllReduce", "1024", "7");
  add("AllReduce", "1024", "9");   // bfloat16
  add("AllGather", "1024", "7");   // of every rank
  add("AllReduce", "1024", "99");  // an unknown type
  ASSERT_TRUE(ReadLogText(text, "job.log", &facts).ok());
  ASSERT_EQ(facts.call_kinds.size(), 3U);
  EXPECT_EQ(facts.call_kinds[0].bytes, 4096U);
  EXPECT_EQ(facts.call_kinds[0].times, 2U);
  EXPECT_EQ(facts.call_kinds[1].bytes, 2048U);
  EXPECT_EQ(facts.words[facts.call_kinds[2].collective], "AllGather");
  EXPECT_EQ(facts.call_kinds[2].bytes, 32768U);
}

TEST(LogFacts, TheLastOperationOfEachRank) {
  const LogFacts facts =
      Read(Init(0, 2, true) + Call(0, 1, "AllReduce", 64) + Call(0, 2, "AllGather", 32));
  ASSERT_EQ(facts.members.size(), 1U);
  EXPECT_EQ(facts.members[0].operations, 2U);
  EXPECT_EQ(facts.members[0].op_count, 2U);
  EXPECT_EQ(facts.words[facts.members[0].collective], "AllGather");
  EXPECT_EQ(facts.members[0].elements, 32U);
}

TEST(LogFacts, PluginsThatAreThereAndNot) {
  const LogFacts facts = Read(Info(0, "NET/Plugin: Loaded net plugin NCCL RDMA Plugin v11 (v11)") +
                              Info(0, "TUNER/Plugin: Using diapason (v5)") +
                              Info(0, "PROFILER/Plugin: Could not find: libnccl-profiler.so. ") +
                              Info(0, "NET/Plugin: Using internal network plugin."));
  ASSERT_EQ(facts.plugins.size(), 2U);
  EXPECT_EQ(facts.plugins[0], "net: NCCL RDMA Plugin v11 (v11)");
  EXPECT_EQ(facts.plugins[1], "tuner: diapason (v5)");
  EXPECT_EQ(facts.missing_plugins[0], "profiler libnccl-profiler.so");
}

TEST(LogFacts, TablesHaveLimits) {
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    text += "host" + std::to_string(i) + ":" + std::to_string(i) + ":1 [0] NCCL INFO NCCL_X" +
            std::to_string(i) + " set by environment to " + std::to_string(i) + ".\n";
  }
  const LogFacts facts = Read(text);
  EXPECT_EQ(facts.processes.size(), kMostProcesses);
  EXPECT_EQ(facts.variables.size(), kMostVariables);
  EXPECT_GT(facts.processes_left_out, 0U);
}

TEST(LogReader, RefusesWhatIsNoLog) {
  LogFacts facts;
  const Status pickle = ReadLogText(std::string("\x80\x02}q\x00", 5), "dump", &facts);
  ASSERT_FALSE(pickle.ok());
  EXPECT_TRUE(Contains(pickle.message(), "pickle")) << pickle.message();
  EXPECT_TRUE(Contains(pickle.message(), "breaks off"));
  EXPECT_TRUE(Contains(ReadLogText("\x1f\x8b\x08", "x.gz", &facts).message(), "zcat"));
  EXPECT_FALSE(ReadLogText(std::string(4096, '\0'), "hole", &facts).ok());
  EXPECT_FALSE(ReadLogText(std::string("a\0b\0c\0d\0", 8), "utf16", &facts).ok());
  EXPECT_TRUE(facts.files.empty());
  EXPECT_TRUE(ReadLogText("", "empty", &facts).ok());
  // A stray zero byte is a damaged log's.
  EXPECT_TRUE(ReadLogText("so many letters that one byte" + std::string(1, '\0') + "hardly counts",
                          "y", &facts)
                  .ok());
}

class LogFolder : public ::testing::Test {
 protected:
  // `name` below a folder of this test's own.
  std::string At(const std::string& name) const { return root_.root() + "/" + name; }
  // The warnings of reading these.
  std::vector<std::string> ReadThem(const std::vector<std::string>& paths) {
    std::vector<std::string> warnings;
    facts_ = {};
    status_ = ReadLogs(paths, &facts_, &warnings);
    return warnings;
  }
  const host::FakeRoot root_;
  LogFacts facts_;
  Status status_;
};

TEST_F(LogFolder, AFileNamedTwiceIsReadOnce) {
  root_.Write("/a.log", Info(0, "Using network IB"));
  root_.Link("/b.log", "a.log");
  EXPECT_TRUE(ReadThem({At("a.log"), At("a.log"), At("b.log"), root_.root()}).empty());
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(facts_.files.size(), 1U);
  EXPECT_EQ(facts_.library_lines, 1U);
}

TEST_F(LogFolder, WhatIsNoTextIsLeftOutBesideOthers) {
  root_.Write("/a.log", Info(0, "Using network IB"));
  root_.Write("/core", std::string("ab\0cd", 5));
  const std::vector<std::string> warnings = ReadThem({At("core"), At("a.log")});
  EXPECT_TRUE(status_.ok()) << status_.message();
  EXPECT_EQ(facts_.files.size(), 1U);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(Contains(warnings[0], "core': this is no text")) << warnings[0];
  ReadThem({At("core")});
  EXPECT_EQ(status_.code(), ErrorCode::kInvalid);
  ReadThem({At("core"), At("core")});
  EXPECT_FALSE(status_.ok());
  // One that is not there is an error all the same.
  ReadThem({At("a.log"), At("nowhere")});
  EXPECT_EQ(status_.code(), ErrorCode::kNotFound);
}

TEST_F(LogFolder, FoldersInsideAreNotEntered) {
  root_.Write("/job1/a.log", Info(0, "Using network IB"));
  root_.Write("/job2/a.log", Info(1, "Using network IB"));
  const std::vector<std::string> warnings = ReadThem({root_.root()});
  EXPECT_TRUE(status_.ok());
  EXPECT_TRUE(facts_.files.empty());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(Contains(warnings[0], "not entered; name them: job1, job2")) << warnings[0];
  root_.Write("/b.log", "x\n");
  EXPECT_TRUE(ReadThem({root_.root()}).empty());
}

TEST(LogReader, ReadsTopologiesAndGraphs) {
  LogFacts facts;
  ASSERT_TRUE(ReadLogText("<system version=\"1\">\n <cpu numaid=\"0\">\n"
                          "  <gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\">\n"
                          "   <nvlink target=\"a\" count=\"18\"/>\n  </gpu>\n"
                          "  <gpu dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\">\n  </gpu>\n"
                          "  <net name=\"m\" gdr=\"0\"/>\n",
                          "topo.xml", &facts)
                  .ok());
  ASSERT_EQ(facts.topologies.files.size(), 1U);
  EXPECT_EQ(facts.topologies.files[0].gpus, 2);
  EXPECT_EQ(facts.topologies.files[0].links, 18);
  EXPECT_EQ(facts.topologies.files[0].nics_without_gdr, 1);
  const std::vector<Finding> findings = Diagnose(facts);
  const Finding* bare = Find(findings, "link.gpu-without-link");
  ASSERT_NE(bare, nullptr);
  EXPECT_TRUE(Contains(bare->evidence[0], "topo.xml:6"));
}

}  // namespace
}  // namespace diapason::logs
