#include "host/paths.h"

#include <deque>

#include "base/text.h"

namespace diapason::host {
namespace {

constexpr int kMostLinks = 40;
constexpr size_t kMostPaths = 256;

// Supports a single '*' per name.
bool Matches(const std::string& name, const std::string& pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return name == pattern;
  const std::string_view head = std::string_view(pattern).substr(0, star);
  const std::string_view tail = std::string_view(pattern).substr(star + 1);
  return name.size() >= head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail);
}

}  // namespace

std::string RealPath(const RootFs& tree, const std::string& path) {
  std::deque<std::string> ahead;
  for (const std::string_view part : Split(path, '/')) ahead.emplace_back(part);
  std::vector<std::string> done;
  int links = 0;
  const auto text = [&done](const std::string& name) {
    std::string whole;
    for (const std::string& part : done) whole += "/" + part;
    return name.empty() ? whole : whole + "/" + name;
  };
  while (!ahead.empty()) {
    const std::string part = ahead.front();
    ahead.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    const std::optional<std::string> target =
        links < kMostLinks ? tree.Link(text(part)) : std::nullopt;
    if (!target) {
      done.push_back(part);
      continue;
    }
    ++links;
    if (target->starts_with('/')) done.clear();
    const std::vector<std::string_view> parts = Split(*target, '/');
    ahead.insert(ahead.begin(), parts.begin(), parts.end());
  }
  const std::string whole = text("");
  return whole.empty() ? "/" : whole;
}

std::vector<std::string> Expand(const RootFs& tree, const std::string& pattern) {
  std::vector<std::string> paths = {""};
  for (const std::string_view part : Split(pattern, '/')) {
    if (part.empty()) continue;
    const std::string name(part);
    std::vector<std::string> next;
    for (const std::string& path : paths) {
      if (name.find('*') == std::string::npos) {
        next.push_back(path + "/" + name);
        continue;
      }
      const std::string real = RealPath(tree, path.empty() ? "/" : path);
      for (const std::string& entry : tree.List(real)) {
        if (Matches(entry, name) && next.size() < kMostPaths) next.push_back(path + "/" + entry);
      }
    }
    paths = std::move(next);
  }
  return paths;
}

}  // namespace diapason::host
