#include "policy/inline.h"

#include <gtest/gtest.h>

#include "base/encoding.h"
#include "base/text.h"
#include "policy/parse.h"
#include "policy/testing.h"

namespace diapason::policy {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

Policy SmallPolicy() {
  Policy policy = ParseStrictly(
                      "allreduce,0,65536,tree,ll,2,1,8\n"
                      "\n"
                      "allgather,8,18446744073709551615,-1,simple,-1,-1,-1,3,1\n",
                      "x", {})
                      .value();
  policy.header.origin = "me";
  return policy;
}

void ExpectRoundTrip(const Policy& policy) {
  const std::string word = EncodeInline(policy);
  EXPECT_EQ(word.find_first_not_of(kAlphabet), std::string::npos);
  const Result<Policy> back = DecodeInline(word);
  ASSERT_TRUE(back.ok()) << back.status().message() << "\n" << PolicyText(policy);
  EXPECT_EQ(back.value().library, policy.library);
  EXPECT_EQ(back.value().header.origin, policy.header.origin);
  EXPECT_EQ(back.value().header.fingerprint, policy.header.fingerprint);
  EXPECT_EQ(Digest(back.value()), Digest(policy));
  ASSERT_EQ(back.value().rules.size(), policy.rules.size());
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    EXPECT_EQ(Fields(back.value().rules[i]), Fields(policy.rules[i])) << i;
    EXPECT_EQ(back.value().rules[i].line, policy.rules[i].line) << i;
  }
}

TEST(InlineTest, EveryPolicyComesBackWithItsLines) {
  std::mt19937_64 random(21);
  for (const Library library : kLibraries) {
    for (int round = 0; round < 100; ++round) {
      Policy policy = RandomPolicy(library, Pick(&random, 50), &random);
      policy.header.origin = std::string("any \"bytes\" # \n\xff", 16);
      if (round % 2 == 0) policy.header.fingerprint = "8x NVIDIA A100-SXM4-80GB";
      ExpectRoundTrip(policy);
    }
  }
  ExpectRoundTrip(Policy{});
}

TEST(InlineTest, TheLargestCountsComeBack) {
  ExpectRoundTrip(ParseStrictly("allreduce,0,8,ring,ll,64,2147483646,1,-1,-1\n", "x", {}).value());
  ExpectRoundTrip(
      ParseStrictly("allreduce,0,8,ring,ll,64,2147483647,2147483647,2147483647,1\n", "x", {})
          .value());
}

TEST(InlineTest, RealFilesComeBackAndFitAVariable) {
  ParseOptions as_rccl;
  as_rccl.library = Library::kRccl;
  for (const char* file : kRealFiles) {
    const Policy policy = ParseStrictly(ReadTestFile(file), file, as_rccl).value();
    ExpectRoundTrip(policy);
    EXPECT_LT(EncodeInline(policy).size(), kLongestInline) << file;
  }
}

TEST(InlineTest, BlanksAroundTheWordDoNotMatter) {
  EXPECT_TRUE(DecodeInline(" " + EncodeInline(SmallPolicy()) + "\n").ok());
}

TEST(InlineTest, EveryChangedCharacterIsFound) {
  const std::string word = EncodeInline(SmallPolicy());
  const std::string others = std::string(kAlphabet) + " \n=+/%\x80" + '\0';
  for (size_t i = 0; i < word.size(); ++i) {
    for (const char other : others) {
      if (other == word[i]) continue;
      std::string changed = word;
      changed[i] = other;
      ASSERT_FALSE(DecodeInline(changed).ok()) << "character " << i << " became " << other;
    }
  }
}

TEST(InlineTest, EveryTruncationAndAdditionIsFound) {
  const std::string word = EncodeInline(SmallPolicy());
  for (size_t length = 0; length < word.size(); ++length) {
    EXPECT_FALSE(DecodeInline(word.substr(0, length)).ok()) << length;
    EXPECT_FALSE(DecodeInline(word.substr(word.size() - length)).ok()) << length;
    EXPECT_FALSE(DecodeInline(word.substr(0, length) + "A" + word.substr(length)).ok()) << length;
  }
  EXPECT_FALSE(DecodeInline(word + "0").ok());
  EXPECT_FALSE(DecodeInline(word + word).ok());
}

TEST(InlineTest, ARefusalSaysWhatToDo) {
  EXPECT_NE(DecodeInline("policy.conf").status().message().find("diapason policy env"),
            std::string::npos);
  const std::string word = EncodeInline(SmallPolicy());
  EXPECT_NE(DecodeInline(word.substr(0, word.size() - 3)).status().message().find("cut short"),
            std::string::npos);
}

// A word with a correct checksum over any body.
std::string Signed(const std::string& body) { return Format("{}.{:016x}", body, Fnv1a64(body)); }

// The packed form of a policy with one row, in the open: each number may be made hostile.
struct Packed {
  uint64_t library = 0;
  uint64_t origin_length = 2;
  std::string origin = "me";
  uint64_t count = 1;
  // Line and start as twice the distance (odd: backwards), then the length of the range.
  uint64_t line = 2;
  uint64_t collective = 4;
  uint64_t start = 16;
  uint64_t length = 100;
  // One more than the value, so that -1 is 0.
  uint64_t algorithm = kRing + 1;
  uint64_t protocol = kSimple + 1;
  uint64_t channels = 4 + 1;
  uint64_t nodes = 2 + 1;
  uint64_t ranks = 16 + 1;
  uint64_t pipe_ops = 0;
  uint64_t reg_buff = 0;
  std::string tail;

  std::string Row() const {
    std::string bytes;
    for (const uint64_t number : {line, collective, start, length, algorithm, protocol, channels,
                                  nodes, ranks, pipe_ops, reg_buff}) {
      AppendVarint(&bytes, number);
    }
    return bytes;
  }
  std::string Bytes() const {
    std::string bytes;
    AppendVarint(&bytes, library);
    AppendVarint(&bytes, origin_length);
    bytes += origin;
    AppendVarint(&bytes, 0);  // no fingerprint
    AppendVarint(&bytes, count);
    return bytes + Row() + tail;
  }
  bool Decodes() const { return DecodeInline(Signed("d1." + EncodeBase64Url(Bytes()))).ok(); }
};

TEST(InlineTest, TheCraftedWordIsWhatAnEncoderWrites) {
  Policy policy = ParseStrictly("allreduce,8,108,ring,simple,4,2,16,-1,-1\n", "x", {}).value();
  policy.header.origin = "me";
  EXPECT_EQ(Signed("d1." + EncodeBase64Url(Packed().Bytes())), EncodeInline(policy));
}

TEST(InlineTest, ARightChecksumDoesNotMakeHostileContentRight) {
  // Each changes one number of a valid word into one that no policy file may contain.
  const std::vector<std::pair<const char*, void (*)(Packed*)>> hostile{
      {"library 4", [](Packed* p) { p->library = 4; }},
      {"library 2^32", [](Packed* p) { p->library = uint64_t{1} << 32; }},
      {"algorithm 7", [](Packed* p) { p->algorithm = 7 + 1; }},
      {"algorithm 2^32 + ring", [](Packed* p) { p->algorithm = (uint64_t{1} << 32) + kRing + 1; }},
      {"protocol 3", [](Packed* p) { p->protocol = 3 + 1; }},
      {"65 channels for NCCL", [](Packed* p) { p->channels = 65 + 1; }},
      {"-1 channels", [](Packed* p) { p->channels = 0; }},
      {"an unknown collective", [](Packed* p) { p->collective = 6; }},
      {"alltoall for NCCL", [](Packed* p) { p->collective = 5; }},
      {"0 nodes", [](Packed* p) { p->nodes = 1; }},
      {"0 ranks", [](Packed* p) { p->ranks = 1; }},
      {"2^31 ranks", [](Packed* p) { p->ranks = (uint64_t{1} << 31) + 1; }},
      {"2^31 pipe operations", [](Packed* p) { p->pipe_ops = (uint64_t{1} << 31) + 1; }},
      {"regBuff 2", [](Packed* p) { p->reg_buff = 2 + 1; }},
      {"a negative line", [](Packed* p) { p->line = 1; }},
      {"line 2^31", [](Packed* p) { p->line = uint64_t{1} << 32; }},
      {"a range beyond the largest size", [](Packed* p) { p->length = UINT64_MAX; }},
      {"more rows than there are", [](Packed* p) { p->count = 2; }},
      {"fewer rows than there are", [](Packed* p) { p->count = 0; }},
      {"more rows than may be", [](Packed* p) { p->count = kMostRules + 1; }},
      {"2^64 - 1 rows", [](Packed* p) { p->count = UINT64_MAX; }},
      {"a text beyond the end", [](Packed* p) { p->origin_length = 1000; }},
      {"a text of 2^64 - 1 bytes", [](Packed* p) { p->origin_length = UINT64_MAX; }},
      {"trailing bytes", [](Packed* p) { p->tail = std::string(1, '\0'); }},
      {"an over-long number", [](Packed* p) { p->tail = std::string(20, '\xff'), p->count = 2; }},
  };
  ASSERT_TRUE(Packed().Decodes());
  for (const auto& [what, spoil] : hostile) {
    Packed packed;
    spoil(&packed);
    EXPECT_FALSE(packed.Decodes()) << what;
  }
  Packed rccl;
  rccl.library = 1;
  rccl.channels = 127 + 1;
  EXPECT_TRUE(rccl.Decodes());
  rccl.channels = 128 + 1;
  EXPECT_FALSE(rccl.Decodes());
  rccl.channels = 4 + 1;
  rccl.algorithm = 64 + 1;
  EXPECT_FALSE(rccl.Decodes()) << "'direct' is known, and yet cannot be chosen";
}

TEST(InlineTest, OtherVersionsAndOtherTextAreRefusedWhateverTheirChecksum) {
  const std::string body = EncodeBase64Url(Packed().Bytes());
  ASSERT_TRUE(DecodeInline(Signed("d1." + body)).ok());
  for (const std::string& word :
       {Signed("d2." + body), Signed("d1" + body), Signed("D1." + body), Signed("d1."),
        Signed("d1.A"), Signed("d1.!" + body), Signed("d1.." + body), Signed("d1." + body + "=")}) {
    EXPECT_FALSE(DecodeInline(word).ok()) << word;
  }
}

TEST(InlineTest, MoreConditionsThanTheLimitAreRefused) {
  Packed packed;
  packed.count = kMostConditions;
  for (uint64_t i = 1; i < kMostConditions; ++i) {
    packed.pipe_ops = i + 1;
    packed.tail += packed.Row();
  }
  packed.pipe_ops = 0;
  packed.start = 0;
  packed.length = 0;
  EXPECT_TRUE(packed.Decodes());
  packed.count += 1;
  Packed last;
  last.pipe_ops = 1000;
  packed.tail += last.Row();
  EXPECT_FALSE(packed.Decodes());
}

TEST(InlineTest, NoContentCrashesTheDecoder) {
  std::mt19937_64 random(22);
  const std::string good = Packed().Bytes();
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (uint64_t changes = 1 + Pick(&random, 4); changes > 0; --changes) {
      bytes[Pick(&random, bytes.size())] = static_cast<char>(random());
    }
    bytes.resize(bytes.size() - Pick(&random, 3));
    const Result<Policy> policy = DecodeInline(Signed("d1." + EncodeBase64Url(bytes)));
    if (!policy.ok()) continue;
    // An accepted word is a policy like any other: a file can contain it.
    const Result<Policy> back = ParseStrictly(PolicyText(policy.value()), "x", {});
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(Digest(back.value()), Digest(policy.value()));
  }
}

TEST(InlinePolicy, SegmentsTravel) {
  Policy policy;
  policy.library = Library::kOpenMpi;
  Rule rule;
  rule.collective = Collective::kBroadcast;
  rule.max_bytes = 1024;
  rule.config = {3, kKeep, 0, 65536};
  policy.rules = {rule, rule};
  policy.rules[1].config.segment_bytes = 0;
  const Result<Policy> decoded = DecodeInline(EncodeInline(policy));
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(decoded.value().rules[0].config, rule.config);
  EXPECT_EQ(decoded.value().rules[1].config.segment_bytes, 0);
  policy.library = Library::kNccl;
  policy.rules[0].config = {kRing, kSimple, 0, 65536};
  EXPECT_FALSE(DecodeInline(EncodeInline(policy)).ok());
}

}  // namespace
}  // namespace diapason::policy
