#pragma once

#include <string>

#include "cluster.h"

// What really happened on one rank, for tests to compare a profile with.
namespace played {

class Truth {
 public:
  // The collective that is made next is the first of an iteration. `usual`: it is like most others.
  void Begin(const Cluster& cluster, bool usual);
  // What follows is part of no iteration.
  void End(const Cluster& cluster);
  // One JSON object: over the usual iterations that another one follows, the medians of their
  // length, of the time in which a collective ran, and of what of it was exposed (no compute ran
  // meanwhile) and hidden; the calls of an iteration; and the length of the unusual ones.
  std::string Json(const Cluster& cluster) const;

 private:
  struct Mark {
    size_t collective = 0;
    bool inside = true;
    bool usual = true;
  };
  std::vector<Mark> marks_;
};

}  // namespace played
