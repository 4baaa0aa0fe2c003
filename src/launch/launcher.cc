#include "launch/launcher.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

#include "base/environment.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/local_launch.h"
#include "rendezvous/secret.h"

namespace diapason::launch {
namespace {

constexpr size_t kLargestFile = size_t{4} << 20;

// Ranks that mpirun or srun start know each other by a secret. On other hosts they have no file of
// ours: so it goes where only their user sees it too, into their environment.
void HandOutSecret(Launcher::Kind kind, LaunchCommand* command) {
  std::string name = "DIAPASON_SECRET_FILE";  // the user's own, where there is one
  if (ProcessEnvironment().Get(name).value_or("").empty()) {
    name = "DIAPASON_SECRET";
    const Result<std::string> secret = rendezvous::DrawSecret();
    if (!secret.ok()) return;  // no random numbers: as safe as ranks that the user starts
    command->environment.emplace_back(name, secret.value());
  }
  // By its name alone, for arguments can be read by every user.
  if (kind == Launcher::Kind::kMpirun) command->words.insert(command->words.end(), {"-x", name});
}

// Ranks on other hosts use the library file that was chosen here. mpirun hands on no variables of
// its own accord; srun does.
void HandOutLibraryFile(LaunchCommand* command) {
  for (const char* name : {"DIAPASON_NCCL_LIBRARY", "DIAPASON_RCCL_LIBRARY"}) {
    if (ProcessEnvironment().Get(name).value_or("").empty()) continue;
    command->words.insert(command->words.end(), {"-x", name});
  }
}

}  // namespace

Result<Launcher::Kind> ParseLauncher(const std::string& name) {
  if (name == "local") return Launcher::Kind::kLocal;
  if (name == "mpirun") return Launcher::Kind::kMpirun;
  if (name == "srun") return Launcher::Kind::kSrun;
  return Invalid("unknown launcher '" + name + "'" + Suggestion(name, {"local", "mpirun", "srun"}));
}

LaunchCommand CommandFor(const Launcher& launcher, const std::vector<std::string>& program,
                         const std::vector<std::pair<std::string, std::string>>& environment) {
  LaunchCommand command;
  std::vector<std::string>& words = command.words;
  const std::string ranks = std::to_string(launcher.ranks);
  switch (launcher.kind) {
    case Launcher::Kind::kLocal:
      words = LocalLaunchWords(launcher.self, launcher.ranks, environment);
      break;
    case Launcher::Kind::kMpirun: {
      words = {"mpirun", "-n", ranks};
      if (launcher.host_file.empty()) {
        words.emplace_back("--oversubscribe");
      } else {
        words.insert(words.end(), {"--hostfile", launcher.host_file});
      }
      if (launcher.nodes > 1) {
        words.insert(words.end(),
                     {"--map-by", Format("ppr:{}:node", launcher.ranks / launcher.nodes)});
      }
      if (launcher.host_file.empty() && launcher.nodes == 1) {
        // Open MPI looks for ssh even where all ranks are on this host.
        command.environment.emplace_back("OMPI_MCA_plm_rsh_agent", "/bin/false");
      }
      if (launcher.as_root) {
        command.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT", "1");
        command.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
      }
      if (launcher.nodes > 1 && !launcher.first_host.empty()) {
        words.insert(words.end(), {"-x", "MASTER_ADDR"});
        command.environment.emplace_back("MASTER_ADDR", launcher.first_host);
      }
      // By name only: mpirun reads "NAME=VALUE" too, but not values with everything in them.
      for (const auto& [name, value] : environment) {
        words.insert(words.end(), {"-x", name});
        command.environment.emplace_back(name, value);
      }
      HandOutSecret(launcher.kind, &command);
      HandOutLibraryFile(&command);
      words.insert(words.end(), launcher.extra.begin(), launcher.extra.end());
      break;
    }
    case Launcher::Kind::kSrun:
      // srun hands on its own environment; standard input goes to the first task alone.
      words = {"srun",      "-n",          ranks, "-N", std::to_string(launcher.nodes),
               "--input=0", "--export=ALL"};
      command.environment = environment;
      HandOutSecret(launcher.kind, &command);
      words.insert(words.end(), launcher.extra.begin(), launcher.extra.end());
      break;
  }
  words.insert(words.end(), program.begin(), program.end());
  return command;
}

Result<std::vector<std::pair<std::string, std::string>>> ParseAssignments(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> assignments;
  for (const std::string_view word : Split(text, ' ')) {
    if (word.empty()) continue;
    const size_t mark = word.find('=');
    if (mark == std::string_view::npos || mark == 0 || mark + 1 == word.size()) {
      return Invalid("'" + std::string(word) + "' is no NAME=VALUE");
    }
    assignments.emplace_back(word.substr(0, mark), word.substr(mark + 1));
  }
  return assignments;
}

Result<std::vector<std::string>> ReadHostFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestFile));
  std::vector<std::string> hosts;
  for (std::string_view line : Split(text, '\n')) {
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::string host(line.substr(0, line.find_first_of(" \t:")));
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
  }
  if (hosts.empty()) return Invalid("'" + path + "' names no host");
  return hosts;
}

std::string HostOfFirstRank(const std::vector<std::string>& hosts, const std::string& own_name,
                            const std::vector<std::string>& own_addresses) {
  const auto short_name = [](const std::string& name) { return name.substr(0, name.find('.')); };
  for (const std::string& host : hosts) {
    // Ranks on other hosts cannot use a loopback address.
    if (host == "localhost" || host.starts_with("127.")) return own_name;
    const bool address =
        std::find(own_addresses.begin(), own_addresses.end(), host) != own_addresses.end();
    if (address || host == own_name) return host;
    const bool both_full =
        host.find('.') != std::string::npos && own_name.find('.') != std::string::npos;
    if (!both_full && short_name(host) == short_name(own_name)) return host;
  }
  return hosts.empty() ? "" : hosts.front();
}

std::string CauseOfFailure(std::string_view said) {
  constexpr std::string_view kStarts[] = {"ssh: ",          "ssh_exchange_identification: ",
                                          "Connection to ", "Connection closed by ",
                                          "srun: error: ",  "slurmstepd: error: "};
  constexpr std::string_view kAnywhere[] = {"Remote daemon:", "Host key verification failed",
                                            "Permission denied (", "diapason: error: "};
  constexpr size_t kMost = 8;
  constexpr size_t kLongest = 400;
  std::vector<std::string_view> found;
  while (!said.empty() && found.size() < kMost) {
    const size_t end = std::min(said.find('\n'), said.size());
    std::string_view line = said.substr(0, end);
    said.remove_prefix(std::min(end + 1, said.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    const bool cause =
        std::any_of(std::begin(kStarts), std::end(kStarts),
                    [&](std::string_view start) { return line.starts_with(start); }) ||
        std::any_of(std::begin(kAnywhere), std::end(kAnywhere), [&](std::string_view part) {
          return line.find(part) != std::string_view::npos;
        });
    line = line.substr(0, kLongest);
    if (cause && std::find(found.begin(), found.end(), line) == found.end()) found.push_back(line);
  }
  std::string text;
  for (const std::string_view line : found) {
    if (!text.empty()) text += '\n';
    text += line;
  }
  return text;
}

std::vector<std::string> OwnAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const int family = each->ifa_addr->sa_family;
    const void* address = nullptr;
    if (family == AF_INET)
      address = &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
    if (family == AF_INET6)
      address = &reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
    if (address == nullptr || ::inet_ntop(family, address, text.data(), text.size()) == nullptr)
      continue;
    addresses.emplace_back(text.data());
  }
  ::freeifaddrs(first);
  return addresses;
}

}  // namespace diapason::launch
