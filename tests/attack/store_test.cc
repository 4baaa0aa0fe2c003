// The file store while somebody empties it, as `rm -r` does: one folder after the other.
#include "agree/store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/temporary_file.h"

namespace diapason::agree {
namespace {

namespace fs = std::filesystem;

class EmptiedStoreTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    options_.where = "file:" + folder_;
    options_.job = "job";
    Result<std::unique_ptr<CellStore>> store = OpenStore(options_);
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
  }

  std::string Half(const std::string& name) const {
    return folder_ + "/diapason-" + std::to_string(::geteuid()) + "/job/" + name;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
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
