// Two processes write into one store at once, and one of them is killed again and again, at any
// moment. Afterwards the file is whole, the survivor has lost nothing, and of the killed one every
// transaction is there entirely or not at all.
//
//   writers [KILLS]
//
// A victim tells through a pipe when it begins a transaction; it is killed a varying number of
// microseconds of its own work later, so that deaths fall before, into and after the commits.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "dataset/store.h"

namespace {

using diapason::Result;
using diapason::Status;
using diapason::dataset::Sample;
using diapason::dataset::SampleRun;
using diapason::dataset::SampleStore;
using diapason::dataset::StoreContents;
using diapason::dataset::StoredSample;

// Large enough for several pages, so that a commit has something to tear.
constexpr int kPerTransaction = 40;
constexpr int kSurvivorsTransactions = 60;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "writers: %s\n", why.c_str());
  std::_Exit(1);
}

void Expect(const Status& status) {
  if (!status.ok()) Die(status.message());
}

// The transaction's number is in every sample of it.
std::vector<Sample> Transaction(int number, int writer) {
  std::vector<Sample> samples;
  for (int i = 0; i < kPerTransaction; ++i) {
    Sample sample;
    sample.point.collective = "allreduce";
    sample.point.bytes = static_cast<uint64_t>(number % 50 * 1000 + i + 1);
    sample.point.ranks = writer + 1;
    sample.round = number;
    sample.seconds = 1e-6 * (i + 1);
    sample.note = std::string(200, static_cast<char>('a' + i % 26));
    samples.push_back(std::move(sample));
  }
  return samples;
}

// Writes until it has written `transactions`, telling `tell` before each.
void Write(const std::string& path, const std::string& id, int writer, int transactions, int tell) {
  Result<std::unique_ptr<SampleStore>> store = SampleStore::Open(path, SampleStore::Access::kWrite);
  Expect(store.status());
  SampleRun run;
  run.id = id;
  run.source = "test";
  Expect(store.value()->BeginRun(run).status());
  for (int i = 0; i < transactions; ++i) {
    if (tell >= 0 && ::write(tell, "x", 1) != 1) std::_Exit(0);
    const std::vector<Sample> samples = Transaction(i, writer);
    Expect(store.value()->Add(id, samples));
  }
  Expect(store.value()->EndRun(id, SampleRun::State::kDone));
}

// Kills one victim after `tells` transactions have begun and `spin` of our own turns.
void KillOne(const std::string& path, int number, int tells, int spin) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) Die("no pipe");
  const pid_t child = ::fork();
  if (child < 0) Die("no process");
  if (child == 0) {
    ::close(pipe_ends[0]);
    Write(path, "victim-" + std::to_string(number), 1, 1 << 20, pipe_ends[1]);
    std::_Exit(0);
  }
  ::close(pipe_ends[1]);
  char told = 0;
  for (int i = 0; i < tells; ++i) {
    if (::read(pipe_ends[0], &told, 1) != 1) Die("a victim ended by itself");
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(spin);
  while (std::chrono::steady_clock::now() < until) {
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(pipe_ends[0]);
  if (!WIFSIGNALED(status)) Die("a victim ended by itself");
}

void Judge(const std::string& path, int kills) {
  Result<std::unique_ptr<SampleStore>> store = SampleStore::Open(path, SampleStore::Access::kRead);
  Expect(store.status());
  Expect(store.value()->CheckIntegrity());
  const Result<StoreContents> read = store.value()->Read();
  Expect(read.status());
  const StoreContents& contents = read.value();
  std::map<std::pair<size_t, int>, int> counts;
  for (const StoredSample& record : contents.records) ++counts[{record.run, record.sample.round}];
  std::map<size_t, int> whole;
  for (const auto& [key, count] : counts) {
    if (count != kPerTransaction) {
      Die("run " + contents.runs[key.first].id + " has " + std::to_string(count) +
          " samples of transaction " + std::to_string(key.second));
    }
    // Without gaps: what was committed before is never lost by a later death.
    if (key.second != whole[key.first]++) Die("a transaction is missing");
  }
  int survivors = 0;
  for (size_t i = 0; i < contents.runs.size(); ++i) {
    if (contents.runs[i].id != "survivor") continue;
    survivors = whole[i];
    if (contents.runs[i].state != SampleRun::State::kDone) Die("the survivor did not end its run");
  }
  if (survivors != kSurvivorsTransactions) Die("the survivor has lost transactions");
  std::printf("%d kills, %zu runs, %zu transactions, all whole\n", kills, contents.runs.size(),
              counts.size());
  if (counts.size() <= static_cast<size_t>(kSurvivorsTransactions)) {
    Die("no victim ever committed: the test shows nothing");
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::alarm(1400);  // whatever hangs, ends
  const int kills = argc > 1 ? std::atoi(argv[1]) : 60;
  char folder[] = "/tmp/diapason-writers-XXXXXX";
  if (::mkdtemp(folder) == nullptr) Die("no folder");
  const std::string path = std::string(folder) + "/store.db";
  const pid_t survivor = ::fork();
  if (survivor < 0) Die("no process");
  if (survivor == 0) {
    Write(path, "survivor", 0, kSurvivorsTransactions, -1);
    std::_Exit(0);
  }
  for (int i = 0; i < kills; ++i) KillOne(path, i, 1 + i % 4, i * 37 % 2000);
  int status = 0;
  ::waitpid(survivor, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Die("the survivor failed");
  Judge(path, kills);
  for (const char* end : {"", "-journal"}) ::unlink((path + end).c_str());
  ::rmdir(folder);
  return 0;
}
