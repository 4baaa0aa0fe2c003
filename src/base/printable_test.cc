#include "base/printable.h"

#include <gtest/gtest.h>

namespace diapason {
namespace {

TEST(PrintableTest, WhatMovesTheCursorIsEscaped) {
  EXPECT_EQ(Printable("\x1b[31mred\a"), "\\x1b[31mred\\x07");
  EXPECT_EQ(Printable("a\tb\nc\rd\x7f"), "a\\x09b\\x0ac\\x0dd\\x7f");
  EXPECT_EQ(PrintableLines("a\nb\x1b\n"), "a\nb\\x1b\n");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(PrintableTest, ControlCharactersThatAreNotAsciiAreEscaped) {
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(Printable("\x9b"
                      "2J"),
            "\\x9b2J")
      << "as a terminal without UTF-8 reads it";
  EXPECT_EQ(Printable("\xc0\x9b\xe2\x80"), "\\xc0\\x9b\\xe2\\x80") << "no UTF-8";
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half a pair";
  EXPECT_EQ(Printable("a\xe2\x80\xae"
                      "b"),
            "a\\u202eb");
}

TEST(PrintableTest, TextStaysAsItIs) {
  for (const char* text : {"", "plain ~text", "\xc3\xa9t\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableTest, JsonSaysTheSame) {
  EXPECT_EQ(PrintableJson("{\"a\":\"x\x7fy\xc2\x9bz\xc3\xa9\"}"),
            "{\"a\":\"x\\u007fy\\u009bz\xc3\xa9\"}");
}

TEST(JsonStringTest, NothingLeavesItsElement) {
  EXPECT_EQ(JsonString("</script><!--&'"), "\"\\u003c/script\\u003e\\u003c!--\\u0026\\u0027\"");
  EXPECT_EQ(JsonString("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(JsonString(std::string_view("\0\n\x7f", 3)), "\"\\u0000\\u000a\\u007f\"");
  EXPECT_EQ(JsonString("\xe2\x80\xa8|\xe2\x80\xa9"), "\"\\u2028|\\u2029\"");
}

TEST(JsonStringTest, WhatIsNoUtf8IsReplaced) {
  EXPECT_EQ(JsonString("\xc3\xa4"), "\"\xc3\xa4\"");
  EXPECT_EQ(JsonString("\xf0\x9f\x8e\xb5"), "\"\xf0\x9f\x8e\xb5\"");
  // Cut short, alone, too long a form, half of a pair, beyond the end.
  EXPECT_EQ(JsonString("\xc3"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(JsonString("\xff<"), "\"\xef\xbf\xbd\\u003c\"");
  EXPECT_EQ(JsonString("\xc0\xbc"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(JsonString("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(JsonString("\xf4\x90\x80\x80").find('\xf4'), std::string::npos);
}

TEST(JsonBytesTest, EveryTextIsValidJson) {
  EXPECT_EQ(JsonBytes(""), "\"\"");
  EXPECT_EQ(JsonBytes("plain /path.conf"), "\"plain /path.conf\"");
  EXPECT_EQ(JsonBytes("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(JsonBytes("\n\t\x01\x7f"), "\"\\u000a\\u0009\\u0001\\u007f\"");
  EXPECT_EQ(JsonBytes(std::string(1, '\0')), "\"\\u0000\"");
  EXPECT_EQ(JsonBytes("\xff\x80"), "\"\\u00ff\\u0080\"") << "a byte that is no UTF-8";
}

TEST(HtmlTextTest, MarkupIsText) {
  EXPECT_EQ(HtmlText("<b a=\"1\">'&"), "&#60;b a=&#34;1&#34;&#62;&#39;&#38;");
  EXPECT_EQ(HtmlText(std::string_view("a\0b\xff", 4)), "a\\x00b\xef\xbf\xbd");
  EXPECT_EQ(HtmlText("\x1b[31m\xc2\x9b\t\n"), "\\x1b[31m\\x9b\t\n");
}

}  // namespace
}  // namespace diapason
