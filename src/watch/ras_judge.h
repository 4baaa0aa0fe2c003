#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "domain/finding.h"
#include "watch/job_processes.h"
#include "watch/ras_answer.h"

namespace diapason::watch {

// What the answers of RAS and the states of the local processes amount to.
enum class RasVerdictKind : uint8_t {
  kOpen,     // too few answers to compare
  kAdvance,  // every rank launches collectives
  kIdle,     // no rank does, and none is behind: the program does something else, or all wait
  kEven,     // the text form: all ranks have launched the same, or differ for a moment
  kEnded,    // all local ranks have ended
  kBehind,   // ranks have not launched a collective in which the others wait
  kDiffer,   // ranks have launched different collectives, and all wait
  kSilent,   // a process does not answer RAS, and the others wait
  kStopped,  // a process is stopped or traced
  kGone,     // a process has ended, and the others wait
};
const char* RasVerdictName(RasVerdictKind kind);  // "behind"; for scripts
bool IsBlame(RasVerdictKind kind);

struct RasVerdict {
  RasVerdictKind kind = RasVerdictKind::kOpen;
  std::string text;          // one sentence
  std::string communicator;  // its hash; "" if that is unknown or of no matter
  std::vector<int> ranks;    // those named
  std::vector<int> waiting;  // those that wait for them
  double since_s = 0;        // how long this has been so, as far as it was seen
};

// A process of the job on this host, now.
struct LocalRank {
  JobProcess process;
  char state = '?';
};

// One rank of a communicator as it is shown.
struct RankView {
  int rank = -1;
  std::string host;
  int pid = -1;         // as RAS reports it
  pid_t local_pid = 0;  // on this host; 0 if it is elsewhere, or unknown
  char state = '?';     // of the local process
  RasAbsence absence = RasAbsence::kNone;
  double absent_s = 0;
  int async_error = 0;
  std::vector<uint64_t> counts;  // the last ones known
  bool advances = false;         // since the answer before
  bool blamed = false;
};
struct CommunicatorView {
  std::string hash;
  int size = 0;
  std::vector<RankView> ranks;
};

// Judges a sequence of answers. Counts are of collectives that were *launched*: ranks of a healthy
// job differ at most moments. A rank is behind if its count is the lowest, and no rank of the
// communicator has advanced over several answers and a time that exceeds the pauses seen before.
// Pure: the caller gives the times, which do not go back.
class RasJudge {
 public:
  // The states of the local processes, as often as they are read.
  void SeeProcesses(double now_s, const std::vector<LocalRank>& locals);
  // A new answer. `local_hosts`: the addresses of this host.
  void SeeAnswer(double now_s, const RasAnswer& answer,
                 const std::vector<std::string>& local_hosts);

  RasVerdict Judge(double now_s) const;
  // The communicators as they were last seen, largest first.
  std::vector<CommunicatorView> View(double now_s, const RasVerdict& verdict) const;
  const std::vector<std::string>& functions() const { return functions_; }

 private:
  struct Rank {
    RasRank last;
    std::vector<uint64_t> counts;  // the last known
    double advanced_s = 0;         // when it was last seen to advance, or first seen
    bool ever_advanced = false;
    bool advances = false;
    double absent_since_s = -1;
    int absences = 0;  // consecutive answers without it
    pid_t local = 0;
  };
  struct Comm {
    std::string hash;
    int size = 0;
    std::map<int, Rank> ranks;
    double advanced_s = 0;  // any rank
    int still = 0;          // consecutive answers in which no rank advanced
    int answers = 0;
    size_t function = SIZE_MAX;  // that advanced last
    std::deque<double> gaps;     // between advances, the latest ones
    bool troubled = false;       // since the last advance a rank was absent or stopped
    double answered_s = 0;
  };
  struct Process {
    JobProcess process;
    char state = '?';
    double stopped_since_s = -1;
    double ended_s = -1;
    bool abandoned = false;  // the others gave up their communicator after its end
  };

  static bool Ended(char state) { return state == 'Z' || state == 'X' || state == 'x'; }
  const Process* ProcessOf(const Rank& rank) const;
  pid_t FindLocal(const RasRank& rank, int size, const std::vector<std::string>& hosts) const;
  void SeeRank(double now_s, const RasRank& seen, const std::vector<std::string>& hosts,
               Comm* comm);

  void SeeEnd(const Comm& comm);

  bool Waits(const Rank& rank) const;
  bool StandsStill(const Comm& comm, double since_s) const;
  std::string Name(const Rank& rank) const;
  std::string Names(const Comm& comm, const std::vector<int>& ranks, const char* one,
                    const char* many) const;
  std::string WaitText(const Comm& comm, const RasVerdict& verdict) const;
  bool FindGone(double now_s, const Comm& comm, RasVerdict* verdict) const;
  bool FindStopped(double now_s, const Comm& comm, RasVerdict* verdict) const;
  bool FindSilent(double now_s, const Comm& comm, RasVerdict* verdict) const;
  bool FindBehind(const Comm& comm, RasVerdict* verdict) const;
  bool LowestRanks(const Comm& comm, RasVerdict* verdict, bool* differ) const;
  bool FindOfProcesses(double now_s, RasVerdict* verdict) const;
  RasVerdict Healthy(double now_s) const;
  bool AllEnded(RasVerdict* verdict) const;
  std::string OfProcess(const Process& process) const;

  std::vector<std::string> functions_;
  std::map<std::string, Comm> comms_;
  std::map<pid_t, Process> processes_;
  bool json_ = true;
};

// The verdict as a finding; a warning where it blames a rank.
Finding RasFinding(const RasVerdict& verdict);

}  // namespace diapason::watch
