#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/choose.h"
#include "model/grid.h"
#include "model/predictor.h"

namespace diapason::model {

// What measurements on other numbers of nodes say about a number that was not measured.
//
// Times do not carry over from one number of nodes to another; the gains over the library's own
// choice of the same place may. Whether they do is tried for every collective and number of ranks a
// node: each number of nodes is left out and decided from the others. Only if something changes on
// two of them or more, if no more than one in twenty of these changes is slower than the library's
// own choice by 5 %, if all together are faster, and if four in five of the gains there lie within
// their 90 % intervals, does anything transfer. One node uses other
// links than several, and says nothing about them: it takes no part.
class Transfer {
 public:
  // Copies what it needs.
  explicit Transfer(const std::vector<MeasuredPlace>& places);

  // The estimates at a place that was not measured: between two numbers of nodes that were, or
  // beyond the smallest or largest of them by two doublings at most; at sizes between measured
  // ones. The error of a gain grows with the distance, as seen between the measured numbers of
  // nodes. nullopt if nothing transfers.
  std::optional<Prediction> At(const CallPlace& place, uint64_t bytes) const;

  // Places that were not measured and for which At has answers: the doublings of the number of
  // nodes between the measured ones, and the next above them.
  std::vector<CallPlace> Unmeasured() const;
  // The sizes at which the places were measured that answer for this one, in order.
  std::vector<uint64_t> SizesFor(const CallPlace& place) const;

  // How leaving out each number of nodes went.
  struct Trial {
    Collective collective = Collective::kAllReduce;
    int ranks_per_node = 1;
    size_t counts = 0;    // numbers of nodes at which something changed
    size_t choices = 0;   // sizes that were decided
    size_t changed = 0;   // ... not to the library's own choice
    size_t harmful = 0;   // of these, slower than it by more than 5 %
    double sum_gain = 0;  // log, measured, over those that changed
    size_t cells = 0;     // gains that were left out and estimated
    size_t held = 0;      // ... within their 90 % interval
    bool Holds() const;
  };
  std::vector<Trial> trials() const;

 private:
  // Several nodes, one collective, one number of ranks a node.
  struct Group {
    Collective collective = Collective::kAllReduce;
    int ranks_per_node = 1;
    std::vector<MeasuredPlace> places;  // by nodes
    std::vector<double> size_units;     // GapUnit of each
    Trial trial;
  };
  static std::optional<Prediction> Ask(const Group& group, const CallPlace& place, uint64_t bytes,
                                       size_t left_out);
  static Trial Try(const Group& group);
  static void CountHeld(const Prediction& prediction, const MeasuredSize& context, Trial* trial);
  const Group* Find(const CallPlace& place) const;

  std::vector<Group> groups_;
};

}  // namespace diapason::model
