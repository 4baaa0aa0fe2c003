#include "cli/framework/command_info.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/framework/completion.h"
#include "cli/framework/mistakes.h"
#include "cli/framework/rules.h"

namespace diapason::cli {
namespace {

OptionInfo Named(std::vector<std::string> names, std::string value, std::string text) {
  OptionInfo option;
  option.names = std::move(names);
  option.value = std::move(value);
  option.text = std::move(text);
  return option;
}

std::shared_ptr<CommandInfo> Below(CommandInfo* parent, const std::string& name) {
  auto command = std::make_shared<CommandInfo>();
  command->path = parent->path;
  command->path.push_back(name);
  command->text = "Do what " + name + " does";
  parent->below.push_back(command);
  return command;
}

class CommandInfoTest : public ::testing::Test {
 protected:
  CommandInfoTest() {
    tool_.path = {"tool"};
    tool_.text = "A tool";
    tool_.needs_command = true;
    play_ = Below(&tool_, "play");
    play_->options.push_back(Named({"-h", "--help"}, "", "Help"));
    OptionInfo count = Named({"-n", "--count"}, "N", "How often");
    count.bounds = "1 to 9";
    count.fallback = "2";
    play_->options.push_back(count);
    OptionInfo mode = Named({"--mode"}, "WORD", "Which way: up or down");
    mode.words = {"up", "down"};
    mode.not_with = {"--count"};
    play_->options.push_back(mode);
    OptionInfo file = Named({}, "FILE", "What it's about");
    file.required = file.several = true;
    play_->options.push_back(file);
    play_->examples.push_back({"tool play .hidden -n 3", "Three times"});
    play_->exit_statuses.push_back({7, "not in tune"});
    Below(&tool_, "secret")->hidden = true;
  }
  CommandInfo tool_;
  std::shared_ptr<CommandInfo> play_;
};

TEST_F(CommandInfoTest, HelpSaysAllThatWasDeclared) {
  const std::string help = HelpText(*play_, 80);
  EXPECT_TRUE(help.starts_with("Usage: tool play [OPTIONS] FILE...\n")) << help;
  EXPECT_NE(help.find("  -n, --count N               How often (1 to 9; default 2)\n"),
            std::string::npos);
  EXPECT_NE(help.find("      --mode WORD             Which way: up or down (not with --count)\n"),
            std::string::npos);
  EXPECT_NE(help.find("  7    not in tune\n"), std::string::npos);
  // --help comes behind all others.
  EXPECT_LT(help.find("--mode"), help.find("--help"));
}

TEST_F(CommandInfoTest, HelpIsWrapped) {
  play_->paragraphs.push_back(std::string(30, 'a') + " " + std::string(30, 'b') + " " +
                              std::string(90, 'c'));
  const std::string help = HelpText(*play_, 60);
  EXPECT_NE(help.find(std::string(30, 'a') + "\n" + std::string(30, 'b') + "\n" +
                      std::string(90, 'c') + "\n"),
            std::string::npos);
  // Narrower than this nothing can be read.
  EXPECT_EQ(HelpText(*play_, 3), HelpText(*play_, 50));
}

TEST_F(CommandInfoTest, LongExamplesGoOnWithABackslash) {
  const std::vector<std::string> lines = ExampleLines({"one two three four", ""}, 11);
  EXPECT_EQ(lines, (std::vector<std::string>{"one two \\", "    three \\", "    four"}));
}

TEST_F(CommandInfoTest, ManPagesHoldNoRequestsFromTexts) {
  play_->paragraphs.emplace_back(".so /etc/passwd");
  play_->paragraphs.emplace_back("'it' \\n `diapason --help`");
  const std::string page = ManPage(tool_, *play_, "1.2");
  EXPECT_NE(page.find(".TH TOOL\\-PLAY 1 \"\" \"diapason 1.2\""), std::string::npos);
  EXPECT_NE(page.find("\ntool\\-play \\- Do what play does\n"), std::string::npos);
  EXPECT_NE(page.find("\n\\&.so /etc/passwd\n"), std::string::npos);
  EXPECT_NE(page.find("\n\\(aqit\\(aq \\en \\fBdiapason \\-\\-help\\fR\n"), std::string::npos);
  EXPECT_NE(page.find("\n.BR tool (1)\n"), std::string::npos);
}

TEST_F(CommandInfoTest, HiddenCommandsAreNowhere) {
  EXPECT_EQ(AllCommands(tool_).size(), 2U);
  for (const std::string& text :
       {HelpText(tool_, 80), ManPage(tool_, tool_, "1"), BashCompletion(tool_),
        ZshCompletion(tool_), FishCompletion(tool_)}) {
    EXPECT_EQ(text.find("secret"), std::string::npos);
    EXPECT_NE(text.find("play"), std::string::npos);
  }
  EXPECT_NE(tool_.Find("secret"), nullptr);
  EXPECT_EQ(tool_.Find("other"), nullptr);
}

TEST_F(CommandInfoTest, CompletionKnowsKinds) {
  EXPECT_EQ(KindOf(play_->options[0]), ValueKind::kNone);
  EXPECT_EQ(KindOf(play_->options[1]), ValueKind::kOther);
  EXPECT_EQ(KindOf(play_->options[2]), ValueKind::kWords);
  EXPECT_EQ(KindOf(play_->options[3]), ValueKind::kFile);
  EXPECT_EQ(KindOf(Named({"--x"}, "FILE|PORT", "")), ValueKind::kFile);
  EXPECT_EQ(KindOf(Named({"--x"}, "DIR", "")), ValueKind::kFolder);
  EXPECT_EQ(ShortText("Only these: a, b (default c)"), "Only these: a, b");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
}

TEST_F(CommandInfoTest, AllStatusesInOrder) {
  const std::vector<ExitStatus> all = AllExitStatuses(*play_);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].status, 0);
  EXPECT_EQ(all[3].text, "not in tune");
}

TEST_F(CommandInfoTest, MistakesNameWhatWasMeant) {
  const CommandInfo* at = &tool_;
  EXPECT_EQ(WrongCommand({"plya"}, &at), "unknown command 'plya'; did you mean 'play'?");
  EXPECT_EQ(WrongCommand({}, &at), "no command; there are play");
  EXPECT_EQ(WrongCommand({"--help"}, &at), "");
  EXPECT_EQ(at, &tool_);
  EXPECT_EQ(WrongCommand({"play", "x"}, &at), "");
  EXPECT_EQ(at, play_.get());
  EXPECT_EQ(UnknownWord(*play_, "--mod=up"),
            "unknown option '--mod' of play; did you mean '--mode'?");
  EXPECT_EQ(UnknownWord(*play_, "--cuont"),
            "unknown option '--cuont' of play; did you mean '--count'?");
  EXPECT_EQ(UnknownWord(*play_, "--frobnicate"), "unknown option '--frobnicate' of play");
  EXPECT_EQ(UnknownWord(*play_, "x"), "'x' was not expected by play");
}

TEST(Rules, Times) {
  double seconds = 0;
  for (const char* text : {"90", "90s", "1.5m", "90000ms"}) {
    ASSERT_TRUE(ReadTime(text, &seconds)) << text;
    EXPECT_DOUBLE_EQ(seconds, 90) << text;
  }
  for (const char* text : {"", "s", "nan", "inf", "5 apples"})
    EXPECT_FALSE(ReadTime(text, &seconds));
  for (const double one : {0.5, 90.0, 120.0, 7200.0}) {
    ASSERT_TRUE(ReadTime(TimeText(one), &seconds));
    EXPECT_DOUBLE_EQ(seconds, one);
  }
  std::string given = "2m";
  EXPECT_EQ(TimeBetween(1, 60).wrong(given), "'2m' is not between 1s and 1m");
}

TEST(Rules, SharesAndNumbers) {
  double share = 0;
  ASSERT_TRUE(ReadShare("5%", &share));
  EXPECT_DOUBLE_EQ(share, 0.05);
  ASSERT_TRUE(ReadShare("0.05", &share));
  EXPECT_DOUBLE_EQ(share, 0.05);
  EXPECT_FALSE(ReadShare("%", &share));
  std::string given = "150%";
  EXPECT_NE(ShareBetween(0, 1).wrong(given), "");
  given = "nan";
  EXPECT_NE(Range(0.0, 1.0).wrong(given), "");
  given = "18446744073709551615";
  EXPECT_EQ(WholeNumber(false).wrong(given), "");
  given = "-1";
  EXPECT_NE(WholeNumber(false).wrong(given), "");
  EXPECT_EQ(WholeNumber(true).wrong(given), "");
  given = "adaptiv";
  EXPECT_EQ(OneOf({"exhaustive", "adaptive"}).wrong(given),
            "unknown value 'adaptiv'; did you mean 'adaptive'?");
}

}  // namespace
}  // namespace diapason::cli
