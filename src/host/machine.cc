#include "host/machine.h"

#include "base/text.h"
#include "domain/fingerprint.h"
#include "host/machine_parts.h"

namespace diapason::host {
namespace {

// The value of NAME= in /etc/os-release, quotes removed.
std::string OsRelease(const std::string& text, std::string_view name) {
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != '=') continue;
    std::string_view value = Trim(line.substr(name.size() + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'')) {
      value = value.substr(1, value.size() - 2);
    }
    return std::string(value);
  }
  return "";
}

}  // namespace

std::string ValueOf(const std::string& text, std::string_view key) {
  for (const std::string_view line : Split(text, '\n')) {
    std::string_view rest = Trim(line);
    if (!rest.starts_with(key)) continue;
    rest.remove_prefix(key.size());
    if (rest.empty() || (rest[0] != ':' && rest[0] != ' ' && rest[0] != '\t')) continue;
    rest = Trim(rest);
    if (rest.starts_with(':')) rest.remove_prefix(1);
    return std::string(Trim(rest));
  }
  return "";
}

Machine LookAtMachine(const RootFs& tree, const Environment& environment) {
  Machine machine;
  machine.host_name = tree.Read("/proc/sys/kernel/hostname").value_or("");
  if (machine.host_name.empty()) machine.host_name = tree.Read("/etc/hostname").value_or("");
  machine.kernel = tree.Read("/proc/sys/kernel/osrelease").value_or("");
  const std::string release = tree.Read("/etc/os-release").value_or("");
  machine.distribution = OsRelease(release, "PRETTY_NAME");
  machine.driver = DriverVersion(tree.root());
  LookAtCpus(tree, &machine);
  LookAtSurroundings(tree, environment, &machine);
  LookAtGpus(tree, &machine);
  AskNvml(tree, &machine);
  if (machine.driver_supports.empty() && tree.Exists("/proc/driver/nvidia/version")) {
    machine.driver_supports = CudaOfDriver(machine.driver);
  }
  LookAtNetworks(tree, &machine);
  return machine;
}

}  // namespace diapason::host
