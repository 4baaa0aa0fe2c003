#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "model/grid.h"

namespace diapason::model {

// The gains that the samples prove, over a whole grid: as far as anything is proven, at most
// `alpha` of all grids in which nothing is faster than the library's own choice prove anything.
//
// The test of a configuration at a size compares one of the slowest of its samples with one of the
// fastest of the library's own choice (TestRank); its p-value comes from how far samples of this
// place were seen to be off (NoiseTail), so that no distribution is assumed. At one size the luck
// of the configuration counts once for each of them, that of the library's own choice once. The
// sizes are corrected together by Benjamini and Hochberg's rule, which rejects nothing in all but
// `alpha` of the cases where nothing is true. A single sample proves nothing.
//
// What is faster by little, or in much noise, is proven by all sizes of a place together
// (SizeEvidence): the place as a whole, and then its algorithms and protocols.
class Evidence {
 public:
  Evidence(const Grid& grid, double alpha);

  // This configuration at this size.
  bool Proven(const CallPlace& place, uint64_t bytes, const Config& config) const;
  // Its algorithm and protocol at any size of this place, or at all of them together.
  bool FamilyProven(const CallPlace& place, const ConfigFamily& family) const;
  // ... at any place of the collective: on other numbers of nodes and ranks.
  bool FamilyKnown(Collective collective, const ConfigFamily& family) const;
  bool AnyProven(const CallPlace& place) const { return places_.count(place) > 0; }
  size_t sizes() const { return sizes_; }  // proven

 private:
  struct PlaceEvidence {
    std::map<uint64_t, std::vector<Config>> proven;
    std::set<ConfigFamily> families;
  };
  std::map<CallPlace, PlaceEvidence> places_;
  size_t sizes_ = 0;
};

// The p-value of "the configuration is not faster than the library's own choice", where it is one
// of `candidates`; 1 if there are too few samples.
double GainP(const NoiseTail& tail, const MeasuredConfig& library_default,
             const MeasuredConfig& cell, size_t candidates);

}  // namespace diapason::model
