#pragma once

#include <string>
#include <string_view>

namespace diapason::cli {

// Everything that the tool prints passes here, so that a progress line on the terminal is erased
// before anything else is written. May be called from several threads.

// Writes to standard output. With --format markdown or csv only the tables in `text` are written,
// separated by empty lines.
void WriteOut(std::string_view text);
// Writes to standard error.
void WriteError(std::string_view text);

// Redraws the progress line on standard error, cut to the width of the terminal. REQUIRES:
// standard error is a terminal; `text` has no control characters.
void DrawLine(const std::string& text);
// Erases the progress line if one is drawn.
void EraseLine();

// The value of --format, which CommandLine::AddFormat declares: "text", "markdown" or "csv".
std::string& AskedFormat();
// Gives tables the width of the terminal, its colours, and the format that was asked for. Called
// after the command line has been read.
void PrepareOutput();

// Whether standard output gets colours. NO_COLOR switches them off, else CLICOLOR_FORCE (any value
// but 0) switches them on, else they are on if it is a terminal that is not "dumb".
bool ColoursOn();
// Width for running text: that of the terminal, at most 120; 80 if standard output is not a
// terminal.
int TerminalColumns();

}  // namespace diapason::cli
