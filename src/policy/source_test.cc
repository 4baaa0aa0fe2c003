#include "policy/source.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <map>

#include "base/file.h"
#include "base/temporary_file.h"
#include "policy/inline.h"

namespace diapason::policy {
namespace {

constexpr char kRow[] = "allreduce,0,1024,ring,simple,4,2,16,-1,-1\n";

Source With(std::map<std::string, std::string> variables) {
  return FindSource(Settings::Read(MapEnvironment(std::move(variables))));
}

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(SourceTest, NothingSetIsNoSource) {
  EXPECT_EQ(With({}).kind, Source::Kind::kNone);
  EXPECT_EQ(With({{"DIAPASON_POLICY", ""}, {"DIAPASON_POLICY_INLINE", ""}}).kind,
            Source::Kind::kNone);
  EXPECT_EQ(With({{"DIAPASON_OVERLAP", "1"}}).kind, Source::Kind::kNone);
}

TEST(SourceTest, TheFirstThatIsSetWins) {
  std::map<std::string, std::string> variables{{"DIAPASON_POLICY_INLINE", "d1.word"},
                                               {"DIAPASON_OVERLAP", "1"},
                                               {"DIAPASON_POLICY_OVERLAP", "o.conf"},
                                               {"DIAPASON_POLICY", "p.conf"},
                                               {"NCCL_TUNER_CONFIG_FILE", "n.conf"}};
  const Source word = With(variables);
  EXPECT_EQ(word.kind, Source::Kind::kInline);
  EXPECT_EQ(word.name, "DIAPASON_POLICY_INLINE");
  EXPECT_EQ(word.text, "d1.word");

  variables.erase("DIAPASON_POLICY_INLINE");
  EXPECT_EQ(With(variables).kind, Source::Kind::kFile);
  EXPECT_EQ(With(variables).name, "o.conf");
  variables.erase("DIAPASON_POLICY_OVERLAP");
  EXPECT_EQ(With(variables).name, "p.overlap.conf");
  variables.erase("DIAPASON_POLICY");
  EXPECT_EQ(With(variables).name, "n.overlap.conf");
  variables.erase("DIAPASON_OVERLAP");
  EXPECT_EQ(With(variables).kind, Source::Kind::kFile);
  EXPECT_EQ(With(variables).name, "n.conf");
}

TEST(SourceTest, OverlapPoliciesAreForOverlapOnly) {
  EXPECT_EQ(With({{"DIAPASON_POLICY_OVERLAP", "o.conf"}}).kind, Source::Kind::kNone);
  EXPECT_EQ(With({{"DIAPASON_POLICY_OVERLAP", "o.conf"}, {"DIAPASON_POLICY", "p.conf"}}).name,
            "p.conf");
  EXPECT_EQ(With({{"DIAPASON_POLICY_OVERLAP", "o.conf"}, {"NCCL_WORKLOAD_OVERLAP", "1"}}).name,
            "o.conf");
}

class LoadPolicyTest : public ::testing::Test {
 protected:
  Source File(const std::string& text) {
    const std::string path = folder_ + "/p.conf";
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return {Source::Kind::kFile, path, ""};
  }
  static Result<Policy> LoadFor(Library library, const Source& source) {
    ParseOptions options;
    options.library = library;
    return LoadPolicy(source, options);
  }
  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(LoadPolicyTest, NoSourceIsAnEmptyPolicyOfTheReadersLibrary) {
  const Result<Policy> policy = LoadFor(Library::kRccl, {});
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(policy.value().library, Library::kRccl);
  EXPECT_TRUE(policy.value().rules.empty());
}

TEST_F(LoadPolicyTest, AFileAndAnInlineWordGiveTheSamePolicy) {
  const Result<Policy> from_file = LoadFor(Library::kNccl, File(kRow));
  ASSERT_TRUE(from_file.ok());
  const Source word{Source::Kind::kInline, "DIAPASON_POLICY_INLINE",
                    EncodeInline(from_file.value())};
  const Result<Policy> from_word = LoadFor(Library::kNccl, word);
  ASSERT_TRUE(from_word.ok()) << from_word.status().message();
  EXPECT_EQ(Digest(from_word.value()), Digest(from_file.value()));
  EXPECT_EQ(from_word.value().rules.size(), 1u);
}

TEST_F(LoadPolicyTest, AFileThatNamesNoLibraryServesItsReader) {
  const Source source = File(kRow);
  EXPECT_EQ(LoadFor(Library::kNccl, source).value().library, Library::kNccl);
  EXPECT_EQ(LoadFor(Library::kRccl, source).value().library, Library::kRccl);
}

TEST_F(LoadPolicyTest, APolicyForAnotherLibraryIsRefused) {
  const Source file = File(std::string("# diapason: library=rccl\n") + kRow);
  ASSERT_TRUE(LoadFor(Library::kRccl, file).ok());
  const Result<Policy> refused = LoadFor(Library::kNccl, file);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(Holds(refused.status().message(), "p.conf: the policy is for RCCL, not for NCCL"))
      << refused.status().message();

  const Source word{Source::Kind::kInline, "DIAPASON_POLICY_INLINE",
                    EncodeInline(LoadFor(Library::kRccl, file).value())};
  EXPECT_TRUE(LoadFor(Library::kRccl, word).ok());
  EXPECT_TRUE(Holds(LoadFor(Library::kNccl, word).status().message(),
                    "DIAPASON_POLICY_INLINE: the policy is for RCCL, not for NCCL"));
}

TEST_F(LoadPolicyTest, WhatCannotBeReadIsAnErrorThatNamesTheSource) {
  const Result<Policy> missing =
      LoadFor(Library::kNccl, {Source::Kind::kFile, folder_ + "/none.conf", ""});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(Holds(missing.status().message(), folder_ + "/none.conf"));

  EXPECT_FALSE(LoadFor(Library::kNccl, {Source::Kind::kFile, folder_, ""}).ok()) << "a folder";
  EXPECT_TRUE(Holds(LoadFor(Library::kNccl, File("\nnonsense\n")).status().message(),
                    folder_ + "/p.conf:2: error: "));
  const Source word{Source::Kind::kInline, "DIAPASON_POLICY_INLINE", "d1.broken"};
  EXPECT_TRUE(
      LoadFor(Library::kNccl, word).status().message().starts_with("DIAPASON_POLICY_INLINE: "));
}

TEST_F(LoadPolicyTest, AFileBeyondTheLimitIsRefused) {
  const std::string line = std::string(kLongestLine - 1, '#') + "\n";
  std::string text;
  while (text.size() < kMostBytes) text += line;
  EXPECT_TRUE(LoadFor(Library::kNccl, File(text)).ok());
  const Result<Policy> larger = LoadFor(Library::kNccl, File(text + "\n"));
  EXPECT_TRUE(Holds(larger.status().message(), "larger than")) << larger.status().message();
}

TEST(FindSourceTest, WhatWasLearnedIsUsedOnceItIsThereAndApartUnderOverlap) {
  const TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  const std::string learned = folder + "/learned.conf";
  const auto with = [&learned](std::map<std::string, std::string> more) {
    more["DIAPASON_LEARNED"] = learned;
    return Settings::Read(MapEnvironment(std::move(more)));
  };
  EXPECT_EQ(FindSource(with({})).kind, Source::Kind::kNone);
  std::ofstream(learned) << "\n";
  EXPECT_EQ(FindSource(with({})).name, learned);
  EXPECT_EQ(FindSource(with({{"DIAPASON_POLICY", "x"}})).name, "x");
  EXPECT_EQ(FindSource(with({{"DIAPASON_OVERLAP", "1"}})).kind, Source::Kind::kNone);
  std::ofstream(folder + "/learned.overlap.conf") << "\n";
  EXPECT_EQ(FindSource(with({{"DIAPASON_OVERLAP", "1"}})).name, folder + "/learned.overlap.conf");
  const std::map<std::string, std::string> overlap = {{"DIAPASON_OVERLAP", "1"}};
  EXPECT_EQ(LearnedFile(Settings::Read(MapEnvironment(overlap))), "");
}

}  // namespace
}  // namespace diapason::policy
