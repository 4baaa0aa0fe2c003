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

namespace diapason::model {

// Where a collective runs: what the library's question is about, besides the size.
struct CallPlace {
  Collective collective = Collective::kAllReduce;
  int nodes = 1;
  int ranks = 1;
  friend auto operator<=>(const CallPlace&, const CallPlace&) = default;
};
// "allreduce, 16 ranks on 2 nodes"
std::string PlaceText(const CallPlace& place);

// Sizes as everything here counts them: no bytes are as many as one.
double LogBytes(uint64_t bytes);
// Bus bandwidth as nccl-tests prints it, in GB/s.
double BusGigabytes(const CallPlace& place, uint64_t bytes, double log_seconds);

// What was measured of one configuration at one size.
struct MeasuredConfig {
  Config config;
  double log_seconds = 0;  // of the median
  // What the median may be off by (a standard deviation of the logarithm): by the spread of the
  // repeats, leaning on that of all cells of the place, and by the digits that were printed.
  double noise = 0;
  double coarse = 0;  // half of the last printed digit, as a share
  size_t samples = 0;
};

// The configurations that were measured at one size. What failed is not among them.
struct MeasuredSize {
  uint64_t bytes = 0;
  std::vector<MeasuredConfig> cells;      // in the order of ConfigLess
  std::optional<size_t> library_default;  // the library's own choice
  const MeasuredConfig* Find(const Config& config) const;
};

struct MeasuredPlace {
  CallPlace place;
  std::vector<MeasuredSize> contexts;  // by size

  // How much more the configurations of a size differ than their noise alone would make them, as a
  // ratio of variances: about 1 where they are all the same.
  double Contrast() const;
  // Whether that is more than chance: below it configurations cannot be told apart, and nobody has
  // a reason to choose. Few cells and few repeats have to show more.
  bool Differs() const;
};

// Measurements as a model sees them: of one library, one kind, one type of data.
struct Grid {
  Library library = Library::kNccl;
  bool simulated = false;
  std::string machine;  // the GPUs, for people and fingerprints; "" where nobody knows
  std::vector<MeasuredPlace> scenes;
  size_t samples = 0;
  std::vector<std::string> messages;  // what was assumed or left out

  const MeasuredPlace* Find(const CallPlace& place) const;
  size_t CellCount() const;
  // A number for these measurements: the same for the same cells, whatever file they came from.
  uint64_t Fingerprint() const;
};

struct GridOptions {
  dataset::Point::Kind kind = dataset::Point::Kind::kCollective;
  std::string workload;            // of iterations; "": the one there is
  std::optional<Library> library;  // of data that do not say, or to select
};

// Takes the medians. Several libraries, or measured and simulated data, are an error that names
// them; of several data types or both in and out of place, the one with the most samples is taken
// for every place, and a message says what was left out.
Result<Grid> MakeGrid(const dataset::StoreContents& contents, const GridOptions& options);

// By algorithm, protocol, segment, channels; the library's own choice first.
bool ConfigLess(const Config& a, const Config& b);

// What configurations share that differ in nothing but a number of channels.
struct ConfigFamily {
  int algorithm = kKeep;
  int protocol = kKeep;
  int64_t segment_bytes = 0;
  bool channels = false;  // a number of channels is asked for
  friend auto operator<=>(const ConfigFamily&, const ConfigFamily&) = default;
};
ConfigFamily FamilyOf(const Config& config);
Config Member(const ConfigFamily& family, int channels);

}  // namespace diapason::model
