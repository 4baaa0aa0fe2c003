#include "model/features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/testing.h"

namespace diapason::model {
namespace {

std::vector<Features> AllFeatures() {
  Recipe recipe;
  recipe.places = {{Collective::kAllReduce, 1, 8},
                   {Collective::kAllReduce, 2, 16},
                   {Collective::kBroadcast, 2, 16}};
  recipe.sizes = {1024, 4096};
  recipe.configs = {{kRing, kLl, 2, 0}, {kRing, kSimple, 4, 0}, {kTree, kLl128, 4, 0}, {}};
  recipe.seconds = [](const CallPlace&, uint64_t, const Config&) { return 1e-3; };
  return {Features::OfTime(MeasureGrid(recipe)), Features::OfTime(RealGrid()),
          Features::OfBandwidth(Library::kRccl)};
}

TEST(Features, NamesSayAllThereIs) {
  for (const Features& features : AllFeatures()) {
    ASSERT_GT(features.count(), 5u);
    const Result<Features> again = Features::Named(Library::kRccl, features.names());
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again.value().names(), features.names());
    std::vector<float> row(features.count());
    std::vector<float> other(features.count(), -1);
    for (const Config& config : {Config{kRing, kLl, 7, 0}, Config{kTree, kSimple, 64, 0}}) {
      const CallPlace place{Collective::kAllReduce, 3, 24};
      features.Fill(place, 12345, config, row.data());
      again.value().Fill(place, 12345, config, other.data());
      EXPECT_EQ(row, other);
    }
  }
}

TEST(Features, TellApartWhatTheDataTellApart) {
  const Features features = AllFeatures()[0];
  std::vector<std::vector<float>> rows;
  const auto add = [&](const CallPlace& place, uint64_t bytes, const Config& config) {
    rows.emplace_back(features.count());
    features.Fill(place, bytes, config, rows.back().data());
  };
  const CallPlace place{Collective::kAllReduce, 2, 16};
  add(place, 4096, {kRing, kLl, 2, 0});
  add(place, 4096, {kTree, kLl, 2, 0});
  add(place, 4096, {kRing, kSimple, 2, 0});
  add(place, 4096, {kRing, kLl, 3, 0});
  add(place, 8192, {kRing, kLl, 2, 0});
  add({Collective::kBroadcast, 2, 16}, 4096, {kRing, kLl, 2, 0});
  // With as many ranks on every node, ranks are all there is to tell places apart.
  add({Collective::kAllReduce, 4, 32}, 4096, {kRing, kLl, 2, 0});
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(rows[i], rows[j]) << i << " and " << j;
  }
}

TEST(Features, AColumnForEveryWord) {
  const std::vector<std::string> names = {
      "collective=allgather", "algorithm=1", "protocol=2", "nchannels", "num_gpus",
      "bytes_per_gpu"};
  const Result<Features> features = Features::Named(Library::kRccl, names);
  ASSERT_TRUE(features.ok()) << features.status().message();
  const auto row = [&](Collective collective, const Config& config) {
    std::vector<float> values(names.size());
    features.value().Fill({collective, 2, 16}, 1600, config, values.data());
    return values;
  };
  using Row = std::vector<float>;
  EXPECT_EQ(row(Collective::kAllGather, {kRing, kSimple, 4, 0}), (Row{1, 1, 1, 4, 16, 100}));
  EXPECT_EQ(row(Collective::kBroadcast, {kTree, kLl, 4, 0}), (Row{0, 0, 0, 4, 16, 100}));
  EXPECT_EQ(row(Collective::kAllGather, {kTree, kSimple, 9, 0}), (Row{1, 0, 1, 9, 16, 100}));
}

TEST(Features, UnknownNamesAreRefused) {
  for (const char* name : {"", "log2_byte", "LOG2_BYTES", "collective=", "collective=shout",
                           "algorithm=", "algorithm=-1", "algorithm=256", "algorithm=ring",
                           "protocol=1x", "protocol=99999999999999999999"}) {
    const Result<Features> features = Features::Named(Library::kNccl, {"log2_bytes", name});
    EXPECT_FALSE(features.ok()) << "'" << name << "'";
  }
  EXPECT_TRUE(Features::Named(Library::kNccl, {"log2_bytes", "algorithm=255"}).ok());
}

TEST(Features, MonotoneInTheChannelsForEveryFamily) {
  for (const Features& features : AllFeatures()) {
    const size_t columns = features.count();
    for (const Collective collective : {Collective::kAllReduce, Collective::kBroadcast}) {
      for (const int algorithm : {kTree, kRing, kPat, kKeep}) {
        for (const int protocol : {kLl, kLl128, kSimple, kKeep}) {
          for (const uint64_t bytes : {uint64_t{0}, uint64_t{7}, uint64_t{1} << 20, UINT64_MAX}) {
            std::vector<float> rows(64 * columns);
            for (int channels = 1; channels <= 64; ++channels) {
              features.Fill({collective, 2, 16}, bytes, {algorithm, protocol, channels, 0},
                            &rows[static_cast<size_t>(channels - 1) * columns]);
            }
            for (size_t f = 0; f < columns; ++f) {
              bool rises = false;
              bool falls = false;
              for (size_t i = 1; i < 64; ++i) {
                const float before = rows[(i - 1) * columns + f];
                const float after = rows[i * columns + f];
                ASSERT_TRUE(std::isfinite(after)) << features.names()[f];
                rises |= after > before;
                falls |= after < before;
              }
              EXPECT_FALSE(rises && falls) << features.names()[f];
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace diapason::model
