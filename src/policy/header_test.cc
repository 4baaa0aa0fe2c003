#include "policy/header.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "policy/parse.h"
#include "policy/testing.h"

namespace diapason::policy {
namespace {

constexpr char kRow[] = "allreduce,0,1024,ring,simple,4,2,16,-1,-1\n";

std::string FirstError(std::string_view text) {
  const ParseOutcome outcome = ParsePolicy(text, {});
  return outcome.errors == 0 ? "" : DiagnosticText("x.conf", outcome.diagnostics.at(0));
}

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(HeaderTest, KeysMayStandInOneLineOrSeveralAndAnywhere) {
  for (const char* text : {
           "# diapason: version=1 library=rccl origin=me fingerprint=\"8x gfx950\"\n",
           "#diapason: library=RCCL\n## diapason:origin=me\n  # diapason: fingerprint=\"8x "
           "gfx950\"",
           "# diapason: version=1\tlibrary=rccl\r\n"
           "allreduce,0,8,ring,ll,112,-1,-1\r\n"
           "# diapason: origin=\"me\" fingerprint=\"8x gfx950\"\r\n",
       }) {
    const ParseOutcome outcome = ParsePolicy(text, {});
    EXPECT_EQ(outcome.errors, 0u) << text << FirstError(text);
    EXPECT_TRUE(outcome.names_library) << text;
    EXPECT_EQ(outcome.policy.library, Library::kRccl) << text;
    EXPECT_EQ(outcome.policy.header.origin, "me") << text;
    EXPECT_EQ(outcome.policy.header.fingerprint, "8x gfx950") << text;
  }
}

TEST(HeaderTest, AFileWithoutALibraryBelongsToItsReader) {
  for (const Library library : kLibraries) {
    ParseOptions options;
    options.library = library;
    const ParseOutcome outcome = ParsePolicy("# about diapason: nothing\n", options);
    EXPECT_EQ(outcome.errors, 0u);
    EXPECT_FALSE(outcome.names_library);
    EXPECT_EQ(outcome.policy.library, library);
  }
}

TEST(HeaderTest, QuotedValuesKeepBlanksEqualSignsAndHashes) {
  const ParseOutcome outcome = ParsePolicy("# diapason: origin=\" a=b # c, \" library=nccl\n", {});
  ASSERT_EQ(outcome.errors, 0u);
  EXPECT_EQ(outcome.policy.header.origin, " a=b # c, ");
}

TEST(HeaderTest, WhatIsNotUnderstoodIsAnErrorOfItsLine) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"librray=rccl", "unknown key 'librray'; did you mean 'library'?"},
      {"colour=red", "unknown key 'colour'; known are version, library"},
      {"library=nvidia", "unknown library 'nvidia'; known are nccl, rccl"},
      {"library=ncll", "did you mean 'nccl'?"},
      {"version=2", "format version 2; this diapason reads up to 1"},
      {"version=0", "version is not a number from 1"},
      {"version=one", "version is not a number from 1"},
      {"origin=\"me", "a quote in the header is never closed"},
      {"library", "no key=value: 'library'"},
      {"checksum=12", "not of the form fnv1a64:0123456789abcdef"},
      {"checksum=fnv1a64:12", "not of the form fnv1a64:0123456789abcdef"},
      {"checksum=fnv1a64:0123456789abcdeg", "not of the form fnv1a64:0123456789abcdef"},
      {"checksum=fnv1a64:-123456789abcdef", "not of the form fnv1a64:0123456789abcdef"},
      {"checksum=md5:0123456789abcdef", "not of the form fnv1a64:0123456789abcdef"},
  };
  for (const auto& [header, message] : cases) {
    const std::string error = FirstError("\n# diapason: " + std::string(header) + "\n" + kRow);
    EXPECT_TRUE(error.starts_with("x.conf:2: error: ")) << header << ": " << error;
    EXPECT_TRUE(Holds(error, message)) << header << ": " << error;
  }
}

TEST(HeaderTest, RowsThatDoNotAddUpToTheChecksumAreRefused) {
  const Policy policy = ParsePolicy(kRow, {}).policy;
  const std::string text = PolicyText(policy);
  ASSERT_EQ(FirstError(text), "");

  std::string edited = text;
  edited.replace(edited.find("1024"), 4, "1025");
  const std::string error = FirstError("# mine\n" + edited);
  EXPECT_TRUE(error.starts_with("x.conf:2: error: the rows do not add up to the checksum"))
      << error;
  Policy as_edited = policy;
  as_edited.rules[0].max_bytes = 1025;
  EXPECT_TRUE(Holds(error, DigestText(Digest(as_edited)))) << error;
  EXPECT_NE(FirstError(text.substr(0, text.rfind("allreduce"))), "") << "cut short";
  EXPECT_NE(FirstError(text + kRow), "") << "one more row";

  ParseOptions options;
  options.ignore_checksum = true;
  const ParseOutcome outcome = ParsePolicy(edited, options);
  EXPECT_EQ(outcome.errors, 0u);
  EXPECT_EQ(outcome.policy.rules.at(0).max_bytes, 1025u);
}

TEST(HeaderTest, TheChecksumErrorNamesTheLineOfTheChecksum) {
  const std::string text =
      "# diapason: library=nccl\n# diapason: checksum=fnv1a64:"
      "0123456789abcdef\n# diapason: origin=me\n";
  EXPECT_TRUE(FirstError(text + kRow).starts_with("x.conf:2: error: the rows do not add up"));
}

TEST(HeaderTest, CommentsBlanksAndSpellingsDoNotChangeTheDigest) {
  const uint64_t digest = Digest(ParsePolicy(kRow, {}).policy);
  const ParseOutcome other = ParsePolicy(
      "# diapason: origin=x\n\nAll_Reduce, 0, 1024, RING, Simple, 4, 2, 16 # comment\n", {});
  EXPECT_EQ(Digest(other.policy), digest);
  Policy changed = ParsePolicy(kRow, {}).policy;
  changed.library = Library::kRccl;
  EXPECT_NE(Digest(changed), digest) << "the library is a part of it";
  EXPECT_EQ(DigestText(0x123), "fnv1a64:0000000000000123");
}

TEST(HeaderTest, EveryPolicyReadsBackFromItsText) {
  std::mt19937_64 random(1);
  for (const Library library : kLibraries) {
    for (int round = 0; round < 60; ++round) {
      Policy policy = RandomPolicy(library, Pick(&random, 40), &random);
      policy.header.origin = "a \"quoted\"\nname # = ,";
      policy.header.fingerprint = round % 2 == 0 ? "" : " 8x NVIDIA A100 ";
      // Another reader's library: the file names its own.
      ParseOptions options;
      options.library = library == Library::kGloo ? Library::kNccl : Library::kGloo;
      const std::string text = PolicyText(policy);
      const ParseOutcome outcome = ParsePolicy(text, options);
      ASSERT_EQ(outcome.errors, 0u) << FirstError(text) << "\n" << text;
      EXPECT_EQ(outcome.policy.library, library);
      EXPECT_EQ(Digest(outcome.policy), Digest(policy));
      EXPECT_EQ(outcome.policy.header.origin, "a 'quoted' name # = ,");
      EXPECT_EQ(outcome.policy.header.fingerprint, policy.header.fingerprint);
      ASSERT_EQ(outcome.policy.rules.size(), policy.rules.size());
      for (size_t i = 0; i < policy.rules.size(); ++i) {
        EXPECT_EQ(Fields(outcome.policy.rules[i]), Fields(policy.rules[i])) << text;
      }
    }
  }
}

TEST(HeaderTest, ALongOriginDoesNotMakeTheTextUnreadable) {
  Policy policy = ParsePolicy(kRow, {}).policy;
  policy.header.origin = std::string(2 * kLongestLine, 'x');
  policy.header.fingerprint = policy.header.origin;
  const std::string text = PolicyText(policy);
  EXPECT_EQ(FirstError(text), "");
  EXPECT_EQ(Digest(ParsePolicy(text, {}).policy), Digest(policy));
}

TEST(HeaderTest, ARowIsPrintedInTenColumns) {
  Rule rule;
  rule.collective = Collective::kReduceScatter;
  rule.min_bytes = 1;
  rule.max_bytes = UINT64_MAX;
  rule.config = {kCollNetDirect, kKeep, 0};
  rule.pipe_ops = 2;
  EXPECT_EQ(RuleText(Library::kNccl, rule),
            "reducescatter,1,18446744073709551615,collnet_direct,-1,-1,-1,-1,2,-1");
}

}  // namespace
}  // namespace diapason::policy
