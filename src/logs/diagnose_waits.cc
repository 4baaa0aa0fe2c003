#include "flight_recorder/diagnose.h"
#include "logs/diagnose.h"

namespace diapason::logs {

void DiagnoseFlight(const LogFacts& facts, std::vector<Finding>* findings) {
  for (Finding& finding : flight_recorder::Diagnose(facts.flight)) {
    findings->push_back(std::move(finding));
  }
}

}  // namespace diapason::logs
