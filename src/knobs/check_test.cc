#include "knobs/check.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>

#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "knobs/files/read_file.h"

namespace diapason::knobs {
namespace {

const CheckedFor kNccl = {Library::kNccl, 22809, nullptr};
const CheckedFor kNewest = {Library::kNccl, 23007, nullptr};
const CheckedFor kRccl = {Library::kRccl, 22803, nullptr};
const CheckedFor kAny = {Library::kNccl, 0, nullptr};

std::vector<Finding> Check(const std::string& text, const CheckedFor& checked_for = kNccl) {
  return CheckAssignments(ReadVariables(text, "f", {}).assignments, checked_for,
                          Catalogue::BuiltIn());
}

// "error env.unknown-name, note env.deprecated", without what is fine.
std::string Ids(const std::string& text, const CheckedFor& checked_for = kNccl) {
  std::vector<std::string> ids;
  for (const Finding& finding : Check(text, checked_for)) {
    if (finding.severity == Severity::kFine) continue;
    ids.push_back(std::string(SeverityName(finding.severity)) + " " + finding.id);
  }
  return Join(ids, ", ");
}

// The finding of this id whose title or action says `part`.
::testing::AssertionResult Finds(const std::string& text, const std::string& id,
                                 const std::string& part, const CheckedFor& checked_for = kNccl) {
  std::string all;
  for (const Finding& finding : Check(text, checked_for)) {
    const std::string whole = finding.title + " > " + finding.action;
    if (finding.id == id && whole.find(part) != std::string::npos) {
      return ::testing::AssertionSuccess();
    }
    if (finding.severity > Severity::kFine) all += finding.id + ": " + whole + "\n";
  }
  return ::testing::AssertionFailure() << "no " << id << " with '" << part << "' among:\n" << all;
}

TEST(CheckNames, UnknownOnes) {
  EXPECT_EQ(Ids("NCCL_DEBGU=INFO"), "error env.unknown-name");
  EXPECT_TRUE(Finds("NCCL_DEBGU=INFO", "env.unknown-name", "NCCL_DEBUG is the nearest"));
  EXPECT_EQ(Ids("NCCL_XYZZY=1"), "warning env.unknown-name");
  // Small letters count in an environment; in a file they are a script's own variables.
  const MapEnvironment small(std::map<std::string, std::string>{{"nccl_debug", "INFO"}});
  const std::vector<Finding> findings =
      CheckAssignments(FromEnvironment(small, "e"), kNccl, Catalogue::BuiltIn());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].action, "Write NCCL_DEBUG");
  EXPECT_EQ(Ids("nccl_debug=INFO"), "");
  EXPECT_TRUE(Finds("NCLL_DEBUG=INFO", "env.unknown-name", "NCCL_DEBUG is the nearest"));
  for (const char* ghost : {"NCCL_TIMEOUT=600", "NCCL_NVLINK_DISABLE=0",
                            "NCCL_DEBUG_LOG_DIR=./logs", "RCCL_PROXY_TRACE=1"}) {
    EXPECT_EQ(Ids(ghost), "error env.unknown-name") << ghost;
    EXPECT_EQ(Ids(ghost, kRccl), "error env.unknown-name") << ghost;
    EXPECT_EQ(Ids(ghost, kAny), "error env.unknown-name") << ghost;
  }
  EXPECT_TRUE(Finds("RCCL_PROXY_TRACE=1", "env.unknown-name", "RCCL_ENABLE_PROXY_TRACE"));
  EXPECT_TRUE(Finds("NCCL_DEBUG_LOG_DIR=.", "env.unknown-name", "NCCL_DEBUG_FILE"));
}

TEST(CheckNames, OthersReadTheirs) {
  for (const char* line :
       {"TORCH_NCCL_BLOCKING_WAIT=1", "NCCL_OFI_TUNER=1", "OFI_NCCL_NIC_DUP_CONNS=2",
        "NCCL_INSPECTOR_ENABLE=1", "NCCL_PROFILE_EVENT_MASK=3", "NCCL_HOME=/opt/nccl",
        "NCCL_VERSION=2.21.5", "GLOO_SOCKET_IFNAME=eth0", "HSA_ENABLE_SDMA=0",
        "DIAPASON_MODE=observe", "NCCL_WORKLOAD_OVERLAP=1\nNCCL_TUNER_PLUGIN=example",
        "NCCL_TUNER_EPS=0.1\nNCCL_TUNER_PLUGIN=example"}) {
    EXPECT_EQ(Ids(line), "") << line;
  }
  // Known, but needs a plugin that reads it.
  EXPECT_EQ(Ids("NCCL_TUNER_CONFIG_FILE=a.conf"), "note env.inert");
  EXPECT_EQ(Ids("NCCL_TUNER_CONFIG_FILE=a.conf\nNCCL_TUNER_PLUGIN=example"), "");
  EXPECT_EQ(Ids("NCCL_BLOCKING_WAIT=1"), "note env.deprecated");
}

TEST(CheckNames, OurSettings) {
  EXPECT_TRUE(Finds("DIAPASON_MOD=off", "env.unknown-name", "DIAPASON_MODE"));
  EXPECT_TRUE(Finds("DIAPASON_MODE=fast", "env.bad-value", "the plugin steps aside"));
}

TEST(CheckNames, NotReadHere) {
  EXPECT_TRUE(Finds("NCCL_CREATE_THREAD_CONTEXT=1", "env.not-read-here",
                    "not read any more by NCCL 2.30.7", kNewest));
  EXPECT_EQ(Ids("NCCL_CREATE_THREAD_CONTEXT=1", kNccl), "");
  EXPECT_EQ(Ids("NCCL_CREATE_THREAD_CONTEXT=1", kRccl), "");
  EXPECT_EQ(Ids("NCCL_CREATE_THREAD_CONTEXT=1", kAny), "note env.not-read-here");
  EXPECT_TRUE(Finds("NCCL_MULTI_RANK_GPU_ENABLE=1", "env.not-read-here", "not read yet"));
  EXPECT_TRUE(Finds("RCCL_MSCCL_ENABLE=1", "env.not-read-here", "is a variable of RCCL"));
  EXPECT_EQ(Ids("RCCL_MSCCL_ENABLE=1", {Library::kRccl, 22105, nullptr}), "");
}

// A version that is not wholly known may read what the catalogue does not have.
TEST(CheckNames, NewerThanTheCatalogue) {
  const CheckedFor newer = {Library::kNccl, 23402, nullptr};
  const CheckedFor newer_rccl = {Library::kRccl, 23102, nullptr};
  EXPECT_EQ(Ids("NCCL_XYZZY=1", newer), "note env.unknown-name");
  EXPECT_TRUE(
      Finds("NCCL_XYZZY=1", "env.unknown-name", "not known to this release of diapason", newer));
  EXPECT_TRUE(Finds("NCCL_XYZZY=1", "env.unknown-name", "NCCL 2.34.2 may read it", newer));
  EXPECT_EQ(Ids("NCCL_DEBGU=INFO", newer), "warning env.unknown-name");
  // What no version up to the newest known one has read is still said so, and so is what is gone.
  EXPECT_EQ(Ids("NCCL_TIMEOUT=600", newer), "error env.unknown-name");
  EXPECT_EQ(Ids("NCCL_CREATE_THREAD_CONTEXT=1", newer), "warning env.not-read-here");
  EXPECT_EQ(Ids("NCCL_XYZZY=1", {Library::kNccl, 23102, nullptr}), "warning env.unknown-name");
  // RCCL takes over NCCL's variables: of its releases after 2.28.3 not all are known.
  EXPECT_EQ(Ids("NCCL_MULTI_RANK_GPU_ENABLE=1", kRccl), "warning env.not-read-here");
  EXPECT_EQ(Ids("NCCL_MULTI_RANK_GPU_ENABLE=1", newer_rccl), "note env.not-read-here");
}

TEST(CheckNames, WhatTheNewestReleasesRead) {
  const CheckedFor nccl31 = {Library::kNccl, 23102, nullptr};
  const CheckedFor nccl32 = {Library::kNccl, 23203, nullptr};
  const CheckedFor rccl30 = {Library::kRccl, 23004, nullptr};
  EXPECT_EQ(Ids("NCCL_IB_PKEY_VALUE=0x8111", nccl31), "");
  EXPECT_TRUE(Finds("NCCL_IB_PKEY_VALUE=1", "env.not-read-here", "not read yet", kNewest));
  EXPECT_EQ(Ids("NCCL_DEBUG=ATTN", nccl32), "");
  EXPECT_EQ(Ids("NCCL_DEBUG=attn\nNCCL_DEBUG_FILE=/tmp/a.%h.%p", nccl32), "");
  EXPECT_EQ(Ids("NCCL_DEBUG=ATTN", nccl31), "error env.bad-value");
  EXPECT_EQ(Ids("NCCL_DEBUG=ATTN", kRccl), "error env.bad-value");
  EXPECT_EQ(Ids("NCCL_DEBUG_TIMESTAMP_LEVELS=WARN,ATTN\nNCCL_DEBUG=WARN", nccl32), "");
  EXPECT_EQ(Ids("NCCL_RAS_TIMEOUT_FACTOR=0.5", nccl31), "");
  EXPECT_EQ(Ids("NCCL_RAS_TIMEOUT_FACTOR=0.5x", nccl31),
            "warning env.bad-value, warning env.bad-value");
  EXPECT_NE(Ids("NCCL_RAS_TIMEOUT_FACTOR=0.5", kNewest), "");
  // MSCCL and MSCCL++ are gone.
  EXPECT_TRUE(Finds("RCCL_MSCCL_ENABLE=1", "env.not-read-here", "not read any more by RCCL 2.30.4",
                    rccl30));
  EXPECT_EQ(Ids("RCCL_MSCCLPP_THRESHOLD=1", rccl30), "warning env.not-read-here");
  EXPECT_EQ(Ids("RCCL_DDA_ENABLE=0", rccl30), "");
}

TEST(CheckNames, PluginsReadTheirs) {
  for (const char* line :
       {"NCCL_IBEXT_DISABLE=1", "OFI_NCCL_PROTOCOL=rdma", "OFI_NCCL_DISABLE_DMABUF=true",
        "NCCL_FASTRAK_IFNAME=eth1,eth2", "NCCL_GPUDIRECTTCPX_SOMETHING=1", "FI_PROVIDER=efa",
        "UCX_TLS=rc", "SHARP_COLL_LOG_LEVEL=3", "NCCL_PLUGIN_P2P=ucx"}) {
    EXPECT_EQ(Ids(line), "") << line;
    EXPECT_EQ(Ids(line, kRccl), "") << line;
    EXPECT_EQ(Ids(line, kAny), "") << line;
  }
  const auto fine = [](const char* line) { return Check(line).front().title; };
  EXPECT_EQ(fine("NCCL_IBEXT_DISABLE=1"),
            "NCCL_IBEXT_DISABLE is read by the RDMA-SHARP plugin (default 0)");
  EXPECT_EQ(fine("FI_PROVIDER=efa"), "FI_PROVIDER is read by libfabric");
  // Their values and names are checked too.
  EXPECT_EQ(Ids("OFI_NCCL_PROTOCOL=tcp"), "error env.bad-value");
  EXPECT_EQ(Ids("NCCL_IBEXT_DISABLE=yes"), "error env.bad-value");
  EXPECT_TRUE(Finds("OFI_NCCL_PROTOCL=RDMA", "env.unknown-name", "OFI_NCCL_PROTOCOL is the"));
  EXPECT_TRUE(Finds("NCCL_IBEXT_DISABEL=1", "env.unknown-name", "NCCL_IBEXT_DISABLE is the"));
}

TEST(CheckNames, Deprecated) {
  EXPECT_TRUE(Finds("NCCL_MIN_NRINGS=4", "env.deprecated", "NCCL_MIN_CTAS"));
  EXPECT_TRUE(Finds("NCCL_MAX_NRINGS=4", "env.deprecated", "NCCL_MAX_CTAS"));
  EXPECT_TRUE(Finds("NCCL_LAUNCH_MODE=PARALLEL", "env.deprecated", "NCCL_LAUNCH_MODE"));
  EXPECT_TRUE(Finds("NCCL_NET_GDR_LEVEL=3", "env.deprecated", "NCCL_NET_GDR_LEVEL=PHB"));
}

TEST(CheckTogether, Inert) {
  EXPECT_TRUE(Finds("NCCL_GDRCOPY_SYNC_ENABLE=0", "env.inert", "without NCCL_GDRCOPY_ENABLE=1"));
  EXPECT_EQ(Ids("NCCL_GDRCOPY_SYNC_ENABLE=0"), "warning env.inert");
  EXPECT_EQ(Ids("NCCL_GDRCOPY_SYNC_ENABLE=1"), "note env.inert");
  EXPECT_EQ(Ids("NCCL_GDRCOPY_FLUSH_ENABLE=1\nNCCL_GDRCOPY_ENABLE=1"), "");
  EXPECT_TRUE(Finds("NCCL_DEBUG_SUBSYS=NET", "env.inert", "without NCCL_DEBUG=INFO"));
  EXPECT_TRUE(Finds("NCCL_DEBUG_SUBSYS=NET\nNCCL_DEBUG=WARN", "env.inert", "NCCL_DEBUG=INFO"));
  EXPECT_EQ(Ids("NCCL_DEBUG_SUBSYS=NET\nNCCL_DEBUG=info"), "");
  EXPECT_EQ(Ids("NCCL_DEBUG_FILE=/tmp/a.%h.%p\nNCCL_DEBUG=WARN"), "");
  EXPECT_TRUE(Finds("NCCL_DEBUG_FILE=/tmp/a.%h.%p", "env.inert", "NCCL_DEBUG"));
}

TEST(CheckTogether, Contradictions) {
  struct Case {
    const char* text;
    const char* part;
  };
  const Case cases[] = {
      {"NCCL_MIN_CTAS=8\nNCCL_MAX_CTAS=4", "lowers the minimum to the maximum"},
      {"NCCL_MIN_NCHANNELS=8\nNCCL_MAX_NCHANNELS=4", "the minimum wins"},
      {"NCCL_MIN_NRINGS=8\nNCCL_MIN_NCHANNELS=4", "NCCL_MIN_NCHANNELS wins"},
      {"NCCL_MAX_NCHANNELS=8\nNCCL_MAX_CTAS=4", "the smaller of both counts"},
      {"NCCL_IB_DISABLE=1\nNCCL_IB_HCA=mlx5_0", "turns InfiniBand and RoCE off"},
      {"NCCL_P2P_DISABLE=1\nNCCL_P2P_LEVEL=PIX", "NCCL_P2P_LEVEL is not looked at"},
      {"NCCL_NET=Socket\nNCCL_IB_TIMEOUT=22", "keeps InfiniBand and RoCE out"},
      {"NCCL_NET=IB\nNCCL_IB_DISABLE=1", "no communicator"},
      {"NCCL_SHM_DISABLE=1\nNCCL_P2P_DISABLE=1", "talk through the network"},
      {"NCCL_ALGO=NVLS\nNCCL_NVLS_ENABLE=0", "no algorithm is left"},
      {"NCCL_ALGO=NVLS,Ring\nNCCL_NVLS_ENABLE=0", "NCCL_NVLS_ENABLE=0 turns off"},
      {"NCCL_ALGO=CollNetChain", "NCCL_COLLNET_ENABLE=1"},
      {"NCCL_CUMEM_ENABLE=0\nNCCL_MNNVL_ENABLE=1", "needs cuMem"},
      {"NCCL_CUMEM_ENABLE=0\nNCCL_CUMEM_HOST_ENABLE=1", "does nothing without NCCL_CUMEM_ENABLE"},
  };
  for (const Case& one : cases) {
    EXPECT_TRUE(Finds(one.text, "env.contradiction", one.part)) << one.text;
  }
  EXPECT_TRUE(Finds("NCCL_NVLS_ENABLE=1\nNCCL_MULTI_RANK_GPU_ENABLE=1", "env.contradiction",
                    "several ranks on a GPU", kNewest));
  EXPECT_TRUE(Finds("NCCL_SOCKET_NTHREADS=16\nNCCL_NSOCKS_PERTHREAD=8", "env.bad-value", "is 128"));
  for (const char* fine :
       {"NCCL_MIN_CTAS=4\nNCCL_MAX_CTAS=8", "NCCL_IB_DISABLE=0\nNCCL_IB_HCA=mlx5_0",
        "NCCL_P2P_DISABLE=0\nNCCL_P2P_LEVEL=PIX", "NCCL_NET=IB\nNCCL_IB_TIMEOUT=22",
        "NCCL_SHM_DISABLE=1\nNCCL_P2P_DISABLE=0", "NCCL_ALGO=Ring\nNCCL_NVLS_ENABLE=0",
        "NCCL_ALGO=^NVLS\nNCCL_NVLS_ENABLE=0", "NCCL_MAX_NCHANNELS=4\nNCCL_MAX_CTAS=4",
        "NCCL_ALGO=CollNetChain,Ring\nNCCL_COLLNET_ENABLE=1"}) {
    for (const Finding& finding : Check(fine)) {
      EXPECT_NE(finding.id, "env.contradiction") << fine << ": " << finding.title;
    }
  }
  EXPECT_EQ(Ids("NCCL_ALGO=NVLS\nNCCL_NVLS_ENABLE=0"),
            "error env.contradiction, warning env.bad-value");
  EXPECT_EQ(Ids("NCCL_ALGO=NVLS\nNCCL_NVLS_ENABLE=0", {Library::kNccl, 22105, nullptr}),
            "warning env.contradiction");
  EXPECT_EQ(Ids("NCCL_ALGO=NVLS,Ring\nNCCL_NVLS_ENABLE=0"), "warning env.contradiction");
}

TEST(CheckTogether, ConflictsOfTheTables) {
  EXPECT_TRUE(Finds("NCCL_IB_GID_INDEX=3\nNCCL_IB_ROCE_VERSION_NUM=2", "env.contradiction",
                    "NCCL_IB_ROCE_VERSION_NUM is not looked at"));
  EXPECT_EQ(Ids("NCCL_IB_GID_INDEX=-1\nNCCL_IB_ROCE_VERSION_NUM=2"), "");
  // Once per pair, and not again what a rule has said.
  size_t count = 0;
  for (const Finding& finding : Check("NCCL_P2P_DISABLE=1\nNCCL_P2P_LEVEL=PIX")) {
    count += finding.id == "env.contradiction" ? 1 : 0;
  }
  EXPECT_EQ(count, 1u);
}

TEST(CheckTuner, FightsWithIt) {
  EXPECT_EQ(Ids("NCCL_ALGO=Ring"), "note env.costly");
  EXPECT_EQ(Ids("NCCL_ALGO=allreduce:Ring"), "");
  EXPECT_TRUE(Finds("NCCL_ALGO=Ring\nNCCL_TUNER_PLUGIN=diapason", "env.fights-tuner",
                    "can only choose among what is left"));
  EXPECT_TRUE(Finds("NCCL_PROTO=Simple\nDIAPASON_POLICY=p.toml", "env.fights-tuner", "NCCL_PROTO"));
  EXPECT_TRUE(Finds("NCCL_ALGO=Ring\nNCCL_TUNER_PLUGIN=diapason", "env.fights-tuner",
                    "does not answer at all", {Library::kNccl, 22105, nullptr}));
  EXPECT_TRUE(Finds("NCCL_NTHREADS=256\nNCCL_TUNER_PLUGIN=x", "env.fights-tuner", "NCCL_NTHREADS"));
  EXPECT_TRUE(Finds("NCCL_MAX_NCHANNELS=8\nNCCL_TUNER_PLUGIN=x", "env.fights-tuner", "bounds"));
  EXPECT_EQ(Ids("NCCL_ALGO=Ring,Tree\nNCCL_TUNER_PLUGIN=none"), "");
  EXPECT_TRUE(Finds("NCCL_TUNER_PLUGIN=none\nDIAPASON_POLICY=p.toml", "env.fights-tuner", "none"));
  EXPECT_EQ(Ids("NCCL_PROTO=LL"), "warning env.fights-tuner");
  // An empty value forces nothing.
  EXPECT_EQ(Ids("NCCL_ALGO=\nNCCL_TUNER_PLUGIN=diapason"), "note env.bad-value");
  EXPECT_EQ(Ids("NCCL_MAX_CTAS=\nNCCL_TUNER_PLUGIN=diapason"), "note env.bad-value");
}

TEST(CheckCosts, FilesThatAreNotThere) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/here.so") << "x";
  const RootFs tree(folder.path());
  const CheckedFor looked = {Library::kNccl, 22809, &tree};
  EXPECT_TRUE(Finds("NCCL_TUNER_PLUGIN=/opt/no.so", "env.bad-value", "is not here", looked));
  EXPECT_EQ(Ids("NCCL_TUNER_PLUGIN=/here.so", looked), "");
  // The loader finds a bare name, and without a tree files are not checked.
  EXPECT_EQ(Ids("NCCL_TUNER_PLUGIN=libno.so", looked), "");
  EXPECT_EQ(Ids("NCCL_TUNER_PLUGIN=/opt/no.so"), "");
}

TEST(CheckCosts, MemoryAndLogs) {
  EXPECT_EQ(Ids("NCCL_BUFFSIZE=16777216"), "note env.costly");
  EXPECT_TRUE(Finds("NCCL_BUFFSIZE=16777216", "env.costly", "is 4 times the default"));
  EXPECT_EQ(Ids("NCCL_BUFFSIZE=2097152"), "");
  EXPECT_EQ(Ids("NCCL_DEBUG=TRACE"), "note env.debug-cost");
  EXPECT_EQ(Ids("NCCL_DEBUG=INFO\nNCCL_DEBUG_SUBSYS=ALL"), "note env.debug-cost");
  EXPECT_EQ(Ids("NCCL_DEBUG=INFO\nNCCL_DEBUG_SUBSYS=INIT,NET"), "");
  EXPECT_EQ(Ids("NCCL_DEBUG=INFO"), "");
}

TEST(CheckCosts, StaleGlobals) {
  std::vector<Assignment> set = {{"NCCL_NTHREADS", "256", "/etc/nccl.conf:1", false, true},
                                 {"NCCL_SOCKET_IFNAME", "eth0", "/etc/nccl.conf:2", false, true},
                                 {"NCCL_BUFFSIZE", "1", "/etc/nccl.conf:3", true, true}};
  size_t warnings = 0;
  size_t notes = 0;
  for (const Finding& finding : CheckAssignments(set, kNccl, Catalogue::BuiltIn())) {
    if (finding.id != "env.stale-global") continue;
    if (finding.severity == Severity::kWarning) {
      ++warnings;
      EXPECT_EQ(finding.evidence, std::vector<std::string>{"NCCL_NTHREADS=256 (/etc/nccl.conf:1)"});
    } else {
      ++notes;
      ASSERT_EQ(finding.evidence.size(), 2u);
      EXPECT_EQ(finding.evidence[1], "NCCL_BUFFSIZE=1 (/etc/nccl.conf:3), overridden");
    }
  }
  EXPECT_EQ(warnings, 1u);
  EXPECT_EQ(notes, 1u);
  for (Assignment& one : set) one.global = false;
  for (const Finding& finding : CheckAssignments(set, kNccl, Catalogue::BuiltIn())) {
    EXPECT_NE(finding.id, "env.stale-global");
  }
}

TEST(CheckAssignments, WhatIsFineIsSaid) {
  const std::vector<Finding> findings = Check("NCCL_IB_TIMEOUT=22\nNCCL_XYZZY=1\n");
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].id, "env.unknown-name");
  EXPECT_EQ(findings[0].evidence, std::vector<std::string>{"NCCL_XYZZY=1 (f:2)"});
  EXPECT_EQ(findings[1].id, "env.fine");
  EXPECT_EQ(findings[1].title, "NCCL_IB_TIMEOUT is read (default 20)");
  EXPECT_TRUE(Check("").empty());
}

// An old value that a later line replaces is not judged.
TEST(CheckAssignments, OnlyWhatCounts) {
  EXPECT_EQ(Ids("NCCL_P2P_LEVEL=PCI\nNCCL_P2P_LEVEL=PIX\n"), "");
}

std::vector<Assignment> Fixture(const char* name) {
  const Result<std::string> text =
      ReadFile(std::string(DIAPASON_SOURCE_DIR) + "/tests/data/knobs/" + name, 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status().message();
  std::vector<Finding> findings;
  std::vector<Assignment> assignments = ReadVariables(text.value(), name, {}).assignments;
  EXPECT_TRUE(findings.empty());
  return assignments;
}

// The findings for every line of a guide, alone: "NAME=value: ids".
std::string Judged(const char* name, const CheckedFor& checked_for) {
  std::string text;
  for (const Assignment& one : Fixture(name)) {
    const std::string ids = Ids(one.name + "='" + one.value + "'", checked_for);
    if (!ids.empty()) text += one.name + "=" + one.value + ": " + ids + "\n";
  }
  return text;
}

TEST(Guides, EveryLineAboutTheProxyIsJudged) {
  EXPECT_EQ(Fixture("guide_proxy.env").size(), 29u);
  const std::string common =
      "RCCL_PROXY_TRACE=1: error env.unknown-name\n"
      "NCCL_DEBUG=TRACE: note env.debug-cost\n"
      "NCCL_DEBUG_SUBSYS=PROXY: warning env.inert\n"
      "NCCL_DEBUG_SUBSYS=ALL: warning env.inert\n"
      "NCCL_DEBUG_SUBSYS=INIT,ENV,PROXY: warning env.inert\n"
      "NCCL_DEBUG_FILE=/tmp/nccl_debug_%h_%p.log: warning env.inert\n";
  const std::string network =
      "NCCL_NET_GDR_LEVEL=3: note env.deprecated\n";  // "<value>" is a place to fill in
  EXPECT_EQ(Judged("guide_proxy.env", kRccl), common + network);
  EXPECT_EQ(Judged("guide_proxy.env", kNewest),
            common +
                "NCCL_CREATE_THREAD_CONTEXT=1: warning env.not-read-here\n"
                "NCCL_SHM_USE_CUDA_MEMCPY=0: warning env.not-read-here\n" +
                network);
}

TEST(Guides, EveryLineAboutTheBackendIsJudged) {
  EXPECT_EQ(Fixture("guide_backend.env").size(), 18u);
  EXPECT_EQ(Judged("guide_backend.env", kNccl),
            "NCCL_DEBUG_SUBSYS=ALL: warning env.inert\n"
            "NCCL_DEBUG_LOG_DIR=./logs: error env.unknown-name\n"
            "NCCL_ALGO=Ring: note env.costly\n"
            "NCCL_PROTO=Simple: note env.costly\n"
            "NCCL_TIMEOUT=600: error env.unknown-name\n"
            "NCCL_LAUNCH_MODE=PARALLEL: note env.deprecated\n"
            "NCCL_P2P_LEVEL=PCI: error env.bad-value\n"
            "NCCL_MIN_NRINGS=4: note env.deprecated\n"
            "NCCL_MAX_NRINGS=16: note env.deprecated\n"
            "NCCL_BUFFSIZE=16777216: note env.costly\n"
            "NCCL_NVLINK_DISABLE=0: error env.unknown-name\n"
            "NCCL_NET_GDR_LEVEL=3: note env.deprecated\n"
            "NCCL_PROTO=LL: warning env.fights-tuner\n"
            "NCCL_MAX_NRINGS=8: note env.deprecated\n");
}

// A real job's environment, where NCCL_HOME is the only variable of these families, and no library
// reads it.
TEST(Guides, ARealEnvironmentIsFine) {
  const std::vector<Assignment> set = Fixture("polaris_nccl_tests.env");
  ASSERT_EQ(set.size(), 2u);  // and CUDA's
  EXPECT_EQ(Worst(CheckAssignments(set, {Library::kNccl, 22105, nullptr}, Catalogue::BuiltIn())),
            Severity::kFine);
}

}  // namespace
}  // namespace diapason::knobs
