#include "env_tune/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "base/temporary_file.h"
#include "env_tune/report.h"

namespace diapason::env_tune {
namespace {

host::Machine SmallMachine() {
  host::Machine machine;
  machine.allowed_cpus = {0, 1};
  machine.threads = 2;
  machine.numa.push_back({0, "0-1", 0});
  return machine;
}

// A command whose printed figure depends on a variable and a counter kept in a file: no clock.
class SessionTest : public testing::Test {
 protected:
  TuneRequest Request(const std::string& script) {
    TuneRequest request;
    request.command = {"sh", "-c", script};
    request.measure = Measure::kPattern;
    request.pattern = "figure ([0-9.]+)";
    request.candidates = {{"FOO", "1", ""}, {"FOO", "2", ""}};
    request.timeout_s = 60;
    return request;
  }
  Result<TuneResult> Run(const TuneRequest& request, const std::atomic<bool>* stop = nullptr) {
    return RunTuning(
        request, SmallMachine(), [this](const std::string& line) { said_.push_back(line); }, stop);
  }
  // Counts runs; figures differ a little from run to run.
  std::string Script(const std::string& factor) const {
    const std::string counter = folder_.path() + "/count";
    return "n=$(cat " + counter + " 2>/dev/null || echo 0); n=$((n+1)); echo $n > " + counter +
           "; echo figure $(( (1000 + n % 7) * " + factor + " ))";
  }
  int Runs() const {
    std::ifstream file(folder_.path() + "/count");
    int count = 0;
    file >> count;
    return count;
  }

  TemporaryFolder folder_;
  std::vector<std::string> said_;
};

TEST_F(SessionTest, FindsAPlantedGain) {
  const TuneRequest request = Request(Script("$(( ${FOO:-0} == 2 ? 5 : 10 ))"));
  const Result<TuneResult> result = Run(request);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result.value().end, TuneEnd::kDone);
  EXPECT_EQ(result.value().experiment.Final(), (EnvVars{{"FOO", "2"}}));
  EXPECT_EQ(FinalText(result.value()), "export FOO=2\n");
  EXPECT_EQ(Runs(), result.value().experiment.runs() + 1);  // and the warm-up
  const std::string report = TuneReport(request, result.value(), SmallMachine());
  EXPECT_NE(report.find("confirmed on fresh runs"), std::string::npos);
  EXPECT_EQ(Checklist(request, result.value(), SmallMachine()).size(), 10u);
}

TEST_F(SessionTest, SaysSoWhereNothingHelps) {
  const TuneRequest request = Request(Script("10"));
  const Result<TuneResult> result = Run(request);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.value().experiment.Final().empty());
  EXPECT_NE(ConclusionText(request, result.value()).find("no significant gain"), std::string::npos);
}

TEST_F(SessionTest, ABrokenCommandIsShownWithItsError) {
  const Result<TuneResult> result = Run(Request("echo it is broken >&2; exit 7"));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().end, TuneEnd::kBroken);
  EXPECT_NE(result.value().broken.find("status 7"), std::string::npos);
  EXPECT_NE(result.value().broken.find("it is broken"), std::string::npos);
}

TEST_F(SessionTest, ACommandWithoutAFigureIsNotCalledBroken) {
  TuneRequest request = Request("echo first; echo hello");
  const Result<TuneResult> result = Run(request);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().end, TuneEnd::kBroken);
  EXPECT_TRUE(result.value().no_figure);
  EXPECT_NE(result.value().broken.find("no line of the output matches"), std::string::npos);
  EXPECT_NE(result.value().broken.find("its last line: hello"), std::string::npos);
  EXPECT_NE(ConclusionText(request, result.value()).find("gives no figure"), std::string::npos);
  request.command.back() = "echo figure 1.2.3";
  const Result<TuneResult> no_number = Run(request);
  ASSERT_TRUE(no_number.ok());
  EXPECT_TRUE(no_number.value().no_figure);
  EXPECT_NE(no_number.value().broken.find("'1.2.3'"), std::string::npos);
  request.command.back() = "exit 7";
  const Result<TuneResult> failed = Run(request);
  ASSERT_TRUE(failed.ok());
  EXPECT_FALSE(failed.value().no_figure);
}

TEST_F(SessionTest, OutputsThatCannotBeWrittenAreFoundBeforeAnyRun) {
  TuneRequest request = Request("echo figure 1");
  const std::string folder = folder_.path();
  EXPECT_TRUE(CheckOutputs(request, "").ok());
  EXPECT_TRUE(CheckOutputs(request, folder + "/r.md").ok());
  EXPECT_TRUE(CheckOutputs(request, "r.md").ok() || ::access(".", W_OK) != 0);
  EXPECT_FALSE(FileExists(folder + "/r.md"));
  const Status missing = CheckOutputs(request, folder + "/none/r.md");
  EXPECT_NE(missing.message().find("--output"), std::string::npos);
  EXPECT_FALSE(CheckOutputs(request, folder).ok());
  EXPECT_FALSE(CheckOutputs(request, folder + "/").ok());
  EXPECT_FALSE(CheckOutputs(request, "/dev/null").ok());
  request.state = folder + "/none/s.jsonl";
  EXPECT_NE(CheckOutputs(request, "").message().find("--state"), std::string::npos);
  request.state = folder + "/s.jsonl";
  EXPECT_TRUE(CheckOutputs(request, "").ok());
}

TEST_F(SessionTest, ASettingThatHangsIsGivenUp) {
  TuneRequest request = Request("[ \"$FOO\" = 1 ] && sleep 300; echo figure 5");
  request.timeout_s = 3;  // enough for those that end
  const Result<TuneResult> result = Run(request);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().experiment.comparisons()[0].verdict, KnobVerdict::kFailed);
}

TEST_F(SessionTest, GoesOnWhereItWasStopped) {
  // The same figures by run number, whoever asks: an interrupted tuning must end as a whole one.
  TuneRequest request = Request(Script("$(( ${FOO:-0} == 2 ? 5 : 10 ))"));
  request.state = folder_.path() + "/state.jsonl";
  const Result<TuneResult> whole = Run(request);
  ASSERT_TRUE(whole.ok());
  const std::string all = ReadFile(request.state, 1 << 20).value();

  // Cut after some runs, in the middle of a line.
  std::ofstream(request.state, std::ios::trunc) << all.substr(0, all.size() / 2);
  request.resume = true;
  const Result<TuneResult> resumed = Run(request);
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  EXPECT_GT(resumed.value().resumed_runs, 0);
  EXPECT_EQ(resumed.value().experiment.Final(), (EnvVars{{"FOO", "2"}}));
  const Result<TuneState> state = ReadState(request.state);
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(static_cast<int>(state.value().runs.size()), resumed.value().experiment.runs());

  // A complete one has nothing left to run but its warm-up.
  const int before = Runs();
  EXPECT_TRUE(Run(request).ok());
  EXPECT_EQ(Runs(), before + 1);

  TuneRequest other = request;
  other.command.back() += " ";
  const Result<TuneResult> refused = Run(other);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("another command"), std::string::npos);
}

TEST_F(SessionTest, AStateIsNotOverwritten) {
  TuneRequest request = Request("echo figure 1");
  request.state = folder_.path() + "/state.jsonl";
  std::ofstream(request.state) << "mine\n";
  EXPECT_FALSE(Run(request).ok());
  request.resume = true;
  EXPECT_FALSE(Run(request).ok());
  EXPECT_EQ(ReadFile(request.state, 100).value(), "mine\n");
}

TEST_F(SessionTest, AStopLeavesAUsableState) {
  std::atomic<bool> stop{false};
  TuneRequest request = Request(Script("10"));
  request.state = folder_.path() + "/state.jsonl";
  int lines = 0;
  const Result<TuneResult> stopped = RunTuning(
      request, SmallMachine(), [&](const std::string&) { stop.store(++lines == 3); }, &stop);
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped.value().end, TuneEnd::kInterrupted);
  request.resume = true;
  const Result<TuneResult> resumed = Run(request);
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  EXPECT_EQ(resumed.value().end, TuneEnd::kDone);
}

TEST_F(SessionTest, AsksTheJournalWhereThePluginIsLoaded) {
  // What a job with the plugin does: it writes down its calls.
  ASSERT_EQ(::setenv("NCCL_TUNER_PLUGIN", "/opt/lib/libnccl-tuner-diapason.so", 1), 0);
  TuneRequest request =
      Request("[ -n \"$DIAPASON_JOURNAL\" ] && cp " DIAPASON_SOURCE_DIR
              "/tests/data/journal_4ranks.jsonl \"$DIAPASON_JOURNAL\"; echo figure 5");
  request.design.baseline_runs = 2;
  const Result<TuneResult> result = Run(request);
  ::unsetenv("NCCL_TUNER_PLUGIN");
  ASSERT_TRUE(result.ok());
  EXPECT_NE(BindingText(result.value().binding).find("the journal: "), std::string::npos)
      << BindingText(result.value().binding);
}

TEST_F(SessionTest, ABudgetThatIsTooShortTriesNothing) {
  TuneRequest request = Request(Script("10"));
  request.budget_s = 1e-6;
  const Result<TuneResult> result = Run(request);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.value().stopped_comparing);
  EXPECT_EQ(result.value().experiment.comparisons()[0].verdict, KnobVerdict::kNotTried);
  EXPECT_TRUE(result.value().experiment.Final().empty());
}

TEST(TuneState, RefusesWhatIsNotOne) {
  const std::string head =
      R"({"diapason_env_tune":1,"fingerprint":"f","command":["x"],"binds":"cpu",)"
      R"("binds_stated":false,"evidence":[],"candidates":[]})"
      "\n";
  EXPECT_TRUE(ParseState(head, "s").ok());
  for (const char* bad : {"", "\n", "{}\n", "null\n", "[[[[[[\n", "{\"diapason_env_tune\":2}\n"}) {
    EXPECT_FALSE(ParseState(bad, "s").ok()) << bad;
  }
  EXPECT_FALSE(ParseState(head + "{}\n", "s").ok());
  EXPECT_FALSE(ParseState(head + R"({"phase":"x"})"
                                 "\n",
                          "s")
                   .ok());
  EXPECT_TRUE(ParseState(head + "{\"phase\":\"comp", "s").ok());  // cut short
}

}  // namespace
}  // namespace diapason::env_tune
