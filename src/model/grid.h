#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "dataset/store.h"
#include "diapason/config.h"
#include "domain/vocabulary.h"
#include "model/noise.h"

namespace diapason::model {

// Where a collective runs: the library's question without the size.
struct CallPlace {
  Collective collective = Collective::kAllReduce;
  int nodes = 1;
  int ranks = 1;
  friend auto operator<=>(const CallPlace&, const CallPlace&) = default;
};
// "allreduce, 16 ranks on 2 nodes"
std::string PlaceText(const CallPlace& place);

// log of the size; 0 bytes count as 1.
double LogBytes(uint64_t bytes);
// Bus bandwidth as nccl-tests prints it, in GB/s.
double BusGigabytes(const CallPlace& place, uint64_t bytes, double log_seconds);

// The measurements of one configuration at one size.
struct MeasuredConfig {
  Config config;
  double log_seconds = 0;  // of the median
  // Standard error of the median (of the logarithm): from the spread of the repeats, combined with
  // that of all cells of the place, and from the rounding of printed digits.
  double noise = 0;
  double coarse = 0;  // half of the last printed digit, as a fraction
  size_t samples = 0;
  // For tests of gains (noise.h): the samples of rank TestRank from the fast and from the slow end,
  // and the standard deviation of one sample.
  double test_fast = 0;
  double test_slow = 0;
  double scale = 0;
  // The library's own choice was measured in the same run and on the same day.
  bool paired = true;
};

// The configurations measured at one size, without failures.
struct MeasuredSize {
  uint64_t bytes = 0;
  std::vector<MeasuredConfig> cells;      // in the order of ConfigLess
  std::optional<size_t> library_default;  // the library's own choice
  const MeasuredConfig* Find(const Config& config) const;
};

struct MeasuredPlace {
  CallPlace place;
  std::vector<MeasuredSize> contexts;  // by size
  NoiseTail tail;

  // The ratio of the variance between configurations of a size to their noise: about 1 if they are
  // all the same.
  double Contrast() const;
  // Whether that is statistically significant: otherwise the configurations cannot be
  // distinguished, and there is no reason to choose. The threshold is higher for few cells and few
  // repeats.
  bool Differs() const;
};

// The measurements for a model: of one library, one kind, one data type.
struct Grid {
  Library library = Library::kNccl;
  bool simulated = false;
  std::string machine;  // the GPUs, for messages and fingerprints; "" if unknown
  std::vector<MeasuredPlace> scenes;
  size_t samples = 0;
  std::vector<std::string> messages;  // assumptions and omissions

  const MeasuredPlace* Find(const CallPlace& place) const;
  size_t CellCount() const;
  // A digest of these measurements: the same for the same cells, whatever file they came from.
  uint64_t Fingerprint() const;
};

struct GridOptions {
  dataset::Point::Kind kind = dataset::Point::Kind::kCollective;
  std::string workload;            // of iterations; "": the only one
  std::optional<Library> library;  // for data without a library, or to select one
};

// Computes the medians. Several libraries, or a mix of measured and simulated data, are an error
// that names them; of several data types or both in and out of place, the one with the most samples
// is taken for every place, and a message names the rest.
Result<Grid> MakeGrid(const dataset::StoreContents& contents, const GridOptions& options);

// By algorithm, protocol, segment, channels; the library's own choice first.
bool ConfigLess(const Config& a, const Config& b);

// Configurations that differ only in the number of channels.
struct ConfigFamily {
  int algorithm = kKeep;
  int protocol = kKeep;
  int64_t segment_bytes = 0;
  bool channels = false;  // a number of channels is specified
  friend auto operator<=>(const ConfigFamily&, const ConfigFamily&) = default;
};
ConfigFamily FamilyOf(const Config& config);
Config Member(const ConfigFamily& family, int channels);

}  // namespace diapason::model
