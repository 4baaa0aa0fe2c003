#include "model/splits.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/random.h"
#include "base/text.h"

namespace diapason::model {
namespace {

void Hide(const std::vector<Config>& hidden, MeasuredSize* context) {
  std::erase_if(context->cells, [&](const MeasuredConfig& cell) {
    return std::binary_search(hidden.begin(), hidden.end(), cell.config, ConfigLess);
  });
  context->library_default.reset();
  for (size_t i = 0; i < context->cells.size(); ++i) {
    if (context->cells[i].config.IsDefault()) context->library_default = i;
  }
}

// Draws the hidden configurations.
std::vector<Config> DrawHidden(const std::vector<Config>& all, double known,
                               const CounterRandom& random) {
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t i = 0; i < all.size(); ++i) order.emplace_back(random.Bits(i), i);
  std::sort(order.begin(), order.end());
  const auto kept =
      static_cast<size_t>(std::max(1.0, std::round(known * static_cast<double>(all.size()))));
  std::vector<Config> hidden;
  for (size_t i = std::min(kept, order.size()); i < order.size(); ++i) {
    hidden.push_back(all[order[i].second]);
  }
  std::sort(hidden.begin(), hidden.end(), ConfigLess);
  return hidden;
}

}  // namespace

std::vector<Config> ConfigsOf(const MeasuredPlace& scene) {
  std::vector<Config> all;
  for (const MeasuredSize& context : scene.contexts) {
    for (const MeasuredConfig& cell : context.cells) {
      if (!cell.config.IsDefault()) all.push_back(cell.config);
    }
  }
  std::sort(all.begin(), all.end(), ConfigLess);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<Part> WithoutSizes(const Grid& grid) {
  std::vector<Part> parts;
  for (size_t offset = 0; offset < 3; ++offset) {
    Part part;
    part.name = Format("sizes, offset {}", offset);
    part.known = grid;
    for (size_t s = 0; s < grid.scenes.size(); ++s) {
      std::vector<MeasuredSize>& contexts = part.known.scenes[s].contexts;
      const size_t count = contexts.size();
      for (size_t c = count; c-- > 0;) {
        if (c == 0 || c + 1 >= count || (c - 1) % 3 != offset) continue;
        part.questions.push_back({s, c});
        contexts.erase(contexts.begin() + static_cast<ptrdiff_t>(c));
      }
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<Part> WithoutNodes(const Grid& grid) {
  std::set<int> counts;
  for (const MeasuredPlace& scene : grid.scenes) counts.insert(scene.place.nodes);
  std::vector<Part> parts;
  for (const int nodes : counts) {
    Part part;
    part.name = "without " + Count(static_cast<size_t>(nodes), "node");
    part.known = grid;
    std::erase_if(part.known.scenes,
                  [&](const MeasuredPlace& scene) { return scene.place.nodes == nodes; });
    for (size_t s = 0; s < grid.scenes.size(); ++s) {
      if (grid.scenes[s].place.nodes != nodes) continue;
      for (size_t c = 0; c < grid.scenes[s].contexts.size(); ++c) part.questions.push_back({s, c});
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<Part> WithoutConfigs(const Grid& grid, int draws, double known, bool each) {
  std::vector<Part> parts;
  for (int draw = 0; draw < draws; ++draw) {
    Part part;
    part.name = Format("draw {}", draw + 1);
    part.known = grid;
    for (size_t s = 0; s < grid.scenes.size(); ++s) {
      const auto lot = static_cast<uint64_t>(draw) + 1;
      MeasuredPlace& scene = part.known.scenes[s];
      if (!each) {
        const std::vector<Config> hidden =
            DrawHidden(ConfigsOf(scene), known, CounterRandom(lot, s));
        for (MeasuredSize& context : scene.contexts) Hide(hidden, &context);
      } else {
        for (MeasuredSize& context : scene.contexts) {
          const std::vector<Config> hidden =
              DrawHidden(ConfigsOf({scene.place, {context}}), known,
                         CounterRandom(lot, MixBits(s) ^ context.bytes));
          Hide(hidden, &context);
        }
      }
      std::erase_if(scene.contexts,
                    [](const MeasuredSize& context) { return context.cells.empty(); });
      for (size_t c = 0; c < grid.scenes[s].contexts.size(); ++c) part.questions.push_back({s, c});
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace diapason::model
