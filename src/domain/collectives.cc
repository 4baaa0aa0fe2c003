#include "domain/collectives.h"

#include <algorithm>
#include <vector>

namespace diapason {

const OperationFacts* FindMeasured(std::string_view name) {
  for (const OperationFacts& facts : kOperations) {
    if (!name.empty() && facts.measured == name) return &facts;
  }
  return nullptr;
}

std::span<const TestedCollective> TestedCollectives() {
  static const std::vector<TestedCollective> all = [] {
    std::vector<TestedCollective> tested;
    for (const OperationFacts& facts : kOperations) {
      if (*facts.tests != '\0') tested.push_back({facts.measured, facts.tests, facts.passes});
    }
    for (const char* name : {"alltoallv", "gather", "scatter", "hypercube"}) {
      if (FindMeasured(name) == nullptr) tested.push_back({name, name, 1});
    }
    std::stable_sort(tested.begin(), tested.end(),
                     [](const auto& a, const auto& b) { return a.name.size() > b.name.size(); });
    return tested;
  }();
  return all;
}

}  // namespace diapason
