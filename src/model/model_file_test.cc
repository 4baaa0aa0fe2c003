#include "model/model_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/choose.h"
#include "model/split_check.h"
#include "model/testing.h"

namespace diapason::model {
namespace {

class ModelFileTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = WhyNoTrainer(); !reason.empty()) GTEST_SKIP() << reason;
  }
  static Model Trained(Objective objective = Objective::kTime, uint32_t seed = 1) {
    FitOptions fit = QuickFit();
    fit.objective = objective;
    fit.seed = seed;
    Model model;
    model.predictor = Learn(RealGrid(), fit);
    model.info.machine = "8x a machine\nwith a line feed";
    model.info.fingerprint = RealGrid().Fingerprint();
    model.info.samples = 3564;
    model.info.cells = 1188;
    model.info.seed = seed;
    model.info.figures = {{"r2", "0.99"}, {"mae", "1.2 GB/s"}};
    return model;
  }
};

TEST_F(ModelFileTest, ComesBackAsItWas) {
  for (const Objective objective : {Objective::kTime, Objective::kBusBandwidth}) {
    const Model model = Trained(objective);
    const std::string bytes = ModelFile::Write(model);
    const Result<Model> read = ModelFile::Read(bytes);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(ModelFile::Write(read.value()), bytes);
    EXPECT_EQ(read.value().info.machine, "8x a machine with a line feed");
    EXPECT_EQ(read.value().info.fingerprint, model.info.fingerprint);
    EXPECT_EQ(read.value().info.samples, 3564U);
    EXPECT_EQ(read.value().info.figures, model.info.figures);
    EXPECT_EQ(read.value().predictor.features().names(), model.predictor.features().names());
    // It answers alike, where there are measurements and where there are none.
    for (const int nodes : {1, 2, 4}) {
      const Predictor::Request request{
          {Collective::kAllReduce, nodes, 8 * nodes}, 3 << 18, true, {}};
      const Prediction a = model.predictor.Look(request);
      const Prediction b = read.value().predictor.Look(request);
      ASSERT_EQ(a.candidates.size(), b.candidates.size());
      for (size_t i = 0; i < a.candidates.size(); ++i) {
        EXPECT_EQ(a.candidates[i].estimate.log_seconds, b.candidates[i].estimate.log_seconds);
      }
    }
  }
}

TEST_F(ModelFileTest, TheSameDataAndSeedGiveTheSameBytes) {
  EXPECT_EQ(ModelFile::Write(Trained()), ModelFile::Write(Trained()));
  EXPECT_NE(ModelFile::Write(Trained()), ModelFile::Write(Trained(Objective::kTime, 2)));
}

TEST_F(ModelFileTest, EveryChangedByteIsNoticed) {
  const std::string bytes = ModelFile::Write(Trained());
  const size_t step = bytes.size() / 300;
  for (size_t i = 0; i < bytes.size(); i += std::max<size_t>(1, step)) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(ModelFile::Read(changed).ok()) << "byte " << i;
  }
  for (size_t length = 0; length < bytes.size(); length += std::max<size_t>(1, step)) {
    EXPECT_FALSE(ModelFile::Read(bytes.substr(0, length)).ok()) << length << " bytes";
  }
  EXPECT_FALSE(ModelFile::Read(bytes + "x").ok());
}

TEST_F(ModelFileTest, SaysWhatIsWrong) {
  const std::string bytes = ModelFile::Write(Trained());
  const auto message = [](const std::string& text) {
    return ModelFile::Read(text).status().message();
  };
  EXPECT_TRUE(Has(message("collective,num_nodes\n"), "no model"));
  EXPECT_TRUE(Has(message(""), "no model"));
  std::string other = bytes;
  other.replace(other.find(" 3 "), 3, " 4 ");
  EXPECT_TRUE(Has(message(other), "format 4, this program reads 3"));
  EXPECT_TRUE(Has(message(bytes.substr(0, bytes.size() - 1)), "changed or cut short"));
  const Result<Model> missing = ModelFile::Load("/nonexistent/x.model");
  EXPECT_FALSE(missing.ok());
}

// Files of winners only: one configuration a size, now and then the default.
TEST_F(ModelFileTest, OneConfigurationASizeIsEnoughToAsk) {
  Recipe recipe;
  recipe.sizes = Doublings(4096, 8);
  recipe.configs = {kBest};
  recipe.seconds = [](const CallPlace&, uint64_t bytes, const Config&) {
    return 1e-5 + static_cast<double>(bytes) * 1e-11;
  };
  Model model;
  model.predictor = Learn(MeasureGrid(recipe));
  const Result<Model> read = ModelFile::Read(ModelFile::Write(model));
  ASSERT_TRUE(read.ok()) << read.status().message();
  const ModelChoice choice =
      FindOptimalConfig(read.value().predictor, {kHere, 100000, false, {}}, {});
  ASSERT_TRUE(choice.best.has_value());
  EXPECT_EQ(choice.best->config, kBest);
  EXPECT_FALSE(choice.gain.has_value());
  const Result<SplitCheck> check = CheckSplit(MeasureGrid(recipe), 0.2, QuickFit());
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(std::isfinite(check.value().r2));
  EXPECT_TRUE(std::isfinite(check.value().mae));
}

TEST_F(ModelFileTest, SplitCheckTellsAGoodModelFromABadOne) {
  const Result<SplitCheck> good = CheckSplit(RealGrid(), 0.2, QuickFit());
  ASSERT_TRUE(good.ok());
  EXPECT_GT(good.value().r2, 0.98);
  EXPECT_EQ(good.value().trained_cells + good.value().tested_cells, RealGrid().CellCount());
  EXPECT_NEAR(static_cast<double>(good.value().tested_cells), 0.2 * 1188, 60);
  FitOptions stump = QuickFit();
  stump.objective = Objective::kBusBandwidth;
  stump.original.trees = 1;
  const Result<SplitCheck> bad = CheckSplit(RealGrid(), 0.2, stump);
  ASSERT_TRUE(bad.ok());
  EXPECT_LT(bad.value().r2, 0.5);
  EXPECT_GT(bad.value().mae, 5 * good.value().mae);
}

}  // namespace
}  // namespace diapason::model
