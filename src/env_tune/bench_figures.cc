#include "env_tune/bench_figures.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace diapason::env_tune {
namespace {

constexpr std::string_view kMark = "@diapason figures";

bool ReadDouble(std::string_view text, double* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(*value) &&
         *value >= 0;
}

Result<BenchFigures> Decode(std::string_view line) {
  BenchFigures figures;
  bool first = true;
  for (const std::string_view word : Split(line, ' ')) {
    if (word.empty()) continue;
    if (first) {
      if (!ReadDouble(word, &figures.seconds)) return Invalid("damaged figures");
      first = false;
      continue;
    }
    const size_t colon = word.find(':');
    std::pair<double, double> size;
    if (colon == std::string_view::npos || !ReadDouble(word.substr(0, colon), &size.first) ||
        !ReadDouble(word.substr(colon + 1), &size.second)) {
      return Invalid("damaged figures");
    }
    figures.sizes.push_back(size);
  }
  if (first) return Invalid("damaged figures");
  if (!(figures.seconds > 0)) {
    return Invalid("a call of the benchmark has no time: it failed or was refused");
  }
  return figures;
}

}  // namespace

BenchFigures FiguresOf(std::vector<std::pair<double, double>> sizes) {
  BenchFigures figures;
  figures.sizes = std::move(sizes);
  double logs = 0;
  for (const auto& [bytes, seconds] : figures.sizes) {
    if (!(seconds > 0) || !std::isfinite(seconds)) return figures;
    logs += std::log(seconds);
  }
  if (!figures.sizes.empty()) {
    figures.seconds = std::exp(logs / static_cast<double>(figures.sizes.size()));
  }
  return figures;
}

std::string EncodeFigures(const BenchFigures& figures) {
  std::string line = std::string(kMark) + Format(" {:.17g}", figures.seconds);
  for (const auto& [bytes, seconds] : figures.sizes)
    line += Format(" {:.17g}:{:.17g}", bytes, seconds);
  return line;
}

Result<BenchFigures> FindFigures(std::string_view output) {
  for (const std::string_view line : Split(output, '\n')) {
    if (line.starts_with(kMark)) return Decode(line.substr(kMark.size()));
  }
  return Invalid("the benchmark printed no figures");
}

}  // namespace diapason::env_tune
