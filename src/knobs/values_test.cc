#include "knobs/values.h"

#include <gtest/gtest.h>

namespace diapason::knobs {
namespace {

const CheckedFor kNew = {Library::kNccl, 22809, nullptr};
const CheckedFor kOld = {Library::kNccl, 22304, nullptr};

// The verdicts as one text: "error: title > action".
std::string Judge(const char* name, const std::string& value,
                  const CheckedFor& checked_for = kNew) {
  const Knob* knob = Catalogue::BuiltIn().Find(name);
  if (knob == nullptr) return "no such knob";
  std::string text;
  for (const ValueVerdict& verdict : JudgeValue(*knob, value, checked_for)) {
    text += std::string(SeverityName(verdict.severity)) + " " + verdict.id + ": " + verdict.title +
            " > " + verdict.action + "\n";
  }
  return text;
}

::testing::AssertionResult Says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

TEST(ReadNumber, IsStrtollWithBaseZero) {
  EXPECT_EQ(ReadNumber("22").value, 22);
  EXPECT_EQ(ReadNumber("-2").value, -2);
  EXPECT_EQ(ReadNumber("0x400").value, 1024);
  EXPECT_EQ(ReadNumber("010").value, 8);
  EXPECT_TRUE(ReadNumber("010").octal);
  EXPECT_EQ(ReadNumber("4M").value, 4);
  EXPECT_EQ(ReadNumber("4M").rest, "M");
  EXPECT_EQ(ReadNumber(" 7 ").rest, "");
  EXPECT_FALSE(ReadNumber("true").digits);
  EXPECT_FALSE(ReadNumber("").digits);
  EXPECT_TRUE(ReadNumber("99999999999999999999").overflow);
}

TEST(JudgeValue, Numbers) {
  EXPECT_EQ(Judge("NCCL_IB_TIMEOUT", "22"), "");
  EXPECT_EQ(Judge("NCCL_BUFFSIZE", "0x400000"), "");
  EXPECT_TRUE(Says(Judge("NCCL_BUFFSIZE", "4M"),
                   "error env.bad-value: NCCL_BUFFSIZE='4M' is read as 4: units are not "
                   "understood > Write NCCL_BUFFSIZE=4194304"));
  EXPECT_TRUE(Says(Judge("NCCL_BUFFSIZE", "<size>"), "is no number; the library reads it as 0"));
  EXPECT_TRUE(Says(Judge("NCCL_IB_TIMEOUT", "22x"),
                   "warning env.bad-value: NCCL_IB_TIMEOUT='22x' "
                   "is read as 22; 'x' is not looked at"));
  EXPECT_TRUE(Says(Judge("NCCL_IB_TIMEOUT", "022"), "a zero in front makes it octal"));
  EXPECT_TRUE(
      Says(Judge("NCCL_IB_TIMEOUT", "99999999999999999999"), "the library uses its default, 20"));
  EXPECT_TRUE(
      Says(Judge("NCCL_IB_TIMEOUT", "99999999999999999999", {Library::kNccl, 21805, nullptr}),
           "the library uses its default, 18"));
  EXPECT_TRUE(Says(Judge("NCCL_IB_TIMEOUT", ""),
                   "note env.bad-value: NCCL_IB_TIMEOUT is set to "
                   "nothing"));
  EXPECT_TRUE(Says(Judge("NCCL_IB_TIMEOUT", "40"), "is out of its range"));
  EXPECT_TRUE(Says(Judge("NCCL_IB_TIMEOUT", "$T"), "is no number"));
}

TEST(JudgeValue, Switches) {
  EXPECT_EQ(Judge("NCCL_IB_DISABLE", "1"), "");
  EXPECT_TRUE(Says(Judge("NCCL_IB_DISABLE", "true"),
                   "is no number; the library reads it as 0 > Write NCCL_IB_DISABLE=1"));
  EXPECT_TRUE(Says(Judge("NCCL_IB_DISABLE", "off"), "Write NCCL_IB_DISABLE=0"));
  // One of the few with a parser of its own.
  EXPECT_NE(Judge("NCCL_SET_THREAD_NAME", "true"), "");
  EXPECT_EQ(Judge("NCCL_SET_THREAD_NAME", "true", {Library::kNccl, 23007, nullptr}), "");
}

TEST(JudgeValue, Words) {
  EXPECT_EQ(Judge("NCCL_DEBUG", "INFO"), "");
  EXPECT_EQ(Judge("NCCL_DEBUG", "info"), "");
  EXPECT_TRUE(Says(Judge("NCCL_DEBUG", "DEBUG"),
                   "error env.bad-value: NCCL_DEBUG='DEBUG' is no "
                   "level; nothing at all is logged"));
  EXPECT_EQ(Judge("NCCL_P2P_LEVEL", "PIX"), "");
  EXPECT_TRUE(Says(Judge("NCCL_P2P_LEVEL", "PCI"),
                   "error env.bad-value: NCCL_P2P_LEVEL='PCI' is "
                   "none of its words; the library does not say so"));
  EXPECT_TRUE(Says(Judge("NCCL_P2P_LEVEL", "PCI"), "Use LOC, NVL, NVB, C2C, PIX"));
  EXPECT_TRUE(Says(Judge("NCCL_P2P_LEVEL", "pix"), "case counts here"));
  // RCCL's name for the GPUs' own links.
  const CheckedFor rccl = {Library::kRccl, 22803, nullptr};
  EXPECT_EQ(Judge("NCCL_P2P_LEVEL", "XGMI", rccl), "");
  EXPECT_NE(Judge("NCCL_P2P_LEVEL", "NVL", rccl), "");
  EXPECT_NE(Judge("NCCL_P2P_LEVEL", "XGMI"), "");
  EXPECT_TRUE(Says(Judge("NCCL_NET_GDR_LEVEL", "3"),
                   "note env.deprecated: NCCL_NET_GDR_LEVEL=3 is "
                   "the old way to write PHB"));
  EXPECT_TRUE(Says(Judge("NCCL_NET_GDR_LEVEL", "9"), "the old way to write SYS"));
  EXPECT_EQ(Judge("NCCL_LAUNCH_MODE", "PARALLEL"), "");
  EXPECT_TRUE(Says(Judge("NCCL_LAUNCH_MODE", "SEQUENTIAL"), "is read as PARALLEL"));
}

TEST(JudgeValue, Selections) {
  for (const char* fine : {"Ring", "ring,tree", "^NVLS", "CollNetDirect,nvlstree,PAT,ring",
                           "ring;allreduce:tree,ring", "allreduce:^nvls",
                           "tree;broadcast:ring;reduce:ring;"
                           "allgather:pat;reducescatter:pat"}) {
    EXPECT_EQ(Judge("NCCL_ALGO", fine), "") << fine;
  }
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "Rings"),
                   "'rings' is not known; no communicator can be made "
                   "> Write ring"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "collnet_direct"), "'collnet_direct' is not known"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "ring, tree"), "' tree' is not known"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "Rings", kOld), "the word is skipped silently"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "Rings", {}), "no communicator can be made since 2.24"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "PAT", {Library::kNccl, 21805, nullptr}), "not known"));
  EXPECT_EQ(Judge("NCCL_ALGO", "collnet,ring", {Library::kNccl, 21212, nullptr}), "");
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "allreduce:tree", kOld), "understood since 2.24"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "ring;tree"), "only the first list may stand without"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "all_reduce:tree"), "'all_reduce' is no function"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "Tree"),
                   "NCCL_ALGO=Tree leaves broadcast, reduce, allgather, reducescatter without an "
                   "algorithm"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "NVLS"), "leaves broadcast, reduce without an algorithm"));
  EXPECT_EQ(Judge("NCCL_ALGO", "Tree", kOld), "");
  EXPECT_EQ(Judge("NCCL_ALGO", "allreduce:Tree"), "");
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "^ring"), "leaves broadcast, reduce without"));
  EXPECT_EQ(Judge("NCCL_PROTO", "Simple"), "");
  EXPECT_EQ(Judge("NCCL_PROTO", "LL,Simple"), "");
  EXPECT_TRUE(Says(Judge("NCCL_PROTO", "LL"), "warning env.fights-tuner: NCCL_PROTO=LL forces LL"));
  EXPECT_TRUE(Says(Judge("NCCL_PROTO", "LL128,Simple"), "env.unsafe-value"));
  EXPECT_TRUE(Says(Judge("NCCL_PROTO", "^LL"), "env.unsafe-value"));
  EXPECT_EQ(Judge("NCCL_PROTO", "^LL128"), "");
}

TEST(JudgeValue, EmptySelections) {
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
    EXPECT_TRUE(Says(Judge(name, ""), std::string("note env.bad-value: ") + name +
                                          " is set to nothing; the library uses its default"));
    EXPECT_TRUE(Says(Judge(name, "", {}), "note env.bad-value"));
    EXPECT_TRUE(Says(Judge(name, "", {}), "before 2.24 that leaves"));
  }
  EXPECT_TRUE(Says(Judge("NCCL_PROTO", "", kOld), "error env.bad-value: NCCL_PROTO is set to"));
  EXPECT_TRUE(Says(Judge("NCCL_PROTO", "", kOld), "no protocol, so that calls fail"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "", kOld), "warning env.bad-value: NCCL_ALGO is set to"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "", kOld), "only ring and tree"));
  EXPECT_TRUE(Says(Judge("NCCL_ALGO", "", {Library::kNccl, 20708, nullptr}), "error"));
}

TEST(JudgeValue, ThreadsAndChannels) {
  const CheckedFor rccl = {Library::kRccl, 22803, nullptr};
  EXPECT_EQ(Judge("NCCL_NTHREADS", "96"), "");
  EXPECT_TRUE(Says(Judge("NCCL_NTHREADS", "100"),
                   "warning env.bad-value: NCCL_NTHREADS=100 is no multiple of 32"));
  EXPECT_TRUE(Says(Judge("NCCL_LL128_NTHREADS", "250"), "is no multiple of 32"));
  EXPECT_EQ(Judge("NCCL_NTHREADS", "-2"), "");
  EXPECT_TRUE(Says(Judge("NCCL_NTHREADS", "1024"), "is out of its range"));
  EXPECT_EQ(Judge("NCCL_NTHREADS", "256", rccl), "");
  EXPECT_TRUE(Says(Judge("NCCL_NTHREADS", "96", rccl), "note env.bad-value"));
  EXPECT_TRUE(Says(Judge("NCCL_NTHREADS", "100", rccl), "warning env.bad-value"));
  for (const char* name : {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS"}) {
    EXPECT_EQ(Judge(name, "64"), "") << name;
    EXPECT_TRUE(Says(Judge(name, "65"), "out of its range: NCCL has at most 64 channels"));
    EXPECT_TRUE(Says(Judge(name, "64", kOld), "at most 32 channels"));
    EXPECT_EQ(Judge(name, "64", {}), "") << name;
    EXPECT_EQ(Judge(name, "128", rccl), "") << name;
    EXPECT_TRUE(Says(Judge(name, "129", rccl), "RCCL has at most 128 channels"));
  }
}

TEST(Selection, KnowsWhatIsLeft) {
  EXPECT_TRUE(ReadSelection("nvls").Only({"nvls", "nvlstree"}));
  EXPECT_FALSE(ReadSelection("nvls,ring").Only({"nvls", "nvlstree"}));
  EXPECT_FALSE(ReadSelection("^nvls").Only({"nvls"}));
  EXPECT_FALSE(ReadSelection("allreduce:nvls").Only({"nvls"}));
  EXPECT_FALSE(ReadSelection("").Only({"nvls"}));
  EXPECT_TRUE(ReadSelection("^ring").Allows("tree"));
  EXPECT_FALSE(ReadSelection("ring").Allows("tree"));
  EXPECT_TRUE(ReadSelection("ring;allreduce:tree").Allows("tree"));
  EXPECT_TRUE(ReadSelection("allreduce:ring").Allows("tree"));
}

TEST(JudgeValue, Lists) {
  EXPECT_EQ(Judge("NCCL_DEBUG_SUBSYS", "INIT,ENV,PROXY"), "");
  EXPECT_EQ(Judge("NCCL_DEBUG_SUBSYS", "^init,Coll"), "");
  EXPECT_TRUE(Says(Judge("NCCL_DEBUG_SUBSYS", "INIT,TUNNING"),
                   "'TUNNING' is not known; it is skipped silently > Write TUNING"));
  EXPECT_TRUE(Says(Judge("NCCL_DEBUG_SUBSYS", "INIT,TUNNING", {Library::kNccl, 23007, nullptr}),
                   "the whole list is dropped for the default"));
  EXPECT_EQ(Judge("NCCL_SOCKET_IFNAME", "eth0"), "");
  EXPECT_EQ(Judge("NCCL_SOCKET_IFNAME", "^docker,lo"), "");
  EXPECT_EQ(Judge("NCCL_SOCKET_IFNAME", "=eth0"), "");
  EXPECT_EQ(Judge("NCCL_SOCKET_IFNAME", "^=eth0"), "");
  EXPECT_NE(Judge("NCCL_SOCKET_IFNAME", "=^eth0"), "");
  EXPECT_NE(Judge("NCCL_SOCKET_IFNAME", "^docker,^lo"), "");
  EXPECT_NE(Judge("NCCL_SOCKET_IFNAME", "eth0, eth1"), "");
  EXPECT_NE(Judge("NCCL_SOCKET_IFNAME", "e"), "");
  EXPECT_EQ(Judge("NCCL_IB_HCA", "mlx5_0,mlx5_1,mlx5_2,mlx5_3"), "");
  EXPECT_EQ(Judge("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"), "");
  EXPECT_NE(Judge("NCCL_IB_HCA", "mlx5_0,=mlx5_1"), "");
}

TEST(JudgeValue, LogFiles) {
  EXPECT_EQ(Judge("NCCL_DEBUG_FILE", "/tmp/nccl_debug_%h_%p.log"), "");
  EXPECT_EQ(Judge("NCCL_DEBUG_FILE", "/dev/stderr"), "");
  EXPECT_TRUE(Says(Judge("NCCL_DEBUG_FILE", "/tmp/nccl.log"), "has no %p"));
  EXPECT_TRUE(Says(Judge("NCCL_DEBUG_FILE", "/tmp/nccl%%p.log"), "has no %p"));
  EXPECT_TRUE(Says(Judge("NCCL_DEBUG_FILE", "/scratch/n.%p"), "has no %h"));
  EXPECT_TRUE(Says(Judge("NCCL_DEBUG_FILE", "~/n.%h.%p"), "'~' is not expanded"));
}

TEST(JudgeValue, Traps) {
  EXPECT_EQ(Judge("NCCL_PROXY_DUMP_SIGNAL", "10"), "");
  EXPECT_EQ(Judge("NCCL_PROXY_DUMP_SIGNAL", "-1"), "");
  EXPECT_TRUE(Says(Judge("NCCL_PROXY_DUMP_SIGNAL", "9"), "no process can catch SIGKILL"));
  EXPECT_TRUE(Says(Judge("NCCL_PROXY_DUMP_SIGNAL", "500"), "is no signal"));
  EXPECT_TRUE(Says(Judge("NCCL_PROXY_DUMP_SIGNAL", "15"), "takes Terminated away"));
  EXPECT_TRUE(Says(Judge("NCCL_PROXY_DUMP_SIGNAL", "SIGUSR1"), "is no number"));
  EXPECT_TRUE(Says(Judge("NCCL_PROXY_APPEND_BATCH_SIZE", "-1"), "the job hangs"));
  EXPECT_EQ(Judge("NCCL_PROXY_APPEND_BATCH_SIZE", "32"), "");
  EXPECT_NE(Judge("NCCL_SHM_LOCALITY", "5"), "");
}

}  // namespace
}  // namespace diapason::knobs
