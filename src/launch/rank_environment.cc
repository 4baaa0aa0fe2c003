#include "launch/rank_environment.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/text.h"

namespace diapason::launch {
namespace {

constexpr int kMaxPort = 65535;

constexpr std::array kOwn = {
    "RANK",        "WORLD_SIZE",  "LOCAL_RANK",           "LOCAL_WORLD_SIZE",
    "MASTER_ADDR", "MASTER_PORT", "DIAPASON_SECRET_FILE", "DIAPASON_SECRET"};

constexpr std::array kForeign = {"GROUP_RANK",
                                 "GROUP_WORLD_SIZE",
                                 "NODE_RANK",
                                 "ROLE_NAME",
                                 "ROLE_RANK",
                                 "ROLE_WORLD_SIZE",
                                 "OMPI_UNIVERSE_SIZE",
                                 "OMPI_APP_CTX_NUM_PROCS",
                                 "OMPI_NUM_APP_CTX",
                                 "OMPI_FIRST_RANKS",
                                 "OMPI_MCA_initial_wdir",
                                 "MPI_LOCALRANKID",
                                 "MPI_LOCALNRANKS",
                                 "SLURM_PROCID",
                                 "SLURM_LOCALID",
                                 "SLURM_NODEID",
                                 "SLURM_NTASKS",
                                 "SLURM_NPROCS",
                                 "SLURM_TASKS_PER_NODE",
                                 "SLURM_TASK_PID",
                                 "SLURM_GTIDS",
                                 "ALPS_APP_PE",
                                 "PALS_RANKID",
                                 "PALS_NODEID",
                                 "PALS_LOCAL_RANKID",
                                 "PALS_LOCAL_SIZE",
                                 "FLUX_TASK_RANK",
                                 "FLUX_TASK_LOCAL_ID"};

constexpr std::array kForeignPrefixes = {
    "OMPI_COMM_WORLD_", "OMPI_MCA_ess", "OMPI_MCA_orte_", "PMI_",           "PMI2_",        "PMIX_",
    "MV2_COMM_WORLD_",  "SLURM_STEP",   "SLURM_SRUN_",    "JSM_NAMESPACE_", "TORCHELASTIC_"};

// Parameters that a person sets, among names that a launcher sets.
constexpr std::array kParameterPrefixes = {"PMIX_MCA_", "PMI_DEBUG"};

template <typename List>
bool Holds(const List& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

template <typename List>
bool HoldsPrefix(const List& list, const std::string& name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const char* prefix) { return name.rfind(prefix, 0) == 0; });
}

// Listens on every address of one family. Returns an errno. Only listening tells: a port of
// connections that are closing can be used again, and one that another process listens on can be
// bound all the same.
int TryListening(int family, int port) {
  const Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return errno;
  const int yes = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_storage address{};
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  auto* four = reinterpret_cast<sockaddr_in*>(&address);
  auto* six = reinterpret_cast<sockaddr_in6*>(&address);
  socklen_t length = 0;
  const auto wanted = htons(static_cast<uint16_t>(port));
  if (family == AF_INET6) {
    (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
    six->sin6_family = AF_INET6;
    six->sin6_addr = in6addr_any;
    six->sin6_port = wanted;
    length = sizeof(*six);
  } else {
    four->sin_family = AF_INET;
    four->sin_addr.s_addr = htonl(INADDR_ANY);
    four->sin_port = wanted;
    length = sizeof(*four);
  }
  if (::bind(socket.get(), generic, length) != 0) return errno;
  if (::listen(socket.get(), 1) != 0) return errno;
  return 0;
}

// 0 when a rank can listen on this port, whichever of the two families it prefers.
int TryPort(int port) {
  const int four = TryListening(AF_INET, port);
  if (four == EADDRINUSE || four == EACCES) return four;
  const int six = TryListening(AF_INET6, port);
  if (six == EADDRINUSE || six == EACCES) return six;
  return four == 0 || six == 0 ? 0 : four;
}

// Below the ports that Linux gives to outgoing connections: those of the ranks, which connect to
// each other while rank 0 is not listening yet, would otherwise be the first to take it.
Result<int> FreePort() {
  constexpr int kTries = 64;
  constexpr int kFirst = 20000;
  constexpr unsigned kPorts = 10000;
  // Not std::random_device: it would need a newer glibc than we promise to run on.
  unsigned random[kTries] = {};
  (void)::getentropy(random, sizeof(random));
  int error = EADDRINUSE;
  for (const unsigned number : random) {
    const int port = kFirst + static_cast<int>(number % kPorts);
    error = TryPort(port);
    if (error == 0) return port;
  }
  return Unavailable("no free port on this host: " + ErrnoText(error));
}

}  // namespace

bool SaysPlaceInJob(const std::string& name) {
  if (HoldsPrefix(kParameterPrefixes, name)) return false;
  return Holds(kOwn, name) || Holds(kForeign, name) || HoldsPrefix(kForeignPrefixes, name);
}

Status CheckAssignment(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Invalid(Format("'{}' is not NAME=VALUE", text));
  }
  const std::string name = text.substr(0, equals);
  if (name == "MASTER_PORT") return Invalid("MASTER_PORT is set with --port");
  if (Holds(kOwn, name)) return Invalid(name + " is set by launch itself");
  return {};
}

std::vector<std::string> RankEnvironment(const Environment& inherited, const LocalJobInfo& place,
                                         int rank, const std::vector<std::string>& assignments) {
  std::map<std::string, std::string> variables;
  for (const std::string& name : inherited.Names()) {
    if (SaysPlaceInJob(name)) continue;
    if (const auto value = inherited.Get(name)) variables[name] = *value;
  }
  variables["RANK"] = std::to_string(place.first_rank() + rank);
  variables["LOCAL_RANK"] = std::to_string(rank);
  variables["WORLD_SIZE"] = std::to_string(place.nodes * place.ranks);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(place.ranks);
  variables["MASTER_ADDR"] = place.master;
  variables["MASTER_PORT"] = std::to_string(place.port);
  if (!place.secret_file.empty()) variables["DIAPASON_SECRET_FILE"] = place.secret_file;
  variables.try_emplace("OMP_NUM_THREADS", std::to_string(place.threads));
  for (const std::string& text : assignments) {
    const size_t equals = text.find('=');
    variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  std::vector<std::string> result;
  result.reserve(variables.size());
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

namespace {

// A port from a variable; 0 if it is not set.
Result<int> PortOf(const Environment& inherited) {
  const auto variable = inherited.Get("MASTER_PORT");
  if (!variable || variable->empty()) return 0;
  uint64_t number = 0;
  if (!ParseUnsigned(*variable, &number) || number == 0 || number > kMaxPort) {
    return Invalid(Format("MASTER_PORT is '{}', not a port (1 to {}); unset it or give --port",
                          variable->c_str(), kMaxPort));
  }
  return static_cast<int>(number);
}

}  // namespace

Result<int> ChoosePort(int wanted, const Environment& inherited, std::string* warning) {
  if (wanted != 0) {
    const int error = TryPort(wanted);
    if (error == 0) return wanted;
    return Unavailable(
        Format("port {} cannot be used on this host: {}; without --port a free one "
               "is found",
               wanted, ErrnoText(error)));
  }
  ASSIGN_OR_RETURN(const int port, PortOf(inherited));
  if (port == 0) return FreePort();
  const int error = TryPort(port);
  if (error == 0) return port;
  const Result<int> other = FreePort();
  if (other.ok()) {
    *warning = Format("port {} (MASTER_PORT) cannot be used on this host: {}; using port {}", port,
                      ErrnoText(error), other.value());
  }
  return other;
}

Status CompleteShared(const Environment& inherited, int port, LocalJobInfo* info) {
  if (info->master.empty()) info->master = inherited.Get("MASTER_ADDR").value_or("");
  if (info->master.empty()) {
    return Invalid("a job on several hosts needs --master: the host of rank 0, alike on all hosts");
  }
  info->port = port;
  if (info->port == 0) {
    ASSIGN_OR_RETURN(info->port, PortOf(inherited));
  }
  if (info->port == 0) {
    return Invalid("a job on several hosts needs --port: one that is free on the host of rank 0");
  }
  if (const int error = info->node_rank == 0 ? TryPort(info->port) : 0; error != 0) {
    return Unavailable(
        Format("port {} cannot be used on this host: {}", info->port, ErrnoText(error)));
  }
  info->secret_file = inherited.Get("DIAPASON_SECRET_FILE").value_or("");
  if (info->secret_file.empty()) {
    return Invalid(
        "the hosts of a job share a secret, and this one has none: write one to a file that only "
        "you can read (umask 077; head -c 32 /dev/urandom | base64 > FILE), and set "
        "DIAPASON_SECRET_FILE to it on every host");
  }
  return {};
}

}  // namespace diapason::launch
