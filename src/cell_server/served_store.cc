#include "cell_server/served_store.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "agree/cell_protocol.h"
#include "base/file.h"
#include "base/host_name.h"
#include "base/text.h"
#include "cell_server/cell_server.h"

namespace diapason::cell_server {
namespace {

using rendezvous::Socket;

// A server that dies this often dies of its file or of its clients.
constexpr int kMostRestarts = 100;
constexpr int kRestartPauseMs = 100;
constexpr int kToEndMs = 5000;
constexpr int kExitFailed = 3;

bool IsLoopback(const std::string& numeric) {
  return numeric.starts_with("127.") || numeric == "::1";
}

void LogLine(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

[[noreturn]] void Serve(Socket listener, const CellServerOptions& options) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  RaiseDescriptorLimit();
  Result<std::unique_ptr<CellServer>> server = CellServer::Open(std::move(listener), options);
  const Status done = server.ok() ? server.value()->Run() : server.status();
  if (!done.ok()) LogLine("diapason: store: " + done.message());
  ::_exit(done.ok() ? 0 : kExitFailed);
}

// Waits until the pipe's other end is closed. False: the time is over.
bool WaitForEnd(int fd, int limit_ms) {
  pollfd entry{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&entry, 1, limit_ms);
  } while (ready < 0 && errno == EINTR);
  return ready != 0;
}

// The process that starts the server, again if it dies, until the lifeline ends.
[[noreturn]] void KeepServing(const Socket& listener, const CellServerOptions& options,
                              int lifeline) {
  (void)::setsid();  // a Ctrl-C is for the job alone
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) (void)::signal(signal, SIG_IGN);
  for (int starts = 0; starts <= kMostRestarts; ++starts) {
    Result<Pipe> alive = MakePipe();
    const pid_t server = alive.ok() ? ::fork() : -1;
    if (server < 0) break;
    if (server == 0) {
      alive.value().read.Close();
      Serve(Socket(::dup(listener.get())), options);
    }
    alive.value().write.Close();
    pollfd entries[] = {{lifeline, POLLIN, 0}, {alive.value().read.get(), POLLIN, 0}};
    while (::poll(entries, 2, -1) < 0 && errno == EINTR) {
    }
    if (entries[0].revents != 0) (void)::kill(server, SIGKILL);
    int status = 0;
    (void)::waitpid(server, &status, 0);
    if (entries[0].revents != 0 || WIFEXITED(status)) break;
    LogLine(Format("diapason: store: its process was killed by signal {}; it is started again",
                   WTERMSIG(status)));
    if (WaitForEnd(lifeline, kRestartPauseMs)) break;
  }
  ::_exit(0);
}

// Without standard input and output, which belong to the job.
void LeaveStreams() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  (void)::dup2(null, STDIN_FILENO);
  (void)::dup2(null, STDOUT_FILENO);
  ::close(null);
}

}  // namespace

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

bool IsThisHost(const std::string& host) {
  const Result<std::vector<std::string>> addresses = rendezvous::NumericAddresses(host);
  if (!addresses.ok()) return false;
  return std::any_of(
      addresses.value().begin(), addresses.value().end(),
      [](const std::string& one) { return rendezvous::ListenOnExactly(one, 0).ok(); });
}

std::string HostForOthers() {
  const std::string name = HostName();
  if (name != "localhost" && rendezvous::NumericAddresses(name).ok()) return name;
  ifaddrs* found = nullptr;
  std::string address;
  if (::getifaddrs(&found) != 0) return "localhost";
  for (const ifaddrs* one = found; one != nullptr && address.empty(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
        (one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    char text[INET_ADDRSTRLEN] = "";
    const auto* internet = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (::inet_ntop(AF_INET, &internet->sin_addr, text, sizeof(text)) != nullptr) address = text;
  }
  ::freeifaddrs(found);
  return address.empty() ? "localhost" : address;
}

Result<Socket> ListenForStore(const std::string& host, int* port) {
  const bool loopback = host == "localhost" || IsLoopback(host);
  // A name of this host may stand for its loopback address here, and for another one elsewhere.
  Result<Socket> listener = rendezvous::ListenOnExactly(loopback ? host : std::string("::"), *port);
  if (!listener.ok() && !loopback && listener.status().code() != ErrorCode::kUnavailable) {
    listener = rendezvous::ListenOnExactly("0.0.0.0", *port);  // a host without IPv6
  }
  if (listener.ok()) *port = rendezvous::LocalPort(listener.value());
  return listener;
}

Result<std::unique_ptr<ServedStore>> ServedStore::Start(const ServedStoreOptions& options) {
  std::unique_ptr<ServedStore> store(new ServedStore);
  const std::string host = options.host.empty() ? HostForOthers() : options.host;
  if (!options.host.empty() && !IsThisHost(host)) {
    return Unavailable("'" + host + "' is no address of this host");
  }
  int port = options.port;
  ASSIGN_OR_RETURN(const Socket listener, ListenForStore(host, &port));
  store->url_ = agree::TcpUrl({host, port});
  if (store->folder_.path().empty()) return IoError("no temporary folder: " + ErrnoText(errno));
  CellServerOptions server;
  server.secret = options.secret;
  server.file = store->folder_.path() + "/cells";
  server.log = LogLine;
  ASSIGN_OR_RETURN(Pipe lifeline, MakePipe());
  ASSIGN_OR_RETURN(Pipe ended, MakePipe());
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return IoError("no process for the store: " + ErrnoText(errno));
  if (child == 0) {
    const pid_t keeper = ::fork();
    if (keeper != 0) ::_exit(keeper > 0 ? 0 : 1);
    lifeline.write.Close();
    ended.read.Close();
    LeaveStreams();
    KeepServing(listener, server, lifeline.read.get());
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) return IoError("no process for the store could be started");
  store->lifeline_ = std::move(lifeline.write);
  store->ended_ = std::move(ended.read);
  return store;
}

ServedStore::~ServedStore() {
  if (!lifeline_.open()) return;
  lifeline_.Close();
  (void)WaitForEnd(ended_.get(), kToEndMs);
}

}  // namespace diapason::cell_server
