#pragma once

#include <string>
#include <vector>

namespace diapason::measure {

// The link between two members (ranks, or hosts) as measured.
struct PairFigure {
  int first = 0;
  int second = 0;
  bool same_host = false;
  double bandwidth = 0;  // bytes per second each way, the median of the rounds
  double spread = 0;     // between the rounds, as a share of it
};

// Something that is slower than the others of its kind.
struct OddOne {
  int member = -1;            // most links of this member are slow: it, not they; -1: one link only
  std::vector<size_t> pairs;  // indices of the slow links
  double share = 0;           // of what is usual for such a link
  double usual = 0;           // bytes per second
  bool same_host = false;
};

// Finds what is far below the median of its kind (links inside a host, links between hosts), beyond
// what the links differ by anyhow and beyond `least` (0.1: a tenth slower). Members with most of
// their links slow are named themselves. Fewer than three links of a kind say nothing: one slow
// member is found among four members, not among three.
std::vector<OddOne> FindOddOnes(const std::vector<PairFigure>& pairs, double least = 0.1);

}  // namespace diapason::measure
