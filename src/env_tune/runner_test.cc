#include "env_tune/runner.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "base/clock.h"
#include "env_tune/bench_figures.h"
#include "env_tune/binding.h"
#include "env_tune/knob_list.h"
#include "env_tune/metric.h"

namespace diapason::env_tune {
namespace {

CommandRun RunScript(const std::string& script, const EnvVars& settings = {},
                     const CommandOptions& options = {}) {
  Result<CommandRun> run = RunCommand({"sh", "-c", script}, settings, options);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? std::move(run).value() : CommandRun();
}

TEST(Runner, GivesStatusOutputAndSettings) {
  const CommandRun run = RunScript("echo out $FOO; echo err >&2; exit 3", {{"FOO", "a b"}});
  EXPECT_EQ(run.status, 3);
  EXPECT_EQ(run.out.Text(), "out a b\n");
  EXPECT_EQ(run.err.Text(), "err\n");
  EXPECT_FALSE(run.timed_out);
  EXPECT_GT(run.memory, 0);
}

TEST(Runner, CountsCpuTimeOfDescendants) {
  const CommandRun run = RunScript("sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'");
  EXPECT_EQ(run.status, 0);
  EXPECT_GT(run.cpu_s, 0.005);
  EXPECT_LE(run.cpu_s, run.wall_s * 2 + 0.1);
}

TEST(Runner, SaysWhatCannotBeStarted) {
  const Result<CommandRun> run = RunCommand({"/no/such/program"}, {}, {});
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().message().find("/no/such/program"), std::string::npos);
}

TEST(Runner, EndsEverythingAtTheTimeLimit) {
  CommandOptions options;
  options.timeout_s = 2;  // the child has said its number long since
  // The grandchild has a process group of its own and ignores what it is asked.
  const CommandRun run =
      RunScript("setsid -w true; (trap '' TERM; sleep 300) & echo $!; wait", {}, options);
  EXPECT_TRUE(run.timed_out);
  const pid_t child = static_cast<pid_t>(std::atoi(run.out.Text().c_str()));
  ASSERT_GT(child, 0);
  // It is dead, or about to be reaped by whoever adopted it.
  const double until = SteadySeconds() + 120;
  while (::kill(child, 0) == 0 && SteadySeconds() < until) std::this_thread::yield();
  EXPECT_LT(SteadySeconds(), until);
}

TEST(Runner, StopsWhenAsked) {
  std::atomic<bool> stop{true};
  CommandOptions options;
  options.stop = &stop;
  const CommandRun run = RunScript("sleep 300", {}, options);
  EXPECT_TRUE(run.interrupted);
}

TEST(Runner, DoesNotWaitForABackgroundProcessThatKeepsThePipe) {
  const double before = SteadySeconds();
  const CommandRun run = RunScript("sleep 600 & echo $!");
  EXPECT_EQ(run.status, 0);
  EXPECT_LT(SteadySeconds() - before, 300);
  ::kill(static_cast<pid_t>(std::atoi(run.out.Text().c_str())), SIGKILL);
}

TEST(Metric, PicksFirstLastOrMedian) {
  const std::string output = "time: 3 ms\nother\ntime: 1 ms time: 9 ms\n";
  const auto find = [&output](MetricPick pick) {
    const Result<MetricPattern> pattern = MetricPattern::Make("time: ([0-9.]+) ms", pick);
    EXPECT_TRUE(pattern.ok());
    return pattern.value().Find(output).value();
  };
  EXPECT_EQ(find(MetricPick::kFirst), 3);
  EXPECT_EQ(find(MetricPick::kLast), 9);
  EXPECT_EQ(find(MetricPick::kMedian), 3);
}

TEST(Metric, RefusesWhatItCannotUse) {
  EXPECT_FALSE(MetricPattern::Make("no group", MetricPick::kLast).ok());
  EXPECT_FALSE(MetricPattern::Make("(a)(b)", MetricPick::kLast).ok());
  EXPECT_FALSE(MetricPattern::Make("(unclosed", MetricPick::kLast).ok());
  EXPECT_FALSE(MetricPattern::Make("(a)\\1", MetricPick::kLast).ok());
  const Result<MetricPattern> pattern = MetricPattern::Make("t=(\\S+)", MetricPick::kLast);
  ASSERT_TRUE(pattern.ok());
  EXPECT_EQ(pattern.value().Find("nothing").status().code(), ErrorCode::kNotFound);
  for (const char* bad : {"t=abc", "t=-1", "t=0", "t=nan", "t=inf", "t=1x"}) {
    EXPECT_FALSE(pattern.value().Find(bad).ok()) << bad;
  }
}

TEST(Metric, APatternThatTriesEverythingEndsSoon) {
  const Result<MetricPattern> pattern = MetricPattern::Make("(?:a+)+(b)", MetricPick::kLast);
  ASSERT_TRUE(pattern.ok());
  EXPECT_FALSE(pattern.value().Find(std::string(3000, 'a')).ok());
}

TEST(BenchFigures, ComeBackAsTheyWereAmongOtherLines) {
  const BenchFigures made = FiguresOf({{1024, 10e-6}, {4096, 40e-6}});
  EXPECT_NEAR(made.seconds, 20e-6, 1e-12);
  const Result<BenchFigures> found =
      FindFigures("a log line\n" + EncodeFigures(made) + "\nanother\n");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found.value().seconds, made.seconds);
  EXPECT_EQ(found.value().sizes, made.sizes);
}

TEST(BenchFigures, ACallWithoutATimeIsAnError) {
  const BenchFigures made = FiguresOf({{1024, 10e-6}, {4096, 0}});
  EXPECT_EQ(made.seconds, 0);
  EXPECT_FALSE(FindFigures(EncodeFigures(made)).ok());
  EXPECT_FALSE(FindFigures(EncodeFigures(FiguresOf({}))).ok());
}

TEST(BenchFigures, DamagedLinesAreErrors) {
  for (const char* bad :
       {"", "x", "@diapason figures", "@diapason figures x", "@diapason figures nan",
        "@diapason figures -1", "@diapason figures 1 2",
        "@diapason figures 1 2:", "@diapason figures 1 2:x", "@diapason figures 1e999"}) {
    EXPECT_FALSE(FindFigures(bad).ok()) << bad;
  }
}

TEST(Knobs, AreReadFromTheCommandLineAndFromFiles) {
  const Result<std::vector<KnobValue>> some = ParseKnob("OMPI_MCA_x=1,two,");
  ASSERT_TRUE(some.ok());
  ASSERT_EQ(some.value().size(), 3u);
  EXPECT_EQ(some.value()[1].value, "two");
  for (const char* bad : {"", "NAME", "=1", "1A=2", "A B=1"}) {
    EXPECT_FALSE(ParseKnob(bad).ok()) << bad;
  }
  const Result<std::vector<KnobValue>> file = ParseKnobFile(
      "[[knob]]\nname = \"A\"\nvalues = [1, \"x,y\"]\n[[knob]]\nname = \"B\"\nvalues = [2]\n", "f");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file.value().size(), 3u);
  EXPECT_EQ(file.value()[1].value, "x,y");
  for (const char* bad :
       {"", "x", "[[knob]]\nname = \"A\"\n", "[[knob]]\nvalues = [1]\n",
        "[[knob]]\nname = \"A\"\nvalues = []\n", "[[knob]]\nname = \"A\"\nvalues = [[1]]\n",
        "[[knob]]\nname = \"A\"\nvalue = [1]\n"}) {
    EXPECT_FALSE(ParseKnobFile(bad, "f").ok()) << bad;
  }
}

TEST(Knobs, TheBuiltInListHasOnlyWhatIsRead) {
  std::vector<std::string> left_out;
  const std::vector<KnobValue> latency =
      BuiltInKnobs(Library::kNccl, 22809, Binds::kLatency, knobs::Catalogue::BuiltIn(), &left_out);
  ASSERT_FALSE(latency.empty());
  EXPECT_EQ(latency[0].name, "NCCL_PROGRESS_APPENDOP_FREQ");
  EXPECT_EQ(latency[0].value, "1");
  left_out.clear();
  // Before 2.16 there was no such variable.
  for (const KnobValue& candidate :
       BuiltInKnobs(Library::kNccl, 20800, Binds::kCpu, knobs::Catalogue::BuiltIn(), &left_out)) {
    EXPECT_NE(candidate.name, "NCCL_PROGRESS_APPENDOP_FREQ");
  }
  EXPECT_FALSE(left_out.empty());
  const MapEnvironment environment(std::map<std::string, std::string>{{"A", "1"}});
  EXPECT_EQ(WithoutPresent({{"A", "1", ""}, {"A", "2", ""}, {"A", "2", ""}}, environment, &left_out)
                .size(),
            1u);
}

TEST(Binding, TellsFromCpuUseAndSizes) {
  BindingFacts facts;
  facts.wall_s = 10;
  facts.cpu_s = 39;
  facts.cpus = 4;
  EXPECT_EQ(FindBinding(facts).binds, Binds::kCpu);
  facts.cpu_s = 5;
  EXPECT_EQ(FindBinding(facts).binds, Binds::kUnknown);
  facts.sizes_from = "the benchmark";
  facts.sizes = {{1024, 10e-6}, {2048, 10.5e-6}, {4096, 11e-6}};
  EXPECT_EQ(FindBinding(facts).binds, Binds::kLatency);
  facts.sizes = {{1 << 20, 1e-3}, {2 << 20, 2e-3}, {4 << 20, 4e-3}};
  EXPECT_EQ(FindBinding(facts).binds, Binds::kBandwidth);
  facts.sizes = {{100, 0}, {200, 0}, {1 << 24, 0}};
  EXPECT_EQ(FindBinding(facts).binds, Binds::kLatency);
  facts.sizes = {{100, 0}, {1 << 24, 0}};
  EXPECT_EQ(FindBinding(facts).binds, Binds::kUnknown);
}

}  // namespace
}  // namespace diapason::env_tune
