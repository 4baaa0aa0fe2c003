#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dataset/store.h"
#include "model/grid.h"
#include "model/predictor.h"

// Helpers shared by the tests of this component; not part of the library.
namespace diapason::model {

// Measurements from a formula.
struct Recipe {
  Library library = Library::kRccl;
  std::vector<CallPlace> places = {{Collective::kAllReduce, 1, 8}};
  std::vector<uint64_t> sizes;
  std::vector<Config> configs;  // Config{} is the library's own choice
  int repeats = 3;
  double noise = 0;  // standard deviation of the logarithm of a sample
  uint64_t seed = 1;
  std::function<double(const CallPlace& place, uint64_t bytes, const Config& config)> seconds;
};
dataset::StoreContents Measure(const Recipe& recipe);
Grid MeasureGrid(const Recipe& recipe);

// `first`, twice that, and so on.
std::vector<uint64_t> Doublings(uint64_t first, size_t count);
// A pair with each of these channel counts.
std::vector<Config> WithChannels(int algorithm, int protocol, const std::vector<int>& channels);

// All configurations take as long as the library's own choice, times `factor`: ten sizes, the
// default, a ring with 2 to 32 channels and a tree with 4 to 24, at kHere.
Recipe Flat(std::function<double(uint64_t bytes, const Config& config)> factor);
inline constexpr CallPlace kHere{Collective::kAllReduce, 1, 8};
std::vector<Config> SomeConfigs();  // of Flat
// For Flat: kBest is a fifth faster than the default, all others slower.
inline constexpr Config kBest{kRing, kSimple, 16, 0};
double BestIsAFifthFaster(uint64_t bytes, const Config& config);
// For Flat: channels help up to a point that depends on the size; the default is a poor choice.
double Smooth(uint64_t bytes, const Config& config);

// One sample of "allreduce" on eight ranks. The default if `algorithm` is empty.
dataset::Sample OneSample(uint64_t bytes, const std::string& algorithm, int channels,
                          double seconds);
// Adds these as a run of their own.
void AddRun(const std::string& library, const std::vector<dataset::Sample>& samples,
            dataset::StoreContents* contents);

// RCCL's all-reduce on 8 and 16 MI355X: real measurements.
const Grid& RealGrid();

// "", or why training is not available here.
std::string WhyNoTrainer();
// Small trees: fast, and sufficient for tests.
FitOptions QuickFit();
// Fails the test if it cannot be fitted.
Predictor Learn(const Grid& grid, const FitOptions& options = QuickFit());

// Whether `text` contains `part`.
bool Has(const std::string& text, const std::string& part);
bool AnyHas(const std::vector<std::string>& texts, const std::string& part);

}  // namespace diapason::model
