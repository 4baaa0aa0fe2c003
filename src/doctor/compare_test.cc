#include "doctor/compare.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace diapason::doctor {
namespace {

std::vector<HostFacts> Cluster(int count) {
  std::vector<HostFacts> hosts;
  for (int i = 0; i < count; ++i) {
    hosts.push_back({Format("node{}", i), {{"driver", "580.95"}, {"GPUs", "8"}}});
  }
  return hosts;
}

std::vector<Finding> Bad(const std::vector<Finding>& findings) {
  std::vector<Finding> bad;
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::kFine) bad.push_back(finding);
  }
  return bad;
}

TEST(CompareHosts, AllTheSame) {
  const std::vector<Finding> findings = CompareHosts(Cluster(4));
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_TRUE(Bad(findings).empty());
  EXPECT_EQ(findings[0].title, "driver: 580.95 on all 4 hosts");
}

TEST(CompareHosts, TheOddOneOut) {
  std::vector<HostFacts> hosts = Cluster(32);
  hosts[17].facts[0].second = "550.54";
  const std::vector<Finding> bad = Bad(CompareHosts(hosts));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].id, "compare.odd");
  EXPECT_EQ(bad[0].severity, Severity::kWarning);
  EXPECT_EQ(bad[0].title, "node17: driver 550.54 where 31 others have 580.95");
}

TEST(CompareHosts, FatalFactsAreErrors) {
  std::vector<HostFacts> hosts = Cluster(3);
  hosts[1].facts[1].second = "7";
  const std::vector<Finding> bad = Bad(CompareHosts(hosts));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].severity, Severity::kError);
  EXPECT_EQ(bad[0].title, "node1: GPUs 7 where 2 others have 8");
}

TEST(CompareHosts, HardwareCannotBeMadeTheSame) {
  std::vector<HostFacts> hosts = Cluster(3);
  for (HostFacts& host : hosts) host.facts.emplace_back("GPU models", "8 x H100");
  hosts[1].facts[2].second = "8 x A100";
  hosts[2].facts[0].second = "550.54";
  for (const Finding& finding : Bad(CompareHosts(hosts))) {
    const bool hardware = finding.title.find("GPU models") != std::string::npos;
    EXPECT_EQ(finding.action.starts_with("place jobs on hosts of one kind"), hardware)
        << finding.title << ": " << finding.action;
  }
  // And with equal numbers of both.
  hosts.pop_back();
  const std::vector<Finding> tie = Bad(CompareHosts(hosts));
  ASSERT_EQ(tie.size(), 1u);
  EXPECT_EQ(tie[0].id, "compare.tie");
  EXPECT_TRUE(tie[0].action.starts_with("place jobs")) << tie[0].action;
}

TEST(CompareHosts, TwoHalvesAreATie) {
  std::vector<HostFacts> hosts = Cluster(4);
  hosts[2].facts[0].second = hosts[3].facts[0].second = "550.54";
  const std::vector<Finding> bad = Bad(CompareHosts(hosts));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].id, "compare.tie");
  EXPECT_EQ(bad[0].title, "driver: 2 values, and as many hosts have the one as the other");
  EXPECT_EQ(bad[0].evidence,
            (std::vector<std::string>{"550.54: node2, node3", "580.95: node0, node1"}));
}

// Two of five are the most, but no majority.
TEST(CompareHosts, NoMajority) {
  std::vector<HostFacts> hosts = Cluster(5);
  hosts[2].facts[0].second = "1";
  hosts[3].facts[0].second = "2";
  hosts[4].facts[0].second = "3";
  const std::vector<Finding> bad = Bad(CompareHosts(hosts));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].id, "compare.tie");
  EXPECT_EQ(bad[0].title, "driver: 4 values, and no majority for any");
  EXPECT_EQ(bad[0].evidence[0], "580.95: node0, node1");
}

TEST(CompareHosts, WhatOneDoesNotTell) {
  std::vector<HostFacts> hosts = Cluster(3);
  hosts[0].facts.erase(hosts[0].facts.begin());
  hosts[2].facts.emplace_back("variable NCCL_ALGO", "Ring");
  const std::vector<Finding> bad = Bad(CompareHosts(hosts));
  ASSERT_EQ(bad.size(), 2u);
  EXPECT_EQ(bad[0].title, "node0: driver none where 2 others have 580.95");
  EXPECT_EQ(bad[1].title, "node2: variable NCCL_ALGO Ring where 2 others have none");
}

TEST(CompareHosts, ManyOddOnesAreCounted) {
  std::vector<HostFacts> hosts = Cluster(40);
  for (int i = 0; i < 12; ++i) hosts[static_cast<size_t>(i)].facts[0].second = "1";
  const std::vector<Finding> bad = Bad(CompareHosts(hosts));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_NE(bad[0].title.find("node7 and 4 more: driver 1 where 28 others"), std::string::npos)
      << bad[0].title;
}

TEST(CompareHosts, SameNameTwice) {
  std::vector<HostFacts> hosts = Cluster(3);
  hosts[2].host = "node0";
  hosts[2].facts[0].second = "1";
  const std::vector<Finding> bad = Bad(CompareHosts(hosts));
  ASSERT_EQ(bad.size(), 2u);
  EXPECT_EQ(bad[0].title, "node0 #2: driver 1 where 2 others have 580.95");
  EXPECT_EQ(bad[1].id, "compare.twice");
}

}  // namespace
}  // namespace diapason::doctor
