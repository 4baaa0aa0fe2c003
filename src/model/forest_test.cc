#include "model/forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "model/testing.h"
#include "model/trainer.h"

namespace diapason::model {
namespace {

constexpr size_t kFeatures = 5;

struct Tree {
  std::vector<int32_t> feature, left, right;
  std::vector<float> split;
  Status AddTo(Forest* forest, size_t features = kFeatures) const {
    return forest->AddTree(feature, left, right, split, features);
  }
};

// Below 1 of feature 0: 10. Else below 2 of feature 3: 20, else 30.
Tree Three() {
  return {{0, 0, 3, 0, 0}, {1, -1, 3, -1, -1}, {2, -1, 4, -1, -1}, {1, 10, 2, 20, 30}};
}

// Random numbers one after another.
class Stream {
 public:
  explicit Stream(uint64_t seed) : random_(seed, 9) {}
  size_t Below(size_t limit) { return random_.Bits(next_++) % limit; }
  float Value() { return static_cast<float>(std::round(20 * random_.Uniform(next_++)) / 2); }

 private:
  CounterRandom random_;
  uint64_t next_ = 0;
};

Tree RandomTree(Stream* stream, size_t splits) {
  Tree tree{{0}, {-1}, {-1}, {stream->Value()}};
  for (size_t i = 0; i < splits; ++i) {
    // A leaf becomes a node with two leaves.
    size_t leaf = stream->Below(tree.feature.size());
    while (tree.left[leaf] >= 0) leaf = stream->Below(tree.feature.size());
    tree.feature[leaf] = static_cast<int32_t>(stream->Below(kFeatures));
    tree.split[leaf] = stream->Value();
    for (std::vector<int32_t>* const side : {&tree.left, &tree.right}) {
      (*side)[leaf] = static_cast<int32_t>(tree.feature.size());
      tree.feature.push_back(0);
      tree.left.push_back(-1);
      tree.right.push_back(-1);
      tree.split.push_back(stream->Value());
    }
  }
  return tree;
}

Forest RandomForest(Stream* stream, size_t trees) {
  Forest forest;
  for (size_t i = 0; i < trees; ++i) {
    EXPECT_TRUE(RandomTree(stream, stream->Below(24)).AddTo(&forest).ok());
  }
  return forest;
}

TEST(Forest, GoesLeftBelowTheSplit) {
  Forest forest;
  const float any[kFeatures] = {};
  EXPECT_EQ(forest.Predict(any), 0) << "nothing says nothing";
  ASSERT_TRUE(Three().AddTo(&forest).ok());
  EXPECT_EQ(forest.trees(), 1u);
  EXPECT_EQ(forest.nodes(), 5u);
  const auto at = [&](float first, float fourth) {
    const float row[kFeatures] = {first, 7, 7, fourth, 7};
    return forest.Predict(row);
  };
  EXPECT_EQ(at(0.9f, 9), 10);
  EXPECT_EQ(at(1, 1.9f), 20) << "the split itself is on the right";
  EXPECT_EQ(at(1, 2), 30);
  ASSERT_TRUE(Three().AddTo(&forest).ok());
  EXPECT_EQ(at(1, 2), 60) << "trees add up";
}

TEST(Forest, RefusesWhatIsNoTreeAndStaysAsItWas) {
  Forest forest;
  ASSERT_TRUE(Three().AddTo(&forest).ok());
  const std::string before = forest.Bytes();
  const auto refused = [&](const char* what, auto change) {
    Tree tree = Three();
    change(&tree);
    const Status status = tree.AddTo(&forest);
    EXPECT_FALSE(status.ok()) << what;
    EXPECT_FALSE(status.message().empty()) << what;
    EXPECT_EQ(forest.Bytes(), before) << what;
  };
  refused("nothing", [](Tree* tree) { *tree = {}; });
  refused("its own child", [](Tree* tree) { tree->left[0] = 0; });
  refused("a cycle", [](Tree* tree) { tree->right[2] = 0; });
  refused("a node met twice", [](Tree* tree) { tree->right[2] = 1; });
  refused("both children one", [](Tree* tree) { tree->right[2] = 3; });
  refused("a child outside", [](Tree* tree) { tree->left[2] = 5; });
  refused("a child far outside", [](Tree* tree) { tree->right[0] = INT32_MAX; });
  refused("one child only", [](Tree* tree) { tree->right[2] = -1; });
  refused("a right child only", [](Tree* tree) { tree->left[2] = -1; });
  refused("no such feature", [](Tree* tree) { tree->feature[2] = kFeatures; });
  refused("a negative feature", [](Tree* tree) { tree->feature[0] = -1; });
  refused("a NaN leaf", [](Tree* tree) { tree->split[1] = NAN; });
  refused("an infinite split", [](Tree* tree) { tree->split[0] = INFINITY; });
  refused("too few splits", [](Tree* tree) { tree->split.pop_back(); });
  refused("too few features", [](Tree* tree) { tree->feature.pop_back(); });
  refused("too many right ones", [](Tree* tree) { tree->right.push_back(-1); });
}

TEST(Forest, BytesComeBack) {
  Stream stream(7);
  for (int i = 0; i < 20; ++i) {
    const Forest forest = RandomForest(&stream, stream.Below(6));
    const Result<Forest> again = Forest::FromBytes(forest.Bytes(), kFeatures);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again.value().Bytes(), forest.Bytes());
    for (int k = 0; k < 20; ++k) {
      float row[kFeatures];
      for (float& value : row) value = stream.Value();
      EXPECT_EQ(again.value().Predict(row), forest.Predict(row));
    }
  }
}

TEST(Forest, RefusesEveryTruncationAndMore) {
  Stream stream(8);
  const std::string bytes = RandomForest(&stream, 3).Bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(Forest::FromBytes(std::string_view(bytes).substr(0, length), kFeatures).ok())
        << length;
  }
  EXPECT_FALSE(Forest::FromBytes(bytes + '\0', kFeatures).ok());
  EXPECT_TRUE(Forest::FromBytes(bytes, kFeatures).ok());
}

// The layout: two counts, roots of four bytes, nodes of a feature (2), a child (4), a split (4).
TEST(Forest, RefusesHostileNumbers) {
  Forest forest;
  ASSERT_TRUE(Three().AddTo(&forest).ok());
  const std::string bytes = forest.Bytes();
  constexpr size_t kRoot = 8;
  constexpr size_t kNodes = 12;
  ASSERT_EQ(bytes.size(), kNodes + 5 * 10);
  const auto refused = [&](size_t place, auto value) {
    std::string hostile = bytes;
    std::memcpy(&hostile[place], &value, sizeof(value));
    return !Forest::FromBytes(hostile, kFeatures).ok();
  };
  for (const int32_t root : {-1, 5, INT32_MAX, INT32_MIN})
    EXPECT_TRUE(refused(kRoot, root)) << root;
  for (const int32_t child : {-1, 0, 4, 5, INT32_MAX, INT32_MIN}) {
    EXPECT_TRUE(refused(kNodes + 2, child)) << child;
  }
  for (const int16_t feature : {int16_t{kFeatures}, int16_t{INT16_MAX}}) {
    EXPECT_TRUE(refused(kNodes, feature)) << feature;
  }
  for (const float split : {NAN, INFINITY, -INFINITY}) EXPECT_TRUE(refused(kNodes + 6, split));
  for (const uint32_t count : {0u, 2u, 6u, UINT32_MAX, 1u << 31}) {
    EXPECT_TRUE(refused(0, count)) << count << " roots";
    EXPECT_TRUE(refused(4, count)) << count << " nodes";
  }
  EXPECT_FALSE(Forest::FromBytes(bytes, 3).ok()) << "it asks for the fourth feature";
}

TEST(Forest, WhateverIsAcceptedCanBeAsked) {
  Stream stream(21);
  const std::string bytes = RandomForest(&stream, 2).Bytes();
  size_t accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string hostile = bytes;
    for (size_t k = 0; k <= stream.Below(3); ++k) {
      hostile[stream.Below(hostile.size())] = static_cast<char>(stream.Below(256));
    }
    const Result<Forest> forest = Forest::FromBytes(hostile, kFeatures);
    if (!forest.ok()) continue;
    ++accepted;
    float rows[4 * kFeatures];
    for (float& value : rows) value = 1;
    for (size_t k = 0; k < 4; ++k) rows[k * kFeatures] = static_cast<float>(3 * k);
    double out[4] = {};
    forest.value().PredictMonotone(rows, 4, kFeatures, out);
    EXPECT_TRUE(std::isfinite(forest.value().Predict(rows)));
  }
  EXPECT_GT(accepted, 100u) << "else this shows nothing";
}

TEST(Forest, ManyRowsAtOnceAreEachRowAlone) {
  Stream stream(11);
  for (int i = 0; i < 200; ++i) {
    const Forest forest = RandomForest(&stream, 1 + stream.Below(8));
    const size_t count = stream.Below(70);
    const size_t stride = kFeatures + stream.Below(3);
    std::vector<float> rows(count * stride + 1, -99);
    for (size_t f = 0; f < kFeatures; ++f) {
      // Up, down, or the same everywhere, often with many equal values.
      std::vector<float> column(count);
      for (float& value : column) value = stream.Value();
      std::sort(column.begin(), column.end());
      const size_t way = stream.Below(3);
      if (way == 1) std::reverse(column.begin(), column.end());
      if (way == 2 && count > 0) column.assign(count, column[0]);
      for (size_t k = 0; k < count; ++k) rows[k * stride + f] = column[k];
    }
    std::vector<double> out(count + 1, 0.25);
    forest.PredictMonotone(rows.data(), count, stride, out.data());
    for (size_t k = 0; k < count; ++k) {
      ASSERT_NEAR(out[k], 0.25 + forest.Predict(&rows[k * stride]), 1e-9) << i << " row " << k;
    }
    EXPECT_EQ(out[count], 0.25) << "no row, no answer";
  }
}

class Trainer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WhyNoTrainer().empty()) GTEST_SKIP() << WhyNoTrainer();
    const CounterRandom random(4, 4);
    training_set_.columns = 2;
    for (uint64_t i = 0; i < 300; ++i) {
      const double x = random.Uniform(3 * i);
      const double y = random.Uniform(3 * i + 1);
      training_set_.values.push_back(static_cast<float>(x));
      training_set_.values.push_back(static_cast<float>(y));
      training_set_.targets.push_back(
          static_cast<float>((x < 0.5 ? 1 : 3) + y + 0.1 * random.Normal(3 * i + 2)));
    }
    options_.trees = 40;
    options_.depth = 3;
    options_.rate = 0.3;
  }
  std::string Bytes() {
    const Result<Forest> forest = TrainTrees(training_set_, options_);
    EXPECT_TRUE(forest.ok()) << forest.status().message();
    return forest.ok() ? forest.value().Bytes() : "";
  }

  TrainingSet training_set_;
  TreeOptions options_;
};

TEST_F(Trainer, LearnsAStep) {
  const Result<Forest> forest = TrainTrees(training_set_, options_);
  ASSERT_TRUE(forest.ok()) << forest.status().message();
  EXPECT_EQ(forest.value().trees(), 40u);
  const float left[] = {0.2f, 0.5f};
  const float right[] = {0.8f, 0.5f};
  EXPECT_NEAR(forest.value().Predict(left), 1.5, 0.15);
  EXPECT_NEAR(forest.value().Predict(right), 3.5, 0.15);
}

TEST_F(Trainer, TheSameRowsAndSeedGiveTheSameTrees) {
  options_.share = 0.5;
  const std::string first = Bytes();
  EXPECT_EQ(Bytes(), first);
  options_.seed = 2;
  EXPECT_NE(Bytes(), first) << "another lot";
}

TEST_F(Trainer, WeightsCount) {
  // Ten rows against one, at the same place: the weight decides.
  training_set_ = {};
  training_set_.columns = 1;
  for (int i = 0; i < 11; ++i) {
    training_set_.values.push_back(1);
    training_set_.targets.push_back(i == 0 ? 5 : 1);
    training_set_.weights.push_back(i == 0 ? 1000 : 0.1f);
  }
  const Result<Forest> forest = TrainTrees(training_set_, options_);
  ASSERT_TRUE(forest.ok());
  const float row[] = {1};
  EXPECT_NEAR(forest.value().Predict(row), 5, 0.1);
}

TEST_F(Trainer, NothingToLearnFromIsAnError) {
  EXPECT_FALSE(TrainTrees({}, options_).ok());
  TrainingSet empty;
  empty.columns = 3;
  EXPECT_FALSE(TrainTrees(empty, options_).ok());
}

}  // namespace
}  // namespace diapason::model
