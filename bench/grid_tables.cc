#include "grid_tables.h"

#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "dataset/import.h"

namespace diapason::model {

void Die(const std::string& why) {
  std::fprintf(stderr, "bench: %s\n", why.c_str());
  std::exit(1);
}

std::vector<NamedGrid> ReadTable(const std::string& argument) {
  const size_t colon = argument.rfind(':');
  if (colon == std::string::npos) Die("'" + argument + "' is not FILE:LIBRARY");
  const std::string path = argument.substr(0, colon);
  const Result<std::string> text = ReadFile(path, size_t{256} << 20);
  if (!text.ok()) Die(text.status().message());
  dataset::ImportOptions options;
  options.library = argument.substr(colon + 1);
  Result<dataset::Import> import = dataset::ImportText(text.value(), path, options);
  if (!import.ok()) Die(import.status().message());
  Result<Grid> grid = MakeGrid(dataset::ContentsOf(std::move(import).value()), {});
  if (!grid.ok()) Die(grid.status().message());
  const std::string name =
      path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  std::vector<NamedGrid> parts;
  for (const bool held_out : {false, true}) {
    NamedGrid part{name, held_out, grid.value()};
    std::erase_if(part.grid.scenes, [&](const MeasuredPlace& scene) {
      return (scene.place.collective != Collective::kAllReduce) != held_out;
    });
    if (!part.grid.scenes.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

const char* SplitName(bool held_out) { return held_out ? "held out" : "development"; }

std::string PercentOf(size_t count, size_t of) {
  return of == 0 ? "-"
                 : Format("{:.1f} %", 100.0 * static_cast<double>(count) / static_cast<double>(of));
}

}  // namespace diapason::model
