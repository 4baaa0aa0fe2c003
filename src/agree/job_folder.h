#pragma once

#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <string>

#include "agree/private_folder.h"
#include "agree/store.h"
#include "agree/stores.h"
#include "agree/turn.h"

namespace diapason::agree {

// The folder of a job in a file system, and this process's presence in it: a file whose
// modification time shows that the process lives. The last process to leave removes the folder. A
// process that enters a day or more later removes the folders of killed jobs.
//
// A folder is removed in three steps: it is renamed to .gone-<random>, searched once more for a
// presence, and emptied. A process that enters meanwhile notices that its folder no longer has the
// job's name, and starts over. Processes that have the folder open do not notice the renaming, and
// continue to use it; the last of them removes it under the name that it has then. A process that
// renames a folder looks for presences afterwards, so that none is left behind by processes that
// leave at the same time.
//
// Thread-safe. In a forked child the functions do nothing.
class JobFolder {
 public:
  // Opens or creates <parent>/<name> and makes this process present. `shown` is its path, for
  // messages. `between` is for tests: called when the folder is open and this process not yet
  // present.
  static Result<std::unique_ptr<JobFolder>> Enter(Descriptor parent, const std::string& name,
                                                  const std::string& shown,
                                                  std::chrono::milliseconds limit,
                                                  const std::function<void()>& between = nullptr);
  // Opens an existing folder without a presence: such a process keeps nothing alive and removes
  // nothing.
  static Result<std::unique_ptr<JobFolder>> Visit(Descriptor parent, const std::string& name,
                                                  const std::string& shown);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  int get() const { return folder_.get(); }
  void KeepAlive(Deadline deadline);
  // Ends the presence. Removes the folder if no other process is present, as far as time permits:
  // later processes remove the rest.
  void Leave(Deadline deadline);
  // Ends the presence and keeps the folder: its contents could not be used. REQUIRES: no other
  // thread calls.
  void Withdraw();
  // Removes the folders of killed jobs beside this one.
  void SweepSiblings(Deadline deadline) const;

 private:
  JobFolder(Descriptor parent, std::string name, Descriptor folder,
            std::chrono::milliseconds limit);

  // 0, or an errno.
  int MakePresence();

  const Maker maker_;
  const std::chrono::milliseconds limit_;  // of leaving at the end
  const Descriptor parent_;
  const std::string name_;
  const Descriptor folder_;
  Turn turn_;             // for what follows
  std::string presence_;  // its name; "": none
};

// Whether a folder was left by a killed job. `now` is the file system's time.
bool IsRemains(int parent, const std::string& name, int folder, time_t now);

// Removes the folder `name`, which is open as `folder`, unless a presence in it was renewed at
// `since` or later. `between` is for tests: called when the folder was renamed and not yet
// searched.
bool RemoveUnlessUsed(int parent, const std::string& name, int folder, time_t since,
                      Deadline deadline, const std::function<void()>& between = nullptr);

}  // namespace diapason::agree
