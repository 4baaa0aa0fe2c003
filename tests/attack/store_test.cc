// The file store while somebody empties it, as `rm -r` does: one folder after the other.
#include "agree/store.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace diapason::agree {
namespace {

namespace fs = std::filesystem;

class EmptiedStoreTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    char name[] = "/tmp/diapason_emptied_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    options_.where = "file:" + folder_;
    options_.job = "job";
    Result<std::unique_ptr<CellStore>> store = OpenStore(options_);
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Half(const std::string& name) const {
    return folder_ + "/diapason-" + std::to_string(::geteuid()) + "/job/" + name;
  }

  std::string folder_;
  StoreOptions options_;
  std::unique_ptr<CellStore> store_;
};

// Whichever half of the store went first: a cell that others have used must not be taken for empty.
TEST_P(EmptiedStoreTest, OneHalfWithoutItsNonceIsAnError) {
  ASSERT_TRUE(store_->Propose("before", "theirs").ok());
  for (const char* half : {"1", "2"}) {
    for (const auto& entry : fs::directory_iterator(Half(half))) {
      const bool nonce = entry.path().filename() == "nonce";
      if (!nonce || std::string(half) == GetParam()) fs::remove(entry.path());
    }
  }
  EXPECT_FALSE(store_->Read("before").ok());
  EXPECT_FALSE(store_->Propose("before", "ours").ok());
}

INSTANTIATE_TEST_SUITE_P(Halves, EmptiedStoreTest, ::testing::Values("1", "2"));

}  // namespace
}  // namespace diapason::agree
