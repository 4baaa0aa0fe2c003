#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace diapason::launch {

// How ranks are started: on this host, or by mpirun or srun on several.
struct Launcher {
  enum class Kind : uint8_t { kLocal, kMpirun, kSrun };
  Kind kind = Kind::kLocal;
  int nodes = 1;
  int ranks = 1;                   // in all
  std::string first_host;          // where rank 0 will be: HostOfFirstRank
  std::string host_file;           // mpirun's; "" for none
  std::vector<std::string> extra;  // more arguments for mpirun or srun, before the program
  std::string self;                // this program, started again as the helper kLocalLaunch
  bool as_root = false;            // mpirun wants to be told
};

Result<Launcher::Kind> ParseLauncher(const std::string& name);

// A command that runs `program` as that many ranks, with the variables set for each of them, and a
// secret of their own by which they know each other (docs/job/comm.md).
struct LaunchCommand {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment;  // for the launcher itself
};
LaunchCommand CommandFor(const Launcher& launcher, const std::vector<std::string>& program,
                         const std::vector<std::pair<std::string, std::string>>& environment);

// "A=1 B=2" -> pairs, in order. A word without a name or a '=' is an error.
Result<std::vector<std::pair<std::string, std::string>>> ParseAssignments(const std::string& text);

// The hosts of an mpirun host file, each once: "n1 slots=8" and "n1:8" are n1.
Result<std::vector<std::string>> ReadHostFile(const std::string& path);

// Where mpirun starts rank 0: on the host it runs on if the host file has it (by its name or one of
// its addresses), otherwise on the first host of the file.
std::string HostOfFirstRank(const std::vector<std::string>& hosts, const std::string& own_name,
                            const std::vector<std::string>& own_addresses);

// The lines of what mpirun, ssh or srun have said that name the host or the cause of a failed
// start, each once and at most eight; "" if there are none. mpirun's own text is long advice for
// all cases.
std::string CauseOfFailure(std::string_view said);

// The numeric addresses of this host's interfaces.
std::vector<std::string> OwnAddresses();

}  // namespace diapason::launch
