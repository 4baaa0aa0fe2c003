#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/stats.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"

namespace diapason {
namespace {

TEST(StatusTest, ContextIsAddedOutermostFirst) {
  const Status inner = Invalid("unknown algorithm 'rng'");
  const Status outer = inner.WithContext("line 3").WithContext("x.conf");
  EXPECT_EQ(outer.message(), "x.conf: line 3: unknown algorithm 'rng'");
  EXPECT_EQ(outer.code(), ErrorCode::kInvalid);
  EXPECT_TRUE(Status().WithContext("anything").ok());
}

TEST(TextTest, ClosestNameFindsTyposAndRefusesUnrelatedNames) {
  const std::vector<std::string> names{"tree", "ring", "collnet_direct", "nvls"};
  EXPECT_EQ(ClosestName("rign", names), "ring");
  EXPECT_EQ(ClosestName("badring", names), "ring");
  EXPECT_EQ(ClosestName("CollnetDirct", names), "collnet_direct");
  EXPECT_EQ(ClosestName("quicksort", names), "");
  EXPECT_EQ(ClosestName(std::string(100000, 'r'), names), "");
}

TEST(TextTest, NumbersMustFillTheWholeText) {
  uint64_t number = 0;
  EXPECT_TRUE(ParseUnsigned("18446744073709551615", &number));
  EXPECT_EQ(number, UINT64_MAX);
  for (const char* bad : {"", " 1", "1 ", "1x", "-1", "+1", "18446744073709551616", "0x10"}) {
    EXPECT_FALSE(ParseUnsigned(bad, &number)) << bad;
  }
  int64_t with_sign = 0;
  EXPECT_TRUE(ParseSigned("-1", &with_sign));
  EXPECT_EQ(with_sign, -1);
}

TEST(UnitsTest, ReadsWhatPeopleWrite) {
  const std::vector<std::pair<const char*, uint64_t>> cases{
      {"0", 0},           {"4096", 4096},
      {"4M", 4u << 20},   {"64KiB", 64u << 10},
      {"64 kib", 65536},  {"1.5M", 1572864},
      {"1MB", 1000000},   {"8b", 8},
      {"2g", 2ull << 30}, {"16777216T", 0xffffffffffffffffull}};
  for (const auto& [text, bytes] : cases) {
    const Result<uint64_t> parsed = ParseBytes(text);
    if (std::string(text) == "16777216T") {
      EXPECT_FALSE(parsed.ok()) << "2^64 does not fit";
      continue;
    }
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed.value(), bytes) << text;
  }
  for (const char* bad : {"", "M", "4X", "-4", "1.3", "1.2.3", "4 M B", "1e6", ".5M"}) {
    EXPECT_FALSE(ParseBytes(bad).ok()) << bad;
  }
}

TEST(UnitsTest, SizesForPeopleHaveThreeDigits) {
  EXPECT_EQ(AboutBytes(uint64_t{0}), "0 B");
  EXPECT_EQ(AboutBytes(uint64_t{512}), "512 B");
  EXPECT_EQ(AboutBytes(uint64_t{72400}), "70.7 KiB");
  EXPECT_EQ(AboutBytes(uint64_t{1023}), "1023 B");
  EXPECT_EQ(AboutBytes(uint64_t{126} << 30), "126 GiB");
  EXPECT_EQ(AboutBytes(-1.5 * (1 << 20)), "-1.5 MiB");
  EXPECT_EQ(AboutBytes(UINT64_MAX), "16384 PiB");
}

TEST(TextTest, CountsInProperPlurals) {
  EXPECT_EQ(Count(1, "rule"), "1 rule");
  EXPECT_EQ(Count(0, "rule"), "0 rules");
  EXPECT_EQ(Count(4, "process"), "4 processes");
}

TEST(TextTest, EditDistanceCountsASwapAsOne) {
  EXPECT_EQ(EditDistance("DEBGU", "DEBUG"), 1u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("ring", "rang"), 1u);
}

TEST(UnitsTest, PrintedSizesReadBackExactly) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1023}, uint64_t{1} << 20,
                               (uint64_t{1} << 20) + 1, UINT64_MAX, uint64_t{3} << 50}) {
    EXPECT_EQ(ParseBytes(FormatBytes(bytes)).value(), bytes);
  }
  EXPECT_EQ(FormatBytes(4u << 20), "4MiB");
}

TEST(UnitsTest, ListsAndRangesOfSizes) {
  const std::vector<uint64_t> doubled{1024, 2048, 4096};
  EXPECT_EQ(ParseSizes("1K:4K").value(), doubled);
  EXPECT_EQ(ParseSizes("1K:5K").value(), doubled);
  EXPECT_EQ(ParseSizes("1,16:64:x4,2M:3M:+1M").value(),
            (std::vector<uint64_t>{1, 16, 64, 2u << 20, 3u << 20}));
  EXPECT_EQ(ParseSizes("2K,1K,1K:4K").value(), (std::vector<uint64_t>{2048, 1024, 4096}));
  EXPECT_EQ(ParseSizes("0:4").value().size(), 1u) << "doubling nothing ends";
  for (const char* bad : {"", "8M:1M", "1:2:3:4", "1K:8M:x1", "1K:8M:+0", "1:1G:+1", "x"}) {
    EXPECT_FALSE(ParseSizes(bad).ok()) << bad;
  }
}

TEST(EncodingTest, Base64RoundTripsAndRefusesDamage) {
  std::string bytes;
  for (int length = 0; length < 70; ++length) {
    const std::string text = EncodeBase64Url(bytes);
    EXPECT_EQ(DecodeBase64Url(text).value(), bytes);
    EXPECT_EQ(
        text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
        std::string::npos);
    bytes += static_cast<char>(length * 37);
  }
  EXPECT_FALSE(DecodeBase64Url("AB=").ok());
  EXPECT_FALSE(DecodeBase64Url("A").ok());
}

TEST(EncodingTest, VarintsRoundTripAndRefuseOverlongOnes) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, UINT64_MAX}) {
    std::string bytes;
    AppendVarint(&bytes, value);
    std::string_view rest = bytes;
    uint64_t back = 0;
    ASSERT_TRUE(TakeVarint(&rest, &back));
    EXPECT_EQ(back, value);
    EXPECT_TRUE(rest.empty());
  }
  std::string_view endless = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
  uint64_t value = 0;
  EXPECT_FALSE(TakeVarint(&endless, &value));
}

TEST(EncodingTest, ChecksumIsTheWellKnownOne) {
  EXPECT_EQ(Fnv1a64(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(Fnv1a64("foobar"), 0x85944171f73967e8ull);
}

TEST(StatsTest, QuantilesAndInterval) {
  EXPECT_DOUBLE_EQ(Median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(Median({4, 1, 2, 3}), 2.5);
  std::vector<double> samples;
  for (int i = 0; i <= 100; ++i) samples.push_back(i);
  const Interval interval = MedianInterval95(samples);
  EXPECT_LT(interval.low, 50);
  EXPECT_GT(interval.high, 50);
  EXPECT_NEAR(interval.high - interval.low, 20, 3);
}

TEST(UnitsTest, TimesHaveAUnit) {
  EXPECT_DOUBLE_EQ(ParseSeconds("250us").value(), 250e-6);
  EXPECT_DOUBLE_EQ(ParseSeconds("5 ms").value(), 5e-3);
  EXPECT_DOUBLE_EQ(ParseSeconds("1.5s").value(), 1.5);
  EXPECT_DOUBLE_EQ(ParseSeconds("5m").value(), 300);
  EXPECT_DOUBLE_EQ(ParseSeconds("2H").value(), 7200);
  for (const char* bad :
       {"", "5", "ms", "-1s", "0s", "1e3s", "1..5s", "5 parsecs", "nan s", "99999999999h"}) {
    EXPECT_FALSE(ParseSeconds(bad).ok()) << bad;
  }
}

TEST(Units, Shares) {
  EXPECT_DOUBLE_EQ(ParseShare("5%", "margin").value(), 0.05);
  EXPECT_DOUBLE_EQ(ParseShare(" 2.5 % ", "margin").value(), 0.025);
  EXPECT_DOUBLE_EQ(ParseShare("0.05", "margin").value(), 0.05);
  EXPECT_DOUBLE_EQ(ParseShare("0", "margin").value(), 0);
  for (const char* wrong : {"", "%", "5", "100%", "-1%", "1e-2", "nan", "5%%", "5 percent"}) {
    const Result<double> share = ParseShare(wrong, "margin");
    ASSERT_FALSE(share.ok()) << wrong;
    EXPECT_NE(share.status().message().find("is no margin"), std::string::npos);
  }
}

TEST(Text, QuotesForTheShell) {
  EXPECT_EQ(ShellWord("mlx5_0,mlx5_1:1"), "mlx5_0,mlx5_1:1");
  // zsh would look for a program of that name otherwise.
  EXPECT_EQ(ShellWord("=mlx5_0"), "'=mlx5_0'");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b;$(rm)'x"), "'a b;$(rm)'\\''x'");
}

TEST(ClockTest, TimesInUtc) {
  EXPECT_EQ(UtcText(0, "%Y-%m-%dT%H:%M:%SZ"), "1970-01-01T00:00:00Z");
  EXPECT_EQ(UtcText(1700000000, "%Y%m%d-%H%M%S"), "20231114-221320");
}

}  // namespace
}  // namespace diapason
