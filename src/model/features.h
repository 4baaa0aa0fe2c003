#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/grid.h"

namespace diapason::model {

// What trees are shown of a place, a size and a configuration: numbers with names. The names are
// kept in model files and say all there is to know, so that a file is read as it was written.
//
// For one family and size every feature rises, falls or stays with the number of channels.
class Features {
 public:
  // What physics suggests: sizes on a log scale, bytes per rank and channel, the steps an algorithm
  // takes, what they cost, and a column for every word that the data tell apart.
  static Features OfTime(const Grid& grid);
  // The columns of the original predictor of bus bandwidth, names and all.
  static Features OfBandwidth(Library library);
  // By their names; an unknown one is an error.
  static Result<Features> Named(Library library, const std::vector<std::string>& names);

  size_t count() const { return names_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  // REQUIRES: room for count() values.
  void Fill(const CallPlace& place, uint64_t bytes, const Config& config, float* row) const;

 private:
  struct Column {
    int kind = 0;
    int value = 0;  // what a column of a word stands for
  };
  Status Add(const std::string& name);

  Library library_ = Library::kNccl;
  std::vector<std::string> names_;
  std::vector<Column> columns_;
};

}  // namespace diapason::model
