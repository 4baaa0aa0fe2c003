#include "watch/ras_watch.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/text.h"
#include "domain/library_version.h"
#include "host/libraries.h"

namespace diapason::watch {
namespace {

constexpr double kSearchSeconds = 10;
constexpr double kShortestInterval = 0.2;
constexpr double kLongestInterval = 2;
constexpr double kHurrySeconds = 0.5;
constexpr int kFirstRas = 22400;
constexpr int kFirstSafe = 22900;

std::vector<std::string> LocalHosts() {
  std::vector<std::string> hosts;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return hosts;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    const void* address = nullptr;
    if (family == AF_INET) address = &reinterpret_cast<sockaddr_in*>(one->ifa_addr)->sin_addr;
    if (family == AF_INET6) address = &reinterpret_cast<sockaddr_in6*>(one->ifa_addr)->sin6_addr;
    char text[INET6_ADDRSTRLEN] = "";
    if (address != nullptr && inet_ntop(family, address, text, sizeof text) != nullptr) {
      hosts.emplace_back(text);
    }
  }
  freeifaddrs(list);
  return hosts;
}

bool Absent(const RasRank& rank) {
  return rank.absence == RasAbsence::kUnresponsive || rank.absence == RasAbsence::kDead;
}

// Whether an answer names one of the processes. The text form names ranks only where they differ.
bool NamesJob(const RasAnswer& answer, const std::map<pid_t, JobProcess>& job) {
  if (!answer.json) return true;
  bool any = false;
  for (const RasCommunicator& communicator : answer.communicators) {
    for (const RasRank& rank : communicator.ranks) {
      any = true;
      for (const auto& [pid, process] : job) {
        if (process.inner_pid == rank.pid) return true;
      }
    }
  }
  return !any;  // no communicator exists yet
}

}  // namespace

RasWatch::RasWatch(RootFs tree, double interval_s)
    : tree_(std::move(tree)),
      interval_s_(std::clamp(interval_s, kShortestInterval, kLongestInterval)),
      local_hosts_(LocalHosts()) {}

RasWatch::~RasWatch() {
  {
    const std::lock_guard lock(shared_.mutex);
    stop_ = true;
  }
  shared_.changed.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Signals are for the caller's thread.
void RasWatch::Start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Ask(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The thread.
void RasWatch::Ask() {
  std::unique_lock lock(shared_.mutex);
  while (!stop_) {
    if (shared_.question) {
      RasQuestion question = *shared_.question;
      question.stop = &stop_;
      lock.unlock();
      Result<RasReply> reply = AskRas(tree_, question);
      const double now_s = SteadySeconds();
      lock.lock();
      if (reply.ok()) {
        shared_.problem.clear();
        shared_.reply = std::move(reply).value();
        shared_.replied_s = now_s;
      } else {
        shared_.problem = reply.status().message();
      }
    }
    const double pause = shared_.hurry ? std::min(kHurrySeconds, interval_s_) : interval_s_;
    shared_.changed.wait_for(lock, std::chrono::duration<double>(pause),
                             [this] { return stop_.load(); });
  }
}

void RasWatch::FindJob(double now_s, const std::vector<pid_t>& watched) {
  bool new_one = false;
  for (const pid_t pid : watched) {
    JobProcess process;
    // The library may be loaded at any time.
    if (known_.contains(pid) || !ReadJobProcess(tree_, pid, &process)) continue;
    known_.insert(pid);
    new_one |= job_.emplace(pid, process).second;
  }
  if (job_.empty() || (!new_one && now_s - searched_s_ < kSearchSeconds)) return;
  searched_s_ = now_s;
  const std::vector<JobProcess> all = LibraryProcesses(tree_);
  for (const JobProcess& process : all) {
    const bool same = std::any_of(known_.begin(), known_.end(), [&](pid_t pid) {
      return job_.contains(pid) && SameJob(job_.at(pid), process);
    });
    if (same) job_.emplace(process.pid, process);
  }
  Adopt(all);
}

// Processes that RAS names as ranks of the job on this host, and that nothing else connects to it.
void RasWatch::Adopt(const std::vector<JobProcess>& all) {
  for (const CommunicatorView& communicator : last_.communicators) {
    for (const RankView& rank : communicator.ranks) {
      if (rank.local_pid != 0 || rank.pid < 0 ||
          std::find(local_hosts_.begin(), local_hosts_.end(), rank.host) == local_hosts_.end()) {
        continue;
      }
      const auto fits = [&](const JobProcess& process) {
        return process.inner_pid == rank.pid && !job_.contains(process.pid) &&
               (process.rank < 0 || process.world != communicator.size ||
                process.rank == rank.rank);
      };
      if (std::count_if(all.begin(), all.end(), fits) != 1) continue;
      const JobProcess& found = *std::find_if(all.begin(), all.end(), fits);
      job_.emplace(found.pid, found);
    }
  }
}

std::vector<LocalRank> RasWatch::States() const {
  std::vector<LocalRank> states;
  for (const auto& [pid, process] : job_) {
    states.push_back({process, StateOf(tree_, pid, process.start_ticks)});
  }
  return states;
}

// Before 2.29 NCCL's answer steps over the data of several communicators in the wrong width as soon
// as a rank is missing, and may end the process that answers. "" if it may be asked.
std::string RasWatch::WhyNotAsk() {
  const JobProcess& first = job_.begin()->second;
  const std::string own = tree_.Link("/proc/self/ns/net").value_or("");
  if (!first.net.empty() && !own.empty() && first.net != own) {
    return Format(
        "process {} is in another network namespace: run this command there, with "
        "nsenter -t {} -n",
        static_cast<int>(first.pid), static_cast<int>(first.pid));
  }
  const bool trouble =
      absent_ || std::any_of(last_.processes.begin(), last_.processes.end(), [](const auto& local) {
        return local.state == 'T' || local.state == 't' || local.state == 'Z' || local.state == 'X';
      });
  if (!trouble || communicators_ == 1) return "";
  if (version_ == 0 && !library_read_) {
    library_read_ = true;
    const auto library = host::LookAtLibrary(tree_, first.library);
    if (library.ok()) version_ = library.value().version;
  }
  if (version_ < kFirstRas || version_ >= kFirstSafe) return "";
  return "RAS is not asked: before NCCL 2.29 it may end a process while a rank is missing and "
         "there "
         "are several communicators";
}

void RasWatch::TakeReply() {
  std::optional<RasReply> reply;
  double replied_s = 0;
  {
    const std::lock_guard lock(shared_.mutex);
    reply.swap(shared_.reply);
    replied_s = shared_.replied_s;
    last_.problem = shared_.problem;
  }
  if (!reply) return;
  if (reply->answered_by == 0 && !NamesJob(reply->answer, job_)) {
    last_.problem = "another job answers at " + reply->address;
    return;
  }
  judge_.SeeAnswer(replied_s, reply->answer, local_hosts_);
  answered_s_ = replied_s;
  last_.address = reply->address;
  last_.nccl_version = reply->answer.nccl_version;
  last_.answered_by = reply->answered_by;
  // "2.28.9+cuda13.0"
  const std::string_view text = last_.nccl_version;
  const Result<int> version =
      ParseLibraryVersion(text.substr(0, text.find_first_not_of("0123456789.")));
  if (version.ok()) version_ = version.value();
  communicators_ = static_cast<int>(reply->answer.communicators.size());
  absent_ = false;
  for (const RasCommunicator& communicator : reply->answer.communicators) {
    absent_ |= std::any_of(communicator.ranks.begin(), communicator.ranks.end(), Absent);
  }
}

RasView RasWatch::Look(const std::vector<pid_t>& watched) {
  FindJob(SteadySeconds(), watched);
  if (job_.empty()) return last_;
  last_.used = true;
  Peek();
  TakeReply();
  const std::string why_not = WhyNotAsk();
  {
    const std::lock_guard lock(shared_.mutex);
    shared_.hurry = absent_;
    shared_.question.reset();
    if (why_not.empty()) {
      RasQuestion question;
      question.address = job_.begin()->second.ras_address;
      for (const auto& [pid, process] : job_) question.job.push_back(pid);
      shared_.question = std::move(question);
    }
  }
  if (!why_not.empty()) last_.problem = why_not;
  if (!thread_.joinable()) Start();
  const double now_s = SteadySeconds();
  last_.age_s = answered_s_ < 0 ? -1 : now_s - answered_s_;
  last_.verdict = judge_.Judge(now_s);
  last_.functions = judge_.functions();
  last_.communicators = judge_.View(now_s, last_.verdict);
  return last_;
}

void RasWatch::Peek() {
  if (job_.empty()) return;
  last_.processes = States();
  judge_.SeeProcesses(SteadySeconds(), last_.processes);
}

}  // namespace diapason::watch
