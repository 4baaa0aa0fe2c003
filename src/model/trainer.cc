#include "model/trainer.h"

#include <dlfcn.h>

#include "base/own_files.h"
#include "base/version.h"

namespace diapason::model {
namespace {

constexpr char kModule[] = "libdiapason-train-xgboost.so";

struct Module {
  TrainEntry train = nullptr;
};

Result<Module> OpenModule() {
  std::string why_not;
  const std::string path = FindBesideUs(kModule, &why_not);
  if (path.empty()) {
    if (!why_not.empty()) return Unavailable("training needs a module: " + why_not);
    return Unavailable(std::string("training needs ") + kModule +
                       ", which this build does not have: XGBoost (libxgboost-dev) was not there "
                       "when it was built");
  }
  // It stays open: XGBoost's threads do not survive unloading.
  void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    return Unavailable("training needs XGBoost (libxgboost0): " + std::string(dlerror()));
  }
  void* const entry = dlsym(opened, kTrainEntry);
  if (entry == nullptr) return Unavailable(path + " is no trainer of ours");
  return Module{reinterpret_cast<TrainEntry>(entry)};
}

struct ModelSink {
  Forest forest;
  size_t columns = 0;
  Status status;
};

bool Take(void* sink, size_t nodes, const int32_t* feature, const int32_t* left,
          const int32_t* right, const float* split) {
  auto* const into = static_cast<ModelSink*>(sink);
  into->status = into->forest.AddTree({feature, nodes}, {left, nodes}, {right, nodes},
                                      {split, nodes}, into->columns);
  return into->status.ok();
}

}  // namespace

Result<Forest> TrainTrees(const TrainingSet& training_set, const TreeOptions& options) {
  static const Result<Module> module = OpenModule();
  if (!module.ok()) return module.status();
  if (training_set.rows() == 0 || training_set.columns == 0)
    return Invalid("there is nothing to learn from");
  ModelSink sink;
  sink.columns = training_set.columns;
  TrainRequest request;
  request.version = kVersion;
  request.rows = training_set.rows();
  request.columns = training_set.columns;
  request.values = training_set.values.data();
  request.targets = training_set.targets.data();
  request.weights = training_set.weights.empty() ? nullptr : training_set.weights.data();
  request.options = &options;
  request.sink = &sink;
  request.take = &Take;
  char error[512] = "";
  if (module.value().train(&request, error, sizeof(error)) != 0) {
    return sink.status.ok() ? Internal(std::string("XGBoost: ") + error) : sink.status;
  }
  return std::move(sink.forest);
}

}  // namespace diapason::model
