#include <cmath>
#include <nlohmann/json.hpp>

#include "env_tune/metric.h"

namespace diapason::env_tune {
namespace {

using nlohmann::json;

double NumberAt(const json& object, const char* key) {
  if (!object.is_object()) return 0;
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

}  // namespace

Result<BenchFigures> ReadBenchJson(const std::string& text) {
  const json all = json::parse(text, nullptr, false);
  if (!all.is_object() || !all.contains("rows") || !all["rows"].is_array()) {
    return Invalid("the benchmark printed no result");
  }
  BenchFigures figures;
  double logs = 0;
  for (const json& row : all["rows"]) {
    if (!row.is_object() || !row.contains("out_of_place")) continue;
    const double seconds = NumberAt(row["out_of_place"], "mean_us") * 1e-6;
    if (!(seconds > 0) || !std::isfinite(seconds)) {
      return Invalid("a row of the benchmark has no time: a call failed or was refused");
    }
    logs += std::log(seconds);
    figures.sizes.emplace_back(NumberAt(row, "bytes"), seconds);
  }
  if (figures.sizes.empty()) return Invalid("the benchmark measured nothing");
  figures.seconds = std::exp(logs / static_cast<double>(figures.sizes.size()));
  return figures;
}

Result<BenchFigures> ReadIterationJson(const std::string& text) {
  const json all = json::parse(text, nullptr, false);
  if (!all.is_object() || !all.contains("step")) {
    return Invalid("the iteration proxy printed no result");
  }
  BenchFigures figures;
  figures.seconds = NumberAt(all["step"], "p50");
  if (!(figures.seconds > 0)) return Invalid("the iteration proxy measured nothing");
  if (all.contains("buckets") && all["buckets"].is_array()) {
    for (const json& bucket : all["buckets"]) {
      figures.sizes.emplace_back(NumberAt(bucket, "bytes"), 0.0);
    }
  }
  return figures;
}

}  // namespace diapason::env_tune
