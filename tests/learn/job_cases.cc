#include "job_cases.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace played_job {

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&cases](const char* name) -> Case& {
    cases.emplace_back();
    cases.back().name = name;
    cases.back().step = PlainStep;
    return cases.back();
  };
  add("learn");
  {
    Case& one = add("simulate");  // on one rank, now and then
    one.step = [](Communicator* communicator, int rank, uint32_t n) {
      int error = 0;
      if (rank == 1 && n % 5 == 0) {
        communicator->AllReduce(kSizes[(n + n / 5) % kSizeCount], Way::kSimulated, &error);
      }
      return error == 0 && PlainStep(communicator, rank, n);
    };
  }
  {
    Case& one = add("simulate-then-send");  // a kernel that must not confirm the simulated question
    one.step = [](Communicator* communicator, int rank, uint32_t n) {
      int error = 0;
      if (rank == 1 && n % 5 == 0) {
        communicator->AllReduce(kSizes[(n + n / 5) % kSizeCount], Way::kSimulated, &error);
        communicator->PointToPoint();
      }
      if (rank % 2 == 1 && n % 7 == 0) communicator->PointToPoint();
      return error == 0 && PlainStep(communicator, rank, n);
    };
  }
  {
    // 2.32.6: questions about no call on some ranks, and a quarter of the calls have a
    // configuration of their own that leaves ring alone.
    Case& one = add("newest");
    one.tries_ll = false;
    one.before = [](int) {
      played::PlayVersion(23206);
      setenv("NCCL_RAS_ENABLE", "0", 1);
    };
    one.options = [](Communicator::Options* options) {
      options->asks_ahead = options->rank % 2 == 1 ? 7 : 0;
      options->channels = 4;
      options->own_channels = 2;
    };
    one.step = [](Communicator* communicator, int rank, uint32_t n) {
      if ((n * 2654435761u >> 16) % 4 != 0) return PlainStep(communicator, rank, n);
      int error = 0;
      const played::Call call{played::kAllReduce, kSizes[n % kSizeCount], 1};
      const Choice choice = communicator->Make(call, Way::kEager, &error);
      return Note(rank, n, choice,
                  error != 0              ? error
                  : choice.algorithm == 1 ? 0
                                          : kWrongAlgorithm);
    };
  }
  {
    Case& one = add("capture");  // replays pending on one rank only
    one.must_learn = false;
    one.least = 2000;
    one.most = 4000;
    one.step = [](Communicator* communicator, int rank, uint32_t n) {
      int error = 0;
      const size_t bytes = kSizes[n % kSizeCount];
      if (n % 50 == 7) {
        const Choice choice = communicator->AllReduce(bytes, Way::kCaptured, &error);
        if (rank % 2 == 0) communicator->Replay(bytes, choice);
        return Note(rank, n, choice, error);
      }
      if (rank == 1 && n % 7 == 0) {
        return Note(rank, n, communicator->AllReduce(bytes, Way::kLate, &error), error);
      }
      return PlainStep(communicator, rank, n);
    };
  }
  {
    Case& one = add("nonblocking");
    one.must_learn = false;
    one.most = 3000;
    one.step = [](Communicator* communicator, int rank, uint32_t n) {
      int error = 0;
      const Choice choice =
          communicator->AllReduce(kSizes[n % kSizeCount], Way::kNonBlocking, &error);
      return Note(rank, n, choice, error);
    };
  }
  {
    Case& one = add("groups");
    one.must_learn = false;
    one.most = 3000;
    one.step = [](Communicator* communicator, int rank, uint32_t n) {
      if (n % 3 != 0) return PlainStep(communicator, rank, n);
      int error = 0;
      const std::vector<Choice> ran =
          communicator->Group({kSizes[0], kSizes[0], kSizes[2]}, &error);
      if (error != 0) return Note(rank, n, {}, error);
      Choice both = ran[0];
      both.channels = ran[0].channels * 10 + ran[2].channels + 100 * ran[2].algorithm;
      return Note(rank, n, both, error);
    };
  }
  {
    Case& one = add("no-profiler");  // one rank has only half of the plugin
    one.must_learn = false;
    one.most = 300;
    one.profiler_everywhere = false;
  }
  {
    Case& one = add("two-stores");  // that do not see each other
    one.must_learn = false;
    one.most = 300;
    one.before = [](int rank) {
      const std::string folder = g_folder + "/store" + std::to_string(rank % 2);
      std::filesystem::create_directories(folder);
      setenv("DIAPASON_STORE", ("file:" + folder).c_str(), 1);
    };
  }
  {
    Case& one = add("file");
    one.before = [](int) {
      std::filesystem::create_directories(g_folder + "/store");
      setenv("DIAPASON_STORE", ("file:" + g_folder + "/store").c_str(), 1);
    };
  }
  {
    Case& one = add("emptied");  // the store is removed while the job runs
    one.must_learn = false;
    one.errors_allowed = true;
    one.most = 4000;
    one.before = [](int) {
      std::filesystem::create_directories(g_folder + "/gone");
      setenv("DIAPASON_STORE", ("file:" + g_folder + "/gone").c_str(), 1);
    };
    one.meanwhile = [](int rank, uint32_t n) {
      if (rank != 2 || n != 700) return;
      std::error_code ignored;
      std::filesystem::remove_all(g_folder + "/gone", ignored);
    };
  }
  {
    Case& one = add("killed");
    one.must_learn = false;
    one.killed = true;
    one.most = 2500;
    one.meanwhile = [](int rank, uint32_t n) {
      if (rank == 3 && n == 500) raise(SIGKILL);
    };
  }
  {
    Case& one = add("differs");  // one rank's library runs something else than it was told
    one.must_learn = false;
    one.errors_allowed = true;
    one.must_fail = true;
    one.most = 100000;  // until it is noticed
    one.least = one.most;
    one.differs_from = 400;
    one.step = [](Communicator* communicator, int rank, uint32_t n) {
      communicator->MisreportRuns(rank == 2 && n >= 400);
      return PlainStep(communicator, rank, n);
    };
  }
  for (const char* name : {"verified", "verified-without-profiler"}) {
    Case& one = add(name);  // no store: the ranks of one host find out that they are alike
    one.must_learn = false;
    one.must_apply = true;
    one.most = 300;
    one.profiler_on_any = std::string(name) == "verified";
    std::ofstream(g_folder + "/policy.conf")
        << "allreduce,0,1073741824,tree,simple,1,-1,-1,-1,-1\n";
    one.before = [](int) {
      setenv("DIAPASON_MODE", "static", 1);
      unsetenv("DIAPASON_STORE");
      setenv("DIAPASON_POLICY", (g_folder + "/policy.conf").c_str(), 1);
    };
  }
  {
    Case& one = add("frozen");  // from the beginning
    one.must_learn = false;
    one.must_not_try = true;
    one.most = 3000;
    std::ofstream(g_folder + "/freeze") << "\n";
    one.before = [](int) { setenv("DIAPASON_FREEZE_FILE", (g_folder + "/freeze").c_str(), 1); };
  }
  // 2.31 and later: somebody outside can change the event mask, by which calls are counted.
  constexpr int kMaskCanChange = 23102;
  {
    Case& one = add("mask-cannot-change");  // RAS is off
    one.must_learn = false;  // ll is not tried from 2.29 on, and is the best for the smallest
    one.must_try = true;
    one.most = 3000;
    one.before = [](int) {
      played::PlayVersion(kMaskCanChange);
      setenv("NCCL_RAS_ENABLE", "0", 1);
    };
  }
  {
    Case& one = add("mask-changed");  // at another call on each rank
    one.must_learn = false;
    one.must_not_try = true;
    one.most = 3000;
    one.before = [](int) { played::PlayVersion(kMaskCanChange); };
    one.meanwhile = [](int rank, uint32_t n) {
      constexpr int kMasks[] = {0, 0xffff, 0x200, 0};
      if (n == 300 + 7 * static_cast<uint32_t>(rank)) played::ChangeMask(kMasks[rank]);
    };
  }
  {
    Case& one = add("mask-could-change");  // on one rank
    one.must_learn = false;
    one.must_not_try = true;
    one.most = 500;
    // Applied by none: the ranks differ, and no rank may go on alone.
    std::ofstream(g_folder + "/ras.conf") << "allreduce,0,1073741824,tree,simple,1,-1,-1,-1,-1\n";
    one.before = [](int rank) {
      played::PlayVersion(kMaskCanChange);
      setenv("NCCL_RAS_ENABLE", rank == 1 ? "1" : "0", 1);
      setenv("DIAPASON_POLICY", (g_folder + "/ras.conf").c_str(), 1);
    };
  }
  {
    Case& one = add("until-told");  // for tests that do something to a running job
    one.must_learn = false;
    one.most = 2000000000;
    one.least = one.most;
    one.only_when_named = true;
    one.meanwhile = [](int rank, uint32_t n) {
      const char* stop = std::getenv("PLAYED_STOP");
      if (rank == 0 && n % 100 == 0 && stop != nullptr && access(stop, F_OK) == 0 &&
          g_board->stop_at.load() > n + 500) {
        g_board->stop_at.store(n + 500);
      }
    };
  }
  {
    Case& one = add("step");  // the reward is the iteration, three calls each
    one.before = [](int) { setenv("DIAPASON_REWARD", "step", 1); };
    one.must_learn = false;
    one.most = 3000;
    one.step = [](Communicator* communicator, int rank, uint32_t n) {
      if (!PlainStep(communicator, rank, n)) return false;
      Pause(static_cast<long>(communicator->last_microseconds()));
      if (n % kSizeCount == kSizeCount - 1) {
        static const auto step =
            reinterpret_cast<void (*)()>(played::LoadPlugin(std::getenv("PLAYED_PLUGIN")).step);
        step();
      }
      return true;
    };
  }
  // A line for every call; or the first five of each size have none, and without call numbers
  // nobody can know which call a line is about.
  for (const char* name : {"reward-file", "reward-file-late", "reward-file-numbered"}) {
    const bool numbered = std::string(name) == "reward-file-numbered";
    const uint32_t unlogged = std::string(name) == "reward-file" ? 0 : 5 * kSizeCount;
    Case& one = add(name);
    one.before = [](int) {
      setenv("DIAPASON_REWARD", "file", 1);
      setenv("NCCL_TUNER_REWARD_FILE", (g_folder + "/rewards.log").c_str(), 1);
    };
    one.must_learn = false;
    one.must_try = numbered;
    one.must_not_try = unlogged > 0 && !numbered;
    if (!numbered) one.most = 4000;
    one.step = [numbered, unlogged](Communicator* communicator, int rank, uint32_t n) {
      if (!PlainStep(communicator, rank, n)) return false;
      if (rank == 0 && n >= unlogged) {
        std::ofstream file(g_folder + "/rewards.log", std::ios::app);
        file << "allreduce," << kSizes[n % kSizeCount] << ",4,4,"
             << communicator->last_microseconds() / 1000;
        if (numbered) file << "," << n / kSizeCount + 1;
        file << "\n";
      }
      return true;
    };
  }
  for (Case& one : cases) {
    if (one.must_learn) one.most = std::max(one.most, kMostToLearn);
  }
  return cases;
}

}  // namespace played_job
