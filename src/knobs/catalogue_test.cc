#include "knobs/catalogue.h"

#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/text.h"
#include "domain/library_version.h"
#include "knobs/tables.h"
#include "knobs/values.h"

namespace diapason::knobs {
namespace {

constexpr char kSmall[] = R"(group = "proxy"

[[knob]]
name = "NCCL_ONE"
type = "number"
nccl = "2.4.2-2.10.3, 2.14.3-"
rccl = "2.10.3"
default = "8"
rccl_default = "4"
nccl_defaults = ["2.4.2=16", "2.20.3=8"]
low = 1
high = 128
special = [-1]
text = "Counts things."
small = "Fewer for latency."
needs = ["NCCL_TWO=1"]
documented = true
takes_effect = "communicator"

[[knob]]
name = "NCCL_TWO"
type = "switch"
nccl = "2.4.2-"
group = "other"
text = "Turns it on."
)";

Result<Catalogue> ParseOne(const std::string& text) { return Catalogue::Parse({{"t.toml", text}}); }

std::string ErrorOf(const std::string& text) {
  const Result<Catalogue> parsed = ParseOne(text);
  return parsed.ok() ? "" : parsed.status().message();
}

TEST(CatalogueParse, ReadsEveryKey) {
  const Result<Catalogue> parsed = ParseOne(kSmall);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const Catalogue& catalogue = parsed.value();
  ASSERT_EQ(catalogue.knobs().size(), 2u);
  const Knob* one = catalogue.Find("NCCL_ONE");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->group, "proxy");
  EXPECT_EQ(one->special, std::vector<int64_t>{-1});
  EXPECT_EQ(one->needs, std::vector<std::string>{"NCCL_TWO=1"});
  EXPECT_EQ(one->advice.small, "Fewer for latency.");
  EXPECT_TRUE(one->documented);
  EXPECT_EQ(one->takes_effect, "communicator");
  EXPECT_EQ(AllowedText(*one), "1 to 128, or -1");
  EXPECT_EQ(SpansText(one->nccl.spans), "2.4.2 to 2.10.3, since 2.14.3");
  EXPECT_EQ(SpansText(one->rccl.spans), "2.10.3");
  EXPECT_TRUE(one->nccl.Reads(0));
  EXPECT_FALSE(one->rccl.Reads(0));
  EXPECT_FALSE(one->nccl.Reads(21212));
  EXPECT_TRUE(one->nccl.Reads(20402));
  EXPECT_TRUE(one->nccl.Reads(23007));
  EXPECT_EQ(one->nccl.DefaultAt(0), "8");
  EXPECT_EQ(one->nccl.DefaultAt(21805), "16");
  EXPECT_EQ(one->nccl.DefaultAt(22003), "8");
  EXPECT_EQ(one->rccl.DefaultAt(0), "4");
  const Knob* two = catalogue.Find("NCCL_TWO");
  ASSERT_NE(two, nullptr);
  EXPECT_EQ(two->group, "other");
  EXPECT_EQ(two->takes_effect, "process");
  EXPECT_FALSE(two->rccl.Ever());
  EXPECT_EQ(SpansText(two->rccl.spans), "never");
}

// A plugin's variable needs no versions, and a library can have words of its own.
TEST(CatalogueParse, ReadersAndWordsOfOneLibrary) {
  const Result<Catalogue> parsed = ParseOne(R"(group = "plugin"
reader = "a plugin"
[[knob]]
name = "A_SWITCH"
type = "switch"
default = "1"
text = "Of the plugin."
[[knob]]
name = "NCCL_LEVEL"
type = "word"
reader = "another plugin"
nccl = "2.4.2-"
values = ["LOW", "HIGH"]
nccl_values = ["2.32.3=MIDDLE"]
text = "Of both."
)");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const Knob& of_plugin = parsed.value().knobs()[0];
  EXPECT_EQ(of_plugin.reader, "a plugin");
  EXPECT_TRUE(of_plugin.OnlyOfPlugin());
  const Knob& of_both = parsed.value().knobs()[1];
  EXPECT_EQ(of_both.reader, "another plugin");
  EXPECT_FALSE(of_both.OnlyOfPlugin());
  EXPECT_EQ(of_both.ValuesOf(Library::kNccl, 23102), (std::vector<std::string>{"LOW", "HIGH"}));
  EXPECT_EQ(of_both.ValuesOf(Library::kNccl, 23203).back(), "MIDDLE");
  EXPECT_EQ(of_both.ValuesOf(Library::kRccl, 23203).size(), 2u);
  EXPECT_EQ(AllowedText(of_both), "LOW or HIGH, MIDDLE (NCCL 2.32.3)");
}

std::string Knobs(const std::string& lines) {
  return "group = \"g\"\n[[knob]]\nname = \"NCCL_X\"\ntype = \"number\"\ntext = \"T.\"\n" + lines;
}

// Every error says where it is.
TEST(CatalogueParse, ErrorsNameTheirLine) {
  struct Case {
    const char* lines;
    const char* error;
  };
  const Case cases[] = {
      {"nccl = \"2.4.2-\"\nlow = \"a\"", "t.toml:7:7: NCCL_X: 'low' is not a whole number"},
      {"nccl = \"two\"", "t.toml:6:8: NCCL_X: 'two' is no version"},
      {"nccl = \"2.4.2-two\"", "t.toml:6:8: NCCL_X: 'two' is no version"},
      {"nccl = \"2.14.3-2.4.2\"", "t.toml:6:8: NCCL_X: '2.14.3-2.4.2' does not go from old"},
      {"nccl = \"2.4.2-, 2.9.6-\"", "t.toml:6:8: NCCL_X: '2.4.2-, 2.9.6-' does not go from old"},
      {"nccl = \"2.4.2-\"\nnccl_defaults = [\"14\"]", "t.toml:7:17: NCCL_X: '14' is no earlier"},
      {"nccl = \"2.4.2-\"\ndefault = \"1\"\nnccl_defaults = [\"2.4.2=2\"]",
       "t.toml:8:17: NCCL_X: the newest of the defaults, '2', is not the default '1'"},
      {"nccl = \"2.4.2-\"\ndefault = \"1\"\nnccl_defaults = [\"2.9.6=2\", \"2.4.2=1\"]",
       "t.toml:8:17: NCCL_X: earlier defaults go from old to new"},
      {"nccl = \"2.4.2-\"\nvalues = \"a\"", "t.toml:7:10: NCCL_X: 'values' is not a list"},
      {"nccl = \"2.4.2-\"\nnccl_values = [\"ATTN\"]",
       "t.toml:7:15: NCCL_X: 'ATTN' is no value with its version"},
      {"exists = false\nreader = \"p\"", "NCCL_X: it does not exist, and yet"},
      {"nccl = \"2.4.2-\"\nvalues = [1]", "'values' has something that is no text"},
      {"nccl = \"2.4.2-\"\nspecial = [\"1\"]", "'special' has something that is no whole number"},
      {"nccl = \"2.4.2-\"\nlow = 2\nhigh = 1", "NCCL_X: 'low' is above 'high'"},
      {"nccl = \"2.4.2-\"\nneed = []",
       "t.toml:7:1: a knob has no key 'need'; did you mean 'needs'?"},
      {"", "NCCL_X: neither 'nccl' nor 'rccl' says which versions read it"},
      {"exists = false\nnccl = \"2.4.2-\"", "NCCL_X: it does not exist, and yet"},
      {"nccl = \"2.4.2-\"\ntakes_effect = \"now\"", "'takes_effect' is 'now'"},
      {"nccl = \"2.4.2-\"\ndocumented = 1", "'documented' is neither true nor false"},
      {"nccl = \"2.4.2-\"\n[[knob]]\nname = \"NCCL_A\"\ntype = \"text\"\nnccl = \"2.4.2\"\ntext = "
       "\"T\"",
       "t.toml:7:1: NCCL_A stands behind NCCL_X"},
  };
  for (const Case& one : cases) {
    const std::string error = ErrorOf(Knobs(one.lines));
    EXPECT_NE(error.find(one.error), std::string::npos) << one.lines << "\n  -> " << error;
    EXPECT_EQ(error.find("t.toml:"), 0u) << error;
  }
  EXPECT_NE(
      ErrorOf("[[knob]]\nname = \"NCCL_X\"\ntype = \"word\"\ntext = \"T\"\nnccl = \"2.4.2\"\n")
          .find("a word needs 'values'"),
      std::string::npos);
  EXPECT_NE(
      ErrorOf("[[knob]]\nname = \"nccl x\"\ntype = \"text\"\ntext = \"T\"\nnccl = \"2.4.2\"\n")
          .find("is no name of a variable"),
      std::string::npos);
  EXPECT_NE(ErrorOf("[[knob]]\nname = \"X\"\ntype = \"text\"\ntext = \"T\"\nnccl = \"2.4.2\"\n")
                .find("has no group"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[[knob]]\nname = \"X\"\ntype = \"nomber\"\n").find("did you mean 'number'"),
            std::string::npos);
  EXPECT_NE(ErrorOf("group = \"g\"\n").find("has no 'knob'"), std::string::npos);
  EXPECT_NE(ErrorOf("[[knob]\n"), "");
  const Result<Catalogue> twice = Catalogue::Parse({{"a", kSmall}, {"b", kSmall}});
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.status().message().find("NCCL_ONE is in two tables"), std::string::npos);
}

TEST(Catalogue, SearchesNamesAndTextsInAnyCase) {
  const Catalogue catalogue = ParseOne(kSmall).value();
  EXPECT_EQ(catalogue.Search({"LATENCY", "proxy"}).size(), 1u);
  EXPECT_EQ(catalogue.Search({"nccl_"}).size(), 2u);
  EXPECT_TRUE(catalogue.Search({"latency", "other"}).empty());
  EXPECT_EQ(catalogue.Find("nccl_one"), nullptr);
}

TEST(Catalogue, NearestNames) {
  const Catalogue& catalogue = Catalogue::BuiltIn();
  const auto nearest = [&catalogue](const char* name) {
    return catalogue.Nearest(name, Library::kNccl, 22809);
  };
  EXPECT_EQ(nearest("NCCL_DEBGU"), "NCCL_DEBUG");
  EXPECT_EQ(nearest("NCLL_DEBUG"), "NCCL_DEBUG");
  EXPECT_EQ(nearest("NCCL_MIN_CHANNELS"), "NCCL_MIN_NCHANNELS");
  EXPECT_EQ(nearest("NCCL_SOCKET_IFNAMES"), "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(nearest("NCCL_DISABLE_P2P"), "NCCL_P2P_DISABLE");
  EXPECT_EQ(nearest("NCCL_IB_QPS"), "NCCL_IB_QPS_PER_CONNECTION");
  EXPECT_EQ(nearest("RCCL_ALGO"), "NCCL_ALGO");
  // Too far to be a slip.
  EXPECT_EQ(nearest("NCCL_MY_PLUGIN_BANDWIDTH"), "");
  EXPECT_EQ(nearest("NCCL_XYZZY"), "");
  EXPECT_EQ(nearest(""), "");
  EXPECT_EQ(nearest(std::string(5000, 'A').c_str()), "");
  // A variable that this version does not read is not suggested.
  EXPECT_EQ(catalogue.Nearest("NCCL_CREATE_THREAD_CONTEX", Library::kNccl, 23007), "");
  EXPECT_EQ(catalogue.NearestOfAll("NCCL_CREATE_THREAD_CONTEX"), "NCCL_CREATE_THREAD_CONTEXT");
}

// The tables that are part of the program.
TEST(BuiltInTables, EveryOneParses) {
  ASSERT_GT(BuiltInTables().size(), 5u);
  for (const auto& table : BuiltInTables()) {
    const Result<Catalogue> parsed = Catalogue::Parse({table});
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  }
  const Result<Catalogue> all = Catalogue::Parse(BuiltInTables());
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all.value().knobs().size(), Catalogue::BuiltIn().knobs().size());
  EXPECT_GT(all.value().knobs().size(), 300u);
}

TEST(BuiltInTables, NamesThatAreMentionedExist) {
  const Catalogue& catalogue = Catalogue::BuiltIn();
  for (const Knob& knob : catalogue.knobs()) {
    for (const std::string& need : knob.needs) {
      const size_t equals = need.find('=');
      const Knob* other = catalogue.Find(need.substr(0, equals));
      ASSERT_NE(other, nullptr) << knob.name << " needs " << need;
      if (equals == std::string::npos) continue;
      EXPECT_TRUE(JudgeValue(*other, need.substr(equals + 1), {}).empty())
          << knob.name << " needs " << need;
    }
    for (const std::string& rival : knob.conflicts) {
      EXPECT_NE(catalogue.Find(rival), nullptr) << knob.name << " conflicts with " << rival;
      EXPECT_NE(rival, knob.name);
    }
    // A successor is a sentence; what looks like a variable in it is one.
    std::string word;
    for (const char c : knob.successor + " ") {
      if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') {
        word += c;
        continue;
      }
      if (word.starts_with("NCCL_") || word.starts_with("RCCL_")) {
        const Knob* next = catalogue.Find(word);
        ASSERT_NE(next, nullptr) << knob.name << ": " << knob.successor;
        EXPECT_TRUE(next->exists) << knob.name << ": " << knob.successor;
      }
      word.clear();
    }
  }
}

TEST(BuiltInTables, DefaultsAreAllowedValues) {
  for (const Knob& knob : Catalogue::BuiltIn().knobs()) {
    for (const Library library : {Library::kNccl, Library::kRccl}) {
      const KnobReading& reading = knob.Of(library);
      if (!reading.Ever()) continue;
      const std::string& text = reading.default_text;
      if (text.empty() || knob.type == KnobType::kText) continue;
      // RCCL logs errors if it is not set, but has no word for that level.
      if (knob.name == "NCCL_DEBUG" && text == "ERROR") {
        EXPECT_NE(knob.note.find("it cannot be written"), std::string::npos);
        continue;
      }
      if (knob.type == KnobType::kNumber || knob.type == KnobType::kSwitch) {
        const NumberReading number = ReadNumber(text);
        EXPECT_TRUE(number.digits && number.rest.empty()) << knob.name << " default " << text;
        // Negative ones stand for "as found best" and need not be in the range.
        if (number.value < 0) continue;
      }
      for (const ValueVerdict& verdict : JudgeValue(knob, text, {library, 0, nullptr})) {
        EXPECT_LE(verdict.severity, Severity::kNote) << knob.name << ": " << verdict.title;
      }
    }
  }
}

TEST(BuiltInTables, NoVersionBeyondTheNewestKnown) {
  for (const Knob& knob : Catalogue::BuiltIn().knobs()) {
    for (const Library library : {Library::kNccl, Library::kRccl}) {
      for (const VersionSpan& span : knob.Of(library).spans) {
        EXPECT_LE(span.first, Catalogue::NewestKnown(library)) << knob.name;
        EXPECT_LE(span.last, Catalogue::NewestKnown(library)) << knob.name;
        EXPECT_GE(span.first, 20000) << knob.name;
      }
    }
    for (const Library library : {Library::kNccl, Library::kRccl}) {
      EXPECT_LE(Catalogue::NewestComplete(library), Catalogue::NewestKnown(library));
    }
    EXPECT_FALSE(knob.text.empty()) << knob.name;
    EXPECT_EQ(knob.text.find('\n'), std::string::npos) << knob.name;
  }
}

// Lines "NAME<TAB>nccl 2.30.7: read|absent<TAB>rccl 2.28.3: read|absent<TAB>verdict", found by
// looking into the sources.
TEST(BuiltInTables, AgreeWithTheSources) {
  const Result<std::string> text =
      ReadFile(std::string(DIAPASON_SOURCE_DIR) + "/tests/data/knobs/seed_variables.txt", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status().message();
  size_t count = 0;
  for (const std::string_view line : Split(text.value(), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string_view> cells = Split(line, '\t');
    ASSERT_GE(cells.size(), 3u) << line;
    const Knob* knob = Catalogue::BuiltIn().Find(cells[0]);
    ASSERT_NE(knob, nullptr) << line;
    ASSERT_TRUE(cells[1].starts_with("nccl 2.30.7: ")) << line;
    ASSERT_TRUE(cells[2].starts_with("rccl 2.28.3: ")) << line;
    EXPECT_EQ(knob->nccl.Reads(23007), cells[1].ends_with("read")) << line;
    EXPECT_EQ(knob->rccl.Reads(22803), cells[2].ends_with("read")) << line;
    ++count;
  }
  EXPECT_GE(count, 30u);
}

}  // namespace
}  // namespace diapason::knobs
