#include <csignal>
#include <cstdio>
#include <memory>

#include "agree/cell_protocol.h"
#include "agree/host_port.h"
#include "base/environment.h"
#include "base/text.h"
#include "cell_server/cell_server.h"
#include "cell_server/served_store.h"
#include "cli/commands/commands.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "rendezvous/secret.h"

namespace diapason::cli {
namespace {

struct ServeOptions {
  std::string listen;
  std::string file;
};

rendezvous::FrameServer* g_server = nullptr;  // for the signal handler

void StopServing(int /*signal*/) {
  if (g_server != nullptr) g_server->Stop();
}

Result<int> Serve(const ServeOptions& options) {
  cell_server::CellServerOptions wanted;
  ASSIGN_OR_RETURN(wanted.secret, rendezvous::ReadSecret(ProcessEnvironment()));
  if (wanted.secret.empty()) {
    return Invalid(
        "the ranks and this server need a secret: set DIAPASON_SECRET_FILE to a file of at least "
        "16 characters that only this user can read, here and for the ranks");
  }
  wanted.file = options.file;
  wanted.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  agree::TcpAddress address{cell_server::HostForOthers(), agree::kCellPort};
  if (!options.listen.empty()) {
    if (const char* wrong = agree::ParseHostPort(options.listen, &address.host, &address.port)) {
      return Invalid(Format("--listen is HOST[:PORT]: {}", wrong));
    }
  }
  ASSIGN_OR_RETURN(rendezvous::Socket listener,
                   cell_server::ListenForStore(address.host, &address.port));
  cell_server::RaiseDescriptorLimit();
  ASSIGN_OR_RETURN(const std::unique_ptr<cell_server::CellServer> server,
                   cell_server::CellServer::Open(std::move(listener), std::move(wanted)));
  g_server = server.get();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) (void)std::signal(signal, StopServing);
  PrintOut("DIAPASON_STORE={}\n", agree::TcpUrl(address));
  std::fflush(stdout);
  RETURN_IF_ERROR(server->Run());
  return kExitFine;
}

}  // namespace

void AddServe(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<ServeOptions>();
  CommandLine* command =
      parent->AddCommand("serve", "Serve a store through which ranks on several hosts agree");
  command->Describe(
      "Ranks that learn on several hosts agree through a store that all of them reach. `diapason "
      "run` and `diapason tune` serve one themselves where they start the ranks of all hosts; this "
      "command serves one for jobs that are started otherwise, until it gets SIGINT or SIGTERM. "
      "Prints the value of DIAPASON_STORE for the ranks. They need the same secret, in "
      "DIAPASON_SECRET_FILE.");
  command
      ->AddOption("--listen", options->listen,
                  "Host name or address of this host under which the ranks reach it, and the port")
      ->TypeName("HOST[:PORT]")
      ->Default(Format("this host's name, port {}", agree::kCellPort));
  command
      ->AddOption("--file", options->file,
                  "File that keeps the cells: a server that is started again with it has lost "
                  "nothing. Without one, jobs fail when the server ends")
      ->TypeName("FILE");
  command->Example("diapason serve --listen node0:29477 --file cells",
                   "Serve a store, and keep its cells in a file");
  command->ExitStatus(kExitFine, "a signal has ended it");
  command->ExitStatus(kExitFailed, "the port is in use, or the file cannot be used");
  command->SeeAlso({"run", "tune", "freeze"});
  command->Callback([options, run] { *run = [options] { return Serve(*options); }; });
}

}  // namespace diapason::cli
