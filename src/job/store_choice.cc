#include "job/store_choice.h"

#include "agree/cell_protocol.h"
#include "base/text.h"
#include "rendezvous/secret.h"

namespace diapason::job {
namespace {

using agree::TcpAddress;
using cell_server::ServedStore;

// A port for what is only shown.
constexpr char kShownPort[] = ":PORT";

Result<StoreChoice> Serve(std::string where, const TcpAddress& address, bool draws,
                          const StoreRequest& request, const Environment& environment) {
  StoreChoice choice;
  choice.where = std::move(where);
  cell_server::ServedStoreOptions options;
  options.host = address.host;
  options.port = address.port;
  ASSIGN_OR_RETURN(options.secret, rendezvous::ReadSecret(environment));
  if (options.secret.empty() && !draws) {
    return Invalid("the store at " + choice.where +
                   " needs a secret that the ranks of all hosts have: set DIAPASON_SECRET_FILE to "
                   "a file that every host has");
  }
  if (options.secret.empty()) {
    ASSIGN_OR_RETURN(choice.secret, rendezvous::DrawSecret());
    options.secret = choice.secret;
  }
  if (request.dry_run) {
    if (choice.where.empty()) choice.where = "tcp://" + cell_server::HostForOthers() + kShownPort;
    return choice;
  }
  ASSIGN_OR_RETURN(choice.served, ServedStore::Start(options));
  if (choice.where.empty()) choice.where = choice.served->url();
  return choice;
}

// Whether a process listens at the port, on whichever address.
bool InUse(const TcpAddress& address) {
  int port = address.port;
  const Result<rendezvous::Socket> listener = cell_server::ListenForStore(address.host, &port);
  return !listener.ok() && listener.status().code() == ErrorCode::kUnavailable;
}

}  // namespace

bool StartsAllHosts(Launcher launcher) {
  return launcher == Launcher::kOpenMpi || launcher == Launcher::kHydra ||
         launcher == Launcher::kSrun;
}

Result<StoreChoice> ChooseStore(const JobCommand& command, const StoreRequest& request,
                                const Environment& environment) {
  const JobCommand& starting = command.Starting();
  const std::string inherited = environment.Get("DIAPASON_STORE").value_or("");
  StoreChoice choice;
  choice.where = request.store;
  const std::string& named = request.store.empty() ? inherited : request.store;
  if (named.empty()) {
    if (!request.needed || starting.hosts < 2 || !StartsAllHosts(starting.launcher)) return choice;
    return Serve("", {"", 0}, true, request, environment);
  }
  if (!named.starts_with("tcp://")) return choice;
  choice.where = named;
  ASSIGN_OR_RETURN(const TcpAddress address, agree::ParseTcpAddress(named));
  if (cell_server::IsThisHost(address.host) && !InUse(address)) {
    const bool draws = starting.hosts < 2 || StartsAllHosts(starting.launcher);
    return Serve(named, address, draws, request, environment);
  }
  ASSIGN_OR_RETURN(const std::string secret, rendezvous::ReadSecret(environment));
  if (!secret.empty()) return choice;
  return Invalid("the store at " + named +
                 " is served by another process, whose secret is not known here: set "
                 "DIAPASON_SECRET_FILE");
}

}  // namespace diapason::job
