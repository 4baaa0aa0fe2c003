// The trainer: XGBoost behind one C function. Opened by trainer.cc for training.
#include <xgboost/c_api.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/version.h"
#include "model/trainer.h"

namespace diapason::model {
namespace {

struct DMatrix {
  DMatrixHandle handle = nullptr;
  ~DMatrix() {
    if (handle != nullptr) XGDMatrixFree(handle);
  }
};

struct Booster {
  BoosterHandle handle = nullptr;
  ~Booster() {
    if (handle != nullptr) XGBoosterFree(handle);
  }
};

bool SetParameters(BoosterHandle booster, const TreeOptions& options) {
  const std::pair<const char*, std::string> parameters[] = {
      {"verbosity", "0"},
      // One thread is faster than two on tables of this size, and deterministic.
      {"nthread", "1"},
      {"objective", "reg:squarederror"},
      {"base_score", "0"},
      {"tree_method", options.exact ? "exact" : "hist"},
      {"max_bin", "64"},
      {"lambda", std::to_string(options.ridge)},
      {"max_depth", std::to_string(options.depth)},
      {"eta", std::to_string(options.rate)},
      {"subsample", std::to_string(options.share)},
      {"min_child_weight", std::to_string(options.least)},
      {"seed", std::to_string(options.seed)},
  };
  for (const auto& [name, value] : parameters) {
    if (XGBoosterSetParam(booster, name, value.c_str()) != 0) return false;
  }
  return true;
}

// Reads XGBoost's JSON: learner, gradient_booster, model, trees, arrays over the nodes.
bool HandOver(const nlohmann::json& document, const TrainRequest& request) {
  const auto& trees = document.at("learner").at("gradient_booster").at("model").at("trees");
  for (const auto& tree : trees) {
    const auto left = tree.at("left_children").get<std::vector<int32_t>>();
    const auto right = tree.at("right_children").get<std::vector<int32_t>>();
    const auto feature = tree.at("split_indices").get<std::vector<int32_t>>();
    const auto split = tree.at("split_conditions").get<std::vector<float>>();
    if (right.size() != left.size() || feature.size() != left.size() ||
        split.size() != left.size()) {
      return false;
    }
    if (!request.take(request.sink, left.size(), feature.data(), left.data(), right.data(),
                      split.data())) {
      return false;
    }
  }
  return true;
}

bool Train(const TrainRequest& request, std::string* error) {
  const auto failed = [error] {
    *error = XGBGetLastError();
    return false;
  };
  DMatrix matrix;
  if (XGDMatrixCreateFromMat(request.values, request.rows, request.columns, NAN, &matrix.handle) !=
          0 ||
      XGDMatrixSetFloatInfo(matrix.handle, "label", request.targets, request.rows) != 0) {
    return failed();
  }
  if (request.weights != nullptr &&
      XGDMatrixSetFloatInfo(matrix.handle, "weight", request.weights, request.rows) != 0) {
    return failed();
  }
  Booster booster;
  if (XGBoosterCreate(&matrix.handle, 1, &booster.handle) != 0 ||
      !SetParameters(booster.handle, *request.options)) {
    return failed();
  }
  for (int tree = 0; tree < request.options->trees; ++tree) {
    if (XGBoosterUpdateOneIter(booster.handle, tree, matrix.handle) != 0) return failed();
  }
  bst_ulong size = 0;
  const char* bytes = nullptr;
  if (XGBoosterSaveModelToBuffer(booster.handle, R"({"format": "ubj"})", &size, &bytes) != 0) {
    return failed();
  }
  if (HandOver(nlohmann::json::from_ubjson(bytes, bytes + size), request)) return true;
  *error = "its trees are not what we expect of this version";
  return false;
}

}  // namespace
}  // namespace diapason::model

extern "C" __attribute__((visibility("default"))) int diapason_train(
    const diapason::model::TrainRequest* request, char* error, size_t error_size) {
  std::string text;
  try {
    if (std::strcmp(request->version, diapason::kVersion) != 0) {
      text = std::string("the module is of version ") + diapason::kVersion + ", the program of " +
             request->version;
    } else if (diapason::model::Train(*request, &text)) {
      return 0;
    }
  } catch (const std::exception& caught) {
    text = caught.what();
  }
  std::snprintf(error, error_size, "%s", text.c_str());
  return 1;
}
