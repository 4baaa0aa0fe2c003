#include "watch/proxy_dump.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "watch/testing.h"

namespace diapason::watch {
namespace {

constexpr char kDump[] =
    "ACTIVE OPS\n"
    "[0-3|16| Coll 1 /0 2 /1]\n"
    "| `-> [0-5|17| Recv 3R/0 3D/1]\n"
    "v\n"
    "[1-4|17| Send 2G/0]\n"
    "|\n"
    "v\n"
    "[0-9|19| Recv 4/0]\n"
    "|\n"
    "v\n"
    "[X]\n";

TEST(ProxyDump, ReadsWhatNcclPrints) {
  const ProxyDump dump = ParseProxyDump(kDump);
  EXPECT_TRUE(dump.found);
  EXPECT_TRUE(dump.complete);
  EXPECT_EQ(dump.damaged_lines, 0u);
  ASSERT_EQ(dump.active.size(), 4u);
  EXPECT_EQ(dump.active[0].type, "coll");
  EXPECT_EQ(dump.active[0].op_count, 16);
  EXPECT_EQ(dump.active[0].place, "0-3");
  EXPECT_EQ(dump.active[0].state, "progress");
  ASSERT_EQ(dump.active[0].subs.size(), 2u);
  EXPECT_EQ(dump.active[0].subs[1].peer, 2);
  EXPECT_EQ(dump.active[0].subs[1].channel, 1);
  EXPECT_EQ(dump.active[0].subs[1].status, ' ');
  EXPECT_EQ(dump.active[1].line, "[0-5|17| Recv 3R/0 3D/1]");
  EXPECT_EQ(dump.active[1].subs[0].status, 'R');
  EXPECT_EQ(dump.active[2].type, "send");
  EXPECT_EQ(dump.active[2].place, "1-4");
  EXPECT_EQ(dump.active[3].state, "ready");
  EXPECT_EQ(dump.active[3].subs[0].status, '-');
}

TEST(ProxyDump, LaunchersNamesAndOtherLinesInBetween) {
  std::string text;
  for (const char* line : {"ACTIVE OPS", "[0-3|16| Send 1S/0]", "|", "v", "[X]"}) {
    text += std::string("[1,0]<stdout>:") + line + "\r\n";
  }
  const ProxyDump tagged = ParseProxyDump(text);
  EXPECT_TRUE(tagged.complete);
  ASSERT_EQ(tagged.active.size(), 1u);
  EXPECT_EQ(tagged.active[0].subs[0].status, 'S');
  const ProxyDump mixed =
      ParseProxyDump("ACTIVE OPS\nstep 5 loss 0.1\n[0-3|16| Send 1S/0]step 6\n[0-4|1\n[X]\n");
  EXPECT_EQ(mixed.active.size(), 1u);
  EXPECT_EQ(mixed.damaged_lines, 2u);
}

TEST(ProxyDump, TheLastOneAndAllOfThem) {
  const std::string two = std::string(kDump) + "other\nACTIVE OPS\n[X]\n";
  EXPECT_TRUE(ParseProxyDump(two).active.empty());
  const std::vector<ProxyDump> dumps = ParseProxyDumps(two);
  ASSERT_EQ(dumps.size(), 2u);
  EXPECT_EQ(dumps[0].active.size(), 4u);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "ACTIVE OPS\n[X]\n";
  EXPECT_EQ(ParseProxyDumps(many).size(), 64u);
}

TEST(ProxyDump, StrayAndFreeOnesAreNotActive) {
  const ProxyDump dump = ParseProxyDump(
      "ACTIVE OPS\n[X]\nFREE OPS\n[0-1|0| Coll 0/0]->[0-2|0| Coll 0/0]->[X]\n"
      "Elem 0-7 is not in any list:\n[0-7|21| Recv 1F/0]\n");
  EXPECT_TRUE(dump.active.empty());
  EXPECT_EQ(dump.free_ops, 2u);
  ASSERT_EQ(dump.stray.size(), 1u);
  EXPECT_EQ(dump.stray[0].place, "0-7");
}

TEST(ProxyDump, KnowsItsLines) {
  for (const char* line : {"ACTIVE OPS", "  [X]", "|", "v", "| `-> [0-5|17| Recv 3R/0]",
                           "0: [0-5|17| Coll 3 /0]", "Elem 0-7 is not in any list:"}) {
    EXPECT_TRUE(IsProxyDumpLine(line)) << line;
  }
  for (const char* line :
       {"", "INACTIVE OPS", "[1-2|3| Else]", "values", "[0-5|17|", "[X] marks"}) {
    EXPECT_FALSE(IsProxyDumpLine(line)) << line;
  }
}

TEST(ProxyDump, HostileTextEndsNowhereBad) {
  EXPECT_FALSE(ParseProxyDump("").found);
  EXPECT_FALSE(ParseProxyDump(std::string(1000, '\0')).found);
  EXPECT_FALSE(ParseProxyDump(std::string(300000, '[')).found);
  std::string long_line = "ACTIVE OPS\n[0-1|2| Send";
  for (int i = 0; i < 20000; ++i) long_line += " 1S/0";
  const ProxyDump dump = ParseProxyDump(long_line + "]\n[0-1|99999999999999999999| Send]\n[X]\n");
  EXPECT_TRUE(dump.active.empty());
  EXPECT_EQ(dump.damaged_lines, 2u);
}

TEST(ProxyDiagnosis, OneDumpTellsWhatIsWaitedFor) {
  const auto findings = DiagnoseProxyDump(ParseProxyDump(kDump), nullptr);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(Worst(findings), Severity::kNote);
  EXPECT_TRUE(HasTitle(findings, "waits for data from rank 3"));
  EXPECT_TRUE(HasTitle(findings, "for the GPU to hand over data for rank 2"));
}

TEST(ProxyDiagnosis, TwoDumpsTellStuckFromMoving) {
  const ProxyDump first = ParseProxyDump(kDump);
  const auto stuck = DiagnoseProxyDump(first, &first);
  EXPECT_EQ(Worst(stuck), Severity::kWarning);
  EXPECT_TRUE(HasTitle(stuck, "the same in both dumps: 1 receive waits for data from rank 3"));
  EXPECT_FALSE(HasTitle(stuck, "done"));
  EXPECT_FALSE(HasId(stuck, "proxy.moving"));
  const ProxyDump later =
      ParseProxyDump("ACTIVE OPS\n[0-3|18| Coll 1 /0]\n|\nv\n[1-4|17| Send 2S/0]\n|\nv\n[X]\n");
  const auto moving = DiagnoseProxyDump(first, &later);
  EXPECT_EQ(Worst(moving), Severity::kFine);
  EXPECT_TRUE(HasTitle(moving, "3 operations ended, 1 began, 1 went on"));
  // One of several does not move.
  const ProxyDump half =
      ParseProxyDump("ACTIVE OPS\n[0-3|18| Coll 1 /0]\n| `-> [0-5|17| Recv 3R/0 3D/1]\nv\n[X]\n");
  const auto both = DiagnoseProxyDump(first, &half);
  EXPECT_TRUE(HasId(both, "proxy.moving"));
  EXPECT_TRUE(HasId(both, "proxy.stuck"));
}

TEST(ProxyDiagnosis, NothingInFlightAndNothingAtAll) {
  const ProxyDump empty = ParseProxyDump("ACTIVE OPS\n[X]\n");
  EXPECT_TRUE(HasId(DiagnoseProxyDump(empty, nullptr), "proxy.idle"));
  EXPECT_TRUE(HasId(DiagnoseProxyDump(empty, &empty), "proxy.idle"));
  EXPECT_TRUE(HasId(DiagnoseProxyDump(ProxyDump(), nullptr), "proxy.no-dump"));
  EXPECT_TRUE(HasId(DiagnoseProxyDump(ParseProxyDump("ACTIVE OPS\n"), nullptr), "proxy.cut-short"));
}

}  // namespace
}  // namespace diapason::watch
