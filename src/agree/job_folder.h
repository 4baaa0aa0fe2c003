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

// The folder of a job in a file system, and this process's presence in it: a file whose time of
// change says that the process lives. The last one out removes the folder. What jobs have left that
// were killed is removed by those that come a day later.
//
// A folder goes in three steps: it is renamed to .gone-<random>, looked through once more for a
// presence, and emptied. A process that comes in between finds that the folder it has opened no
// longer has the job's name, and begins again. Processes that have the folder open do not notice a
// renaming, and go on in it.
//
// Any thread may call. A forked child does nothing.
class JobFolder {
 public:
  // Opens or makes <parent>/<name>, and is present from then on. `shown` is its path, for messages.
  // Tests have `between` called when it is open and this process not yet present.
  static Result<std::unique_ptr<JobFolder>> Enter(Descriptor parent, const std::string& name,
                                                  const std::string& shown,
                                                  std::chrono::milliseconds limit,
                                                  const std::function<void()>& between = nullptr);
  // Opens one that is there, without being present: such a process keeps and removes nothing.
  static Result<std::unique_ptr<JobFolder>> Visit(Descriptor parent, const std::string& name,
                                                  const std::string& shown);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  int get() const { return folder_.get(); }
  void KeepAlive(Deadline deadline);
  // Not present any more. Removes the folder where no other process is, as far as there is time:
  // what is left is removed by others later.
  void Leave(Deadline deadline);
  // Not present any more, and the folder stays: what is in it could not be used.
  // REQUIRES: no other thread calls.
  void Withdraw();
  // Removes what killed jobs have left beside this one.
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

// Whether a folder is what a killed job has left, seen at this time of the file system's.
bool IsRemains(int parent, const std::string& name, int folder, time_t now);

// Removes the folder `name`, which is open as `folder`, unless a presence in it was renewed at this
// time or later. Tests have `between` called when it was renamed and not yet looked through.
bool RemoveUnlessUsed(int parent, const std::string& name, int folder, time_t since,
                      Deadline deadline, const std::function<void()>& between = nullptr);

}  // namespace diapason::agree
