// Model files: whatever they hold, they are refused with a reason or can be asked anything.
#include <string>

#include "base/encoding.h"
#include "base/text.h"
#include "fuzz.h"
#include "model/choose.h"
#include "model/model_file.h"
#include "model/plan.h"

namespace {

using namespace diapason;         // NOLINT
using namespace diapason::model;  // NOLINT

void Ask(const Model& model) {
  const Predictor& predictor = model.predictor;
  std::vector<Predictor::Request> requests = {{{Collective::kAllGather, 3, 24}, 1 << 20, true, {}},
                                              {{Collective::kAllReduce, 1, 8}, 0, false, {}}};
  for (const SceneTable& scene : predictor.scenes()) {
    requests.push_back({scene.place, scene.sizes.front(), true, {}});
    requests.push_back({scene.place, scene.sizes.back() + 1, false, {}});
    if (requests.size() > 8) break;
  }
  for (const Predictor::Request& request : requests) {
    for (const bool coarse : {false, true}) {
      const ModelChoice choice = FindOptimalConfig(predictor, request, {{}, coarse});
      fuzz::Promise(!choice.why.empty(), "every choice says why");
      fuzz::Promise(choice.leave_default || choice.best.has_value(), "what is chosen is there");
    }
  }
  if (predictor.objective() == Objective::kTime) {
    const Result<PlannedPolicy> plan = MakePlan(nullptr, &predictor, {});
    fuzz::Promise(!plan.ok() || plan.value().rows.size() == plan.value().policy.rules.size(),
                  "a plan is a policy");
  }
}

void Try(std::string_view bytes) {
  const Result<Model> model = ModelFile::Read(bytes);
  if (!model.ok()) {
    fuzz::Promise(!model.status().message().empty(), "an error says why");
    return;
  }
  Ask(model.value());
  const Result<Model> again = ModelFile::Read(ModelFile::Write(model.value()));
  fuzz::Promise(again.ok() && ModelFile::Write(again.value()) == ModelFile::Write(model.value()),
                "what was written is read back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::Text(data, size);
  Try(bytes);
  // The checksum finds accidents; with one that fits, the rest has to hold as well.
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return 0;
  const std::string body(bytes.substr(end + 1));
  Try(Format("diapason-model {} fnv1a64:{:016x}\n", ModelFile::kVersion, Fnv1a64(body)) + body);
  return 0;
}
