#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "cell_server/served_store.h"
#include "domain/finding.h"
#include "job/command.h"

namespace diapason::job {

// In which store the ranks of a job agree, and what serves it.
struct StoreChoice {
  std::string where;   // DIAPASON_STORE; "": it is not set for the ranks
  std::string secret;  // one that was drawn for this job: DIAPASON_SECRET; "": none
  std::shared_ptr<cell_server::ServedStore> served;  // by this process; or null
};

struct StoreRequest {
  std::string store;     // of the command line; "": DIAPASON_STORE
  bool needed = false;   // the ranks agree on every call
  bool dry_run = false;  // nothing is started
};

// What the user has named stays. A store at tcp:// whose host is this one, and where no server
// listens, is served by this process. If nothing is named, and the launcher starts ranks on several
// hosts from here, this process serves one at a free port. Fails if a server cannot be started, or
// for a secret that cannot be used.
Result<StoreChoice> ChooseStore(const JobCommand& command, const StoreRequest& request,
                                const Environment& environment);

// Whether one command starts the ranks of all hosts, so that what it hands over reaches them all.
// (torchrun is started on every host.)
bool StartsAllHosts(Launcher launcher);

}  // namespace diapason::job
