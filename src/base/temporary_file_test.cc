#include "base/temporary_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace diapason {
namespace {

TEST(TemporaryFileTest, HasItsContentUntilItIsDestroyed) {
  std::string path;
  {
    TemporaryFile file;
    EXPECT_EQ(file.path(), "");
    ASSERT_TRUE(file.Create("test", "content").ok());
    path = file.path();
    EXPECT_NE(path.find("/diapason-test-"), std::string::npos);
    EXPECT_EQ(ReadFile(path, 100).value(), "content");
  }
  EXPECT_FALSE(FileExists(path));
}

TEST(TemporaryFolderTest, GoesWithEverythingInIt) {
  std::string path;
  {
    const TemporaryFolder one;
    const TemporaryFolder other;
    EXPECT_NE(one.path(), other.path());
    path = one.path();
    ASSERT_TRUE(std::filesystem::is_directory(path));
    std::filesystem::create_directories(path + "/a/b");
    std::ofstream(path + "/a/b/file") << "x";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolderTest, WhereItIsAskedFor) {
  const TemporaryFolder outer;
  const TemporaryFolder inner(outer.path());
  EXPECT_EQ(inner.path().compare(0, outer.path().size() + 1, outer.path() + "/"), 0);
  EXPECT_EQ(TemporaryFolder(outer.path() + "/missing").path(), "");
}

}  // namespace
}  // namespace diapason
