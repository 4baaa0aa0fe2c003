#include "comm/backends/sim/cluster.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace diapason::comm::sim {
namespace {

constexpr char kSmall[] = R"(title = "two cards"
library = "nccl"
generation = "ampere"
nodes = 1
gpus_per_node = 2

[link]
intra_gbps = 100
intra_us = 1

[formula]
channels = 4
intra_gbps = 20

[compute]
multiprocessors = 100

[pair.ring.simple]
base_us = 10
hop_us = 1
channel_gbps = 20
gbps = 80
)";

// kSmall with one text replaced by another.
std::string With(const std::string& from, const std::string& to) {
  std::string text = kSmall;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Refused(const std::string& text) {
  const Result<Cluster> cluster = ParseCluster(text, "t.toml");
  EXPECT_FALSE(cluster.ok()) << text;
  return cluster.status().message();
}

TEST(ParseCluster, ReadsWhatIsThere) {
  const Result<Cluster> read = ParseCluster(kSmall, "t.toml");
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Cluster& cluster = read.value();
  EXPECT_EQ(cluster.ranks(), 2);
  EXPECT_EQ(cluster.generation, Generation::kAmpere);
  EXPECT_EQ(cluster.formula.channels, 4);
  EXPECT_EQ(cluster.pairs[kRing][kSimple]->gbps, 80);
  EXPECT_FALSE(cluster.pairs[kTree][kLl].has_value());
  EXPECT_EQ(Describe(cluster), "t.toml: two cards (simulated)");
}

TEST(ParseCluster, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(Refused(With("channels = 4", "chanels = 4")),
            "t.toml:12:1: [formula] has no key 'chanels'; did you mean 'channels'?");
  EXPECT_EQ(Refused(With("channels = 4\n", "")), "t.toml:11:1: [formula] has no 'channels'");
  EXPECT_EQ(Refused(With("hop_us = 1\n", "hop_us = 1\noverlaps = 1\n")),
            "t.toml:21:1: [pair.ring.simple] has no key 'overlaps'; did you mean 'overlap'?");
  EXPECT_EQ(Refused(With("channels = 4", "channels = 65")),
            "t.toml:12:12: [formula]: 'channels' is out of range (1 to 64)");
  EXPECT_EQ(Refused(With("channels = 4", "channels = 4.0")),
            "t.toml:12:12: [formula]: 'channels' is not a whole number");
  EXPECT_EQ(Refused(With("gbps = 80", "gbps = 0")),
            "t.toml:22:8: [pair.ring.simple]: 'gbps' is out of range (0.001 to 1e+06)");
  EXPECT_EQ(Refused(With("gbps = 80", "gbps = nan")),
            "t.toml:22:8: [pair.ring.simple]: 'gbps' is out of range (0.001 to 1e+06)");
  EXPECT_EQ(Refused(With("\"nccl\"", "\"ncl\"")),
            "t.toml:2:11: the description: 'library' is 'ncl'; did you mean 'nccl'?");
  EXPECT_EQ(Refused(With("pair.ring.simple", "pair.rng.simple")),
            "t.toml:18:7: unknown algorithm 'rng'; did you mean 'ring'?");
  EXPECT_EQ(Refused(With("pair.ring.simple", "pair.nvls.ll")),
            "t.toml:18:12: no library has nvls with ll");
  EXPECT_EQ(Refused(With("pair.ring.simple", "pair.tree.ll")),
            "t.toml:1:1: there is no [pair.ring.simple], which every collective can run");
  EXPECT_EQ(Refused(With("[link]", "[links]")),
            "t.toml:7:2: the description has no key 'links'; did you mean 'link'?");
  EXPECT_EQ(Refused(With("title = \"two cards\"", "title = 5")),
            "t.toml:1:9: the description: 'title' is not a text in quotes");
  EXPECT_NE(Refused(With("title = ", "title = = ")).find("t.toml:1:"), std::string::npos);
  // Several nodes need to know about the network.
  EXPECT_EQ(Refused(With("nodes = 1", "nodes = 2")), "t.toml:7:1: [link] has no 'inter_gbps'");
}

TEST(ParseCluster, HostileTextsAreRefused) {
  for (const std::string& text :
       {std::string(),
        std::string("\0\0\0", 3),
        std::string("title"),
        std::string(1000, '['),
        std::string("a = ") + std::string(5000, '['),
        std::string("\xff\xfe"),
        std::string("[[["),
        std::string("[."),
        std::string("\t[[.x]]"),
        std::string("[ ]"),
        With("nodes = 1", "nodes = 99999999999999999999"),
        With("nodes = 1", "nodes = -1"),
        With("nodes = 1", "nodes = 65536\n[x]"),
        With("[link]", "link = 3\n[y]"),
        With("[pair.ring.simple]", "pair = 1\n[z]"),
        With("[pair.ring.simple]", "[pair.ring]"),
        With("title = \"two cards\"", "title = \"a\\nb\""),
        With("[compute]", "[[straggler]]\nfactor = 2\n[compute]"),
        With("[compute]", "[[straggler]]\nfactor = 2\nshare = 1\nranks = [0]\n[compute]"),
        With("[compute]", "[[straggler]]\nfactor = 2\nranks = [2]\n[compute]"),
        With("[compute]", "[straggler]\nfactor = 2\n[compute]"),
        With("[compute]",
             "[[choice]]\ncollective = \"alltoall\"\nalgorithm = \"ring\"\n"
             "protocol = \"ll\"\n[compute]"),
        With("[compute]", "[noise]\nsigma = 1e99\n[compute]")}) {
    const Result<Cluster> cluster = ParseCluster(text, "t.toml");
    EXPECT_FALSE(cluster.ok()) << text;
    EXPECT_LT(cluster.status().message().size(), 400u);
  }
}

TEST(LoadCluster, EveryShippedDescriptionIsFine) {
  const std::vector<std::string> names = ClusterNames();
  EXPECT_GE(names.size(), 7u);
  for (const std::string& name : names) {
    const Result<Cluster> cluster = LoadCluster(name);
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    // The compiled-in texts are those in the folder.
    const std::string path = std::string(DIAPASON_SOURCE_DIR) + "/clusters/" + name + ".toml";
    const Result<Cluster> file = LoadCluster(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file.value().digest, cluster.value().digest);
  }
}

TEST(LoadCluster, SaysWhatItKnows) {
  const Status unknown = LoadCluster("h100x9").status();
  EXPECT_EQ(unknown.code(), ErrorCode::kNotFound);
  EXPECT_NE(unknown.message().find("did you mean 'h100x8'"), std::string::npos)
      << unknown.message();
  EXPECT_NE(LoadCluster("").status().message().find("lab"), std::string::npos);
  EXPECT_FALSE(LoadCluster("./no/such.toml").ok());
  EXPECT_FALSE(LoadCluster("/dev/zero.toml").ok());
  const std::string large =
      (std::filesystem::path(testing::TempDir()) / "large_cluster.toml").string();
  std::ofstream(large) << std::string(300000, '#');
  const Status refused = LoadCluster(large).status();
  EXPECT_FALSE(refused.ok());
  std::filesystem::remove(large);
}

}  // namespace
}  // namespace diapason::comm::sim
