#include "job_tune/live_search.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/random.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "domain/schedule.h"
#include "journal/record.h"
#include "policy/order.h"

namespace diapason::job_tune {
namespace {

using journal::JournalRecord;
using journal::RecordKind;

constexpr uint64_t kBytes = 32768;
constexpr Config kOwn{kRing, kSimple, 4};
constexpr Config kFaster{kTree, kSimple, 0};

// A job of one rank that we see: it reads orders in a store and writes a journal, on a clock of its
// own. An iteration has four allreduces and an allgather.
class PlayedJob {
 public:
  explicit PlayedJob(const std::string& name) {
    job.journal_dir = folder_.path();
    job.journal_stem = "run-";
    job.variables = {{"DIAPASON_JOB", name}};
    agree::StoreOptions options;
    options.where = Where();
    options.job = name;
    Result<std::unique_ptr<agree::CellStore>> store = agree::OpenStore(options);
    EXPECT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(store).value();
    orders_ = std::make_unique<agree::OrderLog>(store_.get());
    file_.open(folder_.path() + "/run-1.jsonl");
    journal::JournalComm comm;
    comm.number = 1;
    comm.api = 5;
    comm.library_version = 22809;
    comm.shape = {1, 4};
    comm.rank = 0;
    file_ << R"({"type":"journal","version":1,"host":"h","pid":7})"
          << "\n"
          << journal::CommunicatorLine(comm) << "\n";
  }
  std::string Where() const { return "file:" + stores_.path(); }

  void Iterate() {
    EXPECT_TRUE(orders_->Look(now).ok());
    Config config;
    if (orders_->number() > 0) {
      const Result<policy::Order> order = policy::ParseOrder(orders_->text());
      EXPECT_TRUE(order.ok()) << order.status().message();
      for (const policy::Rule& rule : order.value().rows.rules) {
        if (rule.collective == Collective::kAllReduce) config = rule.config;
      }
    }
    const CounterRandom random(1, 0);
    const double length = (config == kFaster ? 0.015 : 0.020) *
                          (1 + 0.005 * random.Normal(static_cast<uint64_t>(calls_)));
    for (int i = 0; i < 4; ++i) {
      Call(Collective::kAllReduce, kBytes, config, now + 0.2 * i * length);
    }
    Call(Collective::kAllGather, 4096, {}, now + 0.8 * length);
    file_.flush();
    now += length;
  }
  void Capture() {
    JournalRecord record = Question(Collective::kAllReduce, kBytes, now);
    record.captured = true;
    Add(record);
    file_.flush();
  }

  job::PreparedJob job;
  double now = 100;

 private:
  JournalRecord Question(Collective collective, uint64_t bytes, double when) {
    JournalRecord record;
    record.kind = RecordKind::kDecision;
    record.communicator = 1;
    record.call = ++calls_;
    record.collective = static_cast<uint8_t>(collective);
    record.bytes = bytes;
    record.time_ns = static_cast<uint64_t>(when * 1e9);
    record.table_algorithms = 2;
    record.table_protocols = 3;
    for (float& cost : record.table) cost = -1;
    record.table[2] = 30;  // tree/simple
    record.table[5] = 20;  // ring/simple
    return record;
  }
  void Call(Collective collective, uint64_t bytes, const Config& config, double when) {
    JournalRecord record = Question(collective, bytes, when);
    record.learning = true;
    record.index = calls_;
    record.applied = !config.IsDefault();
    record.algorithm = static_cast<int8_t>(config.algorithm);
    record.protocol = static_cast<int8_t>(config.protocol);
    record.channels = static_cast<int16_t>(config.channels);
    Add(record);
    record.kind = RecordKind::kRan;
    record.sequence = calls_;
    record.algorithm = static_cast<int8_t>(config.IsDefault() ? kOwn.algorithm : config.algorithm);
    record.protocol = static_cast<int8_t>(config.IsDefault() ? kOwn.protocol : config.protocol);
    record.channels = static_cast<int16_t>(config.channels > 0 ? config.channels : kOwn.channels);
    Add(record);
  }
  void Add(const JournalRecord& record) {
    file_ << journal::RecordLine(record, Library::kNccl) << "\n";
  }

  TemporaryFolder folder_;
  TemporaryFolder stores_;
  std::ofstream file_;
  std::unique_ptr<agree::CellStore> store_;
  std::unique_ptr<agree::OrderLog> orders_;
  uint32_t calls_ = 0;
};

LiveSearchOptions OptionsFor(const std::string& store) {
  LiveSearchOptions options;
  options.store = store;
  options.look_limit = 10;
  options.whole_limit = 60;
  return options;
}

// Runs a launch until it may end, or for so many iterations.
bool RunLaunch(LiveSearch* live, PlayedJob* job, int most) {
  live->Begin(job->now + 3600);
  bool over = false;
  for (int i = 0; i < most && !over; ++i) {
    job->Iterate();
    over = live->Poll(job->job, job->now);
  }
  live->End();
  return over;
}

TEST(LiveSearch, FindsWhatIsFasterInsideTheJob) {
  PlayedJob job("j1");
  int looks = 0;
  LiveSearchOptions options = OptionsFor(job.Where());
  options.looked = [&](const job_profile::JobProfile& profile, const JobOffers& offers) {
    ++looks;
    EXPECT_NEAR(profile.iteration, 0.020, 0.001);
    ASSERT_FALSE(offers.contexts.empty());
    EXPECT_EQ(offers.contexts[0].context.collective, Collective::kAllReduce);
    EXPECT_EQ(offers.contexts[0].by_default, kOwn);
  };
  LiveSearch live(options);
  EXPECT_TRUE(RunLaunch(&live, &job, 20000)) << live.trouble();
  EXPECT_EQ(looks, 1);
  ASSERT_TRUE(live.looked());
  EXPECT_TRUE(live.over());
  const Config best = live.search().Candidate()[0];
  EXPECT_EQ(best.algorithm, kFaster.algorithm);
  EXPECT_EQ(best.protocol, kFaster.protocol);
  const std::vector<TriedConfig> tried = live.search().TriedIn(0);
  ASSERT_FALSE(tried.empty());
  EXPECT_NEAR(tried.front().gain, 4.0 / 3, 0.03);
}

TEST(LiveSearch, GoesOnInTheNextLaunch) {
  PlayedJob first("j1");
  LiveSearch live(OptionsFor(first.Where()));
  EXPECT_FALSE(RunLaunch(&live, &first, 300));
  ASSERT_TRUE(live.looked());
  const size_t blocks = live.search().blocks();
  EXPECT_GT(blocks, 0u);
  EXPECT_FALSE(live.over());
  // A store that the ranks of the next launch do not use.
  PlayedJob elsewhere("j2");
  EXPECT_FALSE(RunLaunch(&live, &elsewhere, 50));
  EXPECT_NE(live.trouble().find("no store that can be reached"), std::string::npos)
      << live.trouble();
  EXPECT_EQ(live.search().blocks(), blocks);
}

TEST(LiveSearch, TheLaunchEndsWhenItsTimeIsOver) {
  PlayedJob job("j1");
  LiveSearch live(OptionsFor(job.Where()));
  live.Begin(job.now + 1);
  int polls = 0;
  do {
    job.Iterate();
    ++polls;
  } while (!live.Poll(job.job, job.now) && polls < 1000);
  EXPECT_LT(polls, 60);
  EXPECT_FALSE(live.looked());
}

// Calls in graphs whose replays are not reported: the end of the command is waited for.
TEST(LiveSearch, GraphsAlone) {
  for (const bool by_itself : {true, false}) {
    PlayedJob job("j1");
    LiveSearch live(OptionsFor(job.Where()));
    live.Begin(job.now + 3600);
    for (int i = 0; i < 5; ++i) job.Iterate();
    job.Capture();
    for (int i = 0; i < 30; ++i, job.now += 1) EXPECT_FALSE(live.Poll(job.job, job.now)) << i;
    EXPECT_TRUE(live.graphs_alone());
    EXPECT_FALSE(live.looked());
    live.End();
    live.LookAtEnd(job.job, by_itself);
    EXPECT_EQ(live.looked(), by_itself);
    EXPECT_EQ(live.WhyNoLook().find("captured in CUDA graphs") != std::string::npos, !by_itself);
    EXPECT_EQ(live.over(), by_itself);
  }
}

TEST(LiveSearch, GraphsAloneInACommandThatDoesNotEnd) {
  PlayedJob job("j1");
  LiveSearch live(OptionsFor(job.Where()));
  live.Begin(job.now + 3600);
  job.Capture();
  int polls = 0;
  while (!live.Poll(job.job, job.now) && polls < 1000) {
    job.now += 1;
    ++polls;
  }
  EXPECT_LT(polls, 200);
  EXPECT_NE(live.WhyNoLook().find("once per iteration"), std::string::npos);
}

}  // namespace
}  // namespace diapason::job_tune
