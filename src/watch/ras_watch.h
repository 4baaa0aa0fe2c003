#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/root_fs.h"
#include "watch/job_processes.h"
#include "watch/ras_client.h"
#include "watch/ras_judge.h"

namespace diapason::watch {

// The job of the watched processes as NCCL's RAS and /proc show it.
struct RasView {
  bool used = false;    // a watched process has NCCL or RCCL mapped
  std::string address;  // of the process that answered; "" before the first answer
  std::string nccl_version;
  pid_t answered_by = 0;  // 0 if it is unknown
  double age_s = -1;      // of the last answer; negative: none yet
  std::string problem;    // why there is no answer, or no newer one; "" if there is
  std::vector<std::string> functions;
  std::vector<CommunicatorView> communicators;
  std::vector<LocalRank> processes;  // the processes of the job on this host
  RasVerdict verdict;
};

// Asks RAS repeatedly, in a thread of its own: an answer takes seconds while a rank is silent. All
// functions are called by one thread. The destructor waits for the thread, which ends within a
// fraction of a second.
class RasWatch {
 public:
  // `interval_s`: between questions, within 0.2 and 2 s.
  RasWatch(RootFs tree, double interval_s);
  ~RasWatch();
  RasWatch(const RasWatch&) = delete;
  RasWatch& operator=(const RasWatch&) = delete;

  // Finds the other processes of the job, reads their states, and judges what has been seen.
  RasView Look(const std::vector<pid_t>& watched);
  // In between: only the states of the processes.
  void Peek();

 private:
  struct Shared {  // with the thread
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<RasQuestion> question;  // none: do not ask now
    std::optional<RasReply> reply;        // that Look has not seen
    double replied_s = 0;
    std::string problem;
    bool hurry = false;  // a rank is absent: ask again soon
  };

  void FindJob(double now_s, const std::vector<pid_t>& watched);
  void Adopt(const std::vector<JobProcess>& all);
  void TakeReply();
  std::string WhyNotAsk();
  void Start();
  void Ask();
  std::vector<LocalRank> States() const;

  const RootFs tree_;
  const double interval_s_;
  const std::vector<std::string> local_hosts_;
  std::map<pid_t, JobProcess> job_;
  std::set<pid_t> known_;  // watched processes that were read
  double searched_s_ = -1;
  RasJudge judge_;
  RasView last_;
  double answered_s_ = -1;
  int version_ = 0;         // of NCCL, 22809; 0 if unknown
  int communicators_ = -1;  // in the last answer
  bool absent_ = false;     // a rank, in the last answer
  bool library_read_ = false;
  std::atomic<bool> stop_{false};
  Shared shared_;
  std::thread thread_;
};

}  // namespace diapason::watch
