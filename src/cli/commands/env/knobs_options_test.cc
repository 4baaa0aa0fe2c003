#include "cli/commands/env/knobs_options.h"

#include <gtest/gtest.h>

namespace diapason::cli {
namespace {

TEST(KnobsOptions, OnlyTheLibrariesOfTheCatalogue) {
  EXPECT_EQ(ParseNcclOrRccl("nccl").value(), Library::kNccl);
  EXPECT_EQ(ParseNcclOrRccl("rccl").value(), Library::kRccl);
  for (const char* other : {"gloo", "openmpi", "foo", ""}) {
    const Result<Library> library = ParseNcclOrRccl(other);
    ASSERT_FALSE(library.ok()) << other;
    const std::string text = library.status().message();
    // What is suggested is taken.
    EXPECT_NE(text.find("nccl"), std::string::npos) << text;
    EXPECT_EQ(text.find("openmpi,"), std::string::npos) << text;
    EXPECT_EQ(text.find("gloo,"), std::string::npos) << text;
  }
}

TEST(KnobsOptions, VersionsHaveThreeNumbers) {
  EXPECT_EQ(ParseWholeVersion("2.28.9").value(), 22809);
  EXPECT_EQ(ParseWholeVersion("2.28").status().message(),
            "all three numbers are needed, e.g. 2.28.9");
  EXPECT_FALSE(ParseWholeVersion("abc").ok());
  EXPECT_FALSE(ParseWholeVersion("").ok());
}

TEST(KnobsOptions, AFileOfAnotherLibrary) {
  EXPECT_TRUE(CheckLibraryFile(Library::kNccl, Library::kNccl, "a").ok());
  EXPECT_EQ(CheckLibraryFile(Library::kRccl, Library::kNccl, "/l/libnccl.so.2").message(),
            "/l/libnccl.so.2 is NCCL's, and --library says rccl; remove one of the two options");
}

TEST(KnobsOptions, WhyNoVersionIsKnown) {
  const Library rccl = Library::kRccl;
  EXPECT_EQ(WhyNoVersion(&rccl, 0, 2),
            "no RCCL was found here, so only advice for all versions is given");
  EXPECT_EQ(WhyNoVersion(nullptr, 0, 0),
            "no library was found, so only advice for all versions is given");
  EXPECT_NE(WhyNoVersion(&rccl, 2, 3).find("several libraries"), std::string::npos);
  EXPECT_NE(WhyNoVersion(nullptr, 0, 3).find("several libraries"), std::string::npos);
}

TEST(KnobsOptions, NameTheOptionThatIsWrong) {
  EXPECT_TRUE(CheckLibraryOptions("", "").ok());
  EXPECT_TRUE(CheckLibraryOptions("RCCL", "2.28.3").ok());
  EXPECT_TRUE(CheckLibraryOptions("gloo", "").message().starts_with("--library: "));
  EXPECT_EQ(CheckLibraryOptions("nccl", "2.28").message(),
            "--library-version: all three numbers are needed, e.g. 2.28.9");
}

}  // namespace
}  // namespace diapason::cli
