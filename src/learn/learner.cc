#include "learn/learner.h"

#include "base/text.h"
#include "learn/arms.h"

namespace diapason::learn {

Result<Strategy> ParseStrategy(std::string_view name) {
  const std::string folded = FoldName(name);
  for (const Strategy strategy :
       {Strategy::kElimination, Strategy::kEpsilon, Strategy::kThompson}) {
    if (folded == StrategyName(strategy)) return strategy;
  }
  return Invalid("unknown strategy '" + std::string(name) + "'" +
                 Suggestion(name, {"elimination", "epsilon", "thompson"}));
}

std::string_view StrategyName(Strategy strategy) {
  switch (strategy) {
    case Strategy::kElimination:
      return "elimination";
    case Strategy::kEpsilon:
      return "epsilon";
    case Strategy::kThompson:
      return "thompson";
  }
  return "?";
}

std::unique_ptr<Learner> MakeLearner(const LearnOptions& options, const Config& incumbent,
                                     std::vector<ArmConfig> candidates) {
  switch (options.strategy) {
    case Strategy::kEpsilon:
      return MakeEpsilon(options, incumbent, std::move(candidates));
    case Strategy::kThompson:
      return MakeThompson(options, incumbent, std::move(candidates));
    case Strategy::kElimination:
      break;
  }
  return MakeElimination(options, incumbent, std::move(candidates));
}

}  // namespace diapason::learn
