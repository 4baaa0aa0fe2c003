#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/predictor.h"

namespace diapason::model {

// The metadata of a model file.
struct ModelInfo {
  bool simulated = false;
  std::string machine;       // "8x gfx950"; "" if unknown
  uint64_t fingerprint = 0;  // of the measurements it was trained on
  size_t samples = 0;
  size_t cells = 0;
  uint32_t seed = 1;
  // Names and values, such as "r2" and "0.994", in output order.
  std::vector<std::pair<std::string, std::string>> figures;
};

struct Model {
  ModelInfo info;
  Predictor predictor;
};

// A model as a file: readable lines, then the tables and trees. The first line has the format
// version and a checksum of the rest. The same model gives the same bytes.
class ModelFile {
 public:
  static constexpr int kVersion = 3;
  static constexpr size_t kLargest = size_t{256} << 20;

  static std::string Write(const Model& model);
  // Fails, with the reason, for a file that is not a model, of another version, changed, or
  // inconsistent.
  static Result<Model> Read(std::string_view bytes);

  static Status Save(const Model& model, const std::string& path);
  static Result<Model> Load(const std::string& path);
};

}  // namespace diapason::model
