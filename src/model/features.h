#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/grid.h"

namespace diapason::model {

// The inputs of the trees for a place, a size and a configuration: numbers with names. The names
// are stored in model files and define the features completely.
//
// For one family and size every feature is monotone in the number of channels.
class Features {
 public:
  // Physical features: sizes on a log scale, bytes per rank and channel, the steps of an algorithm
  // and their cost, and an indicator column for every value of a category in the data.
  static Features OfTime(const Grid& grid);
  // The columns of the original predictor of bus bandwidth, with its names.
  static Features OfBandwidth(Library library);
  // By name; an unknown name is an error.
  static Result<Features> Named(Library library, const std::vector<std::string>& names);

  size_t count() const { return names_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  // REQUIRES: space for count() values.
  void Fill(const CallPlace& place, uint64_t bytes, const Config& config, float* row) const;

 private:
  struct Column {
    int kind = 0;
    int value = 0;  // the value that an indicator column stands for
  };
  Status Add(const std::string& name);

  Library library_ = Library::kNccl;
  std::vector<std::string> names_;
  std::vector<Column> columns_;
};

}  // namespace diapason::model
