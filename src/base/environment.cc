#include "base/environment.h"

#include <cstdlib>
#include <cstring>

extern char** environ;  // NOLINT: POSIX declares it in no header

namespace diapason {
namespace {

class RealEnvironment : public Environment {
 public:
  std::optional<std::string> Get(const std::string& name) const override {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  }
  std::vector<std::string> Names() const override {
    std::vector<std::string> names;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const char* equals = std::strchr(*entry, '=');
      if (equals != nullptr) names.emplace_back(*entry, static_cast<size_t>(equals - *entry));
    }
    return names;
  }
};

}  // namespace

const Environment& ProcessEnvironment() {
  static const RealEnvironment environment;
  return environment;
}

std::optional<std::string> MapEnvironment::Get(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> MapEnvironment::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : variables_) names.push_back(name);
  return names;
}

}  // namespace diapason
