#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace diapason {

// The environment variables that a component may read, as an object, so that tests and tools can
// supply their own.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual std::optional<std::string> Get(const std::string& name) const = 0;
  virtual std::vector<std::string> Names() const = 0;
};

// The environment of the process, read at every call.
const Environment& ProcessEnvironment();

class MapEnvironment : public Environment {
 public:
  explicit MapEnvironment(std::map<std::string, std::string> variables)
      : variables_(std::move(variables)) {}
  std::optional<std::string> Get(const std::string& name) const override;
  std::vector<std::string> Names() const override;

 private:
  std::map<std::string, std::string> variables_;
};

}  // namespace diapason
