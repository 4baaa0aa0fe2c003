#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands/commands.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"

namespace diapason::cli {
namespace {

struct ManAsked {
  std::vector<std::string> words;
  std::string folder;
  std::shared_ptr<CommandInfo> tool;
};

Result<int> WriteAll(const ManAsked& asked) {
  std::error_code error;
  std::filesystem::create_directories(asked.folder, error);
  if (error) {
    return IoError("cannot create the folder '" + asked.folder + "': " + error.message());
  }
  size_t count = 0;
  for (const CommandInfo* command : AllCommands(*asked.tool)) {
    const std::string path =
        (std::filesystem::path(asked.folder) / (ManPageName(*command) + ".1")).string();
    RETURN_IF_ERROR(WriteFileAtomically(path, ManPage(*asked.tool, *command, kVersion)));
    ++count;
  }
  PrintOut("{} in {}\n", Count(count, "page"), asked.folder);
  return kExitFine;
}

// Checked in the callback: an unknown command is a usage error.
const CommandInfo* FindNamed(const ManAsked& asked) {
  const CommandInfo* command = asked.tool.get();
  for (const std::string& word : asked.words) {
    std::vector<std::string> names;
    for (const CommandInfo* one : command->Shown()) names.push_back(one->name());
    const CommandInfo* next = command->Find(word);
    if (next == nullptr || next->hidden) {
      const std::string of = command == asked.tool.get() ? "" : " of " + command->name();
      throw UsageError{
          "", "unknown command '" + word + "'" + of +
                  (names.empty() ? ", which has no subcommands" : Suggestion(word, names))};
    }
    command = next;
  }
  return command;
}

std::vector<std::string> CommandNames(const CommandInfo& tool) {
  std::vector<std::string> names;
  for (const CommandInfo* one : tool.Shown()) names.push_back(one->name());
  return names;
}

int PrintOne(const ManAsked& asked, const CommandInfo& command) {
  WriteOut(ManPage(*asked.tool, command, kVersion));
  return kExitFine;
}

}  // namespace

void AddHelp(CommandLine* parent, CommandAction* run) {
  auto asked = std::make_shared<ManAsked>();
  asked->tool = parent->info();
  CommandLine* command =
      parent->AddCommand("help", "Print the help text of the tool or of a command");
  command
      ->AddOption("COMMAND", asked->words,
                  "Words of the command, such as `env check`; without any, the tool itself")
      ->Words(CommandNames(*asked->tool));
  command->Example("diapason help tune", "The same as `diapason tune --help`");
  command->SeeAlso({"man"});
  command->Callback([asked, run] {
    const CommandInfo* const named = FindNamed(*asked);
    *run = [asked, named] {
      WriteOut(HelpText(*named, TerminalColumns()));
      return kExitFine;
    };
  });
}

void AddMan(CommandLine* parent, CommandAction* run) {
  auto asked = std::make_shared<ManAsked>();
  asked->tool = parent->info();
  CommandLine* command =
      parent->AddCommand("man", "Print the manual page of the tool or of a command");
  command->Describe(
      "The page is written in man(7) macros and has the same content as `--help`. Packagers write "
      "all pages with `--all`.");
  command->AddOption("COMMAND", asked->words,
                     "Words of the command, such as `env check`; without any, the tool itself");
  command->AddOption("--all", asked->folder, "Folder to write the pages of all commands to")
      ->TypeName("DIR");
  command->Example("diapason man env check | man -l -", "Read the page of `env check`");
  command->Example("diapason man --all /usr/local/share/man/man1", "Install all manual pages");
  command->SeeAlso({"completion"});
  command->Callback([asked, run] {
    if (!asked->folder.empty() && !asked->words.empty()) {
      throw UsageError{"", "--all writes every page; remove '" + asked->words.front() +
                               "' from the command line"};
    }
    const CommandInfo* const page = FindNamed(*asked);
    *run = [asked, page] {
      return asked->folder.empty() ? PrintOne(*asked, *page) : WriteAll(*asked);
    };
  });
}

void AddCompletion(CommandLine* parent, CommandAction* run) {
  auto shell = std::make_shared<std::string>();
  CommandLine* command = parent->AddCommand(
      "completion", "Print a completion script for a shell: commands, options and values");
  command->AddOption("SHELL", *shell, "Shell to complete for: bash, zsh or fish")
      ->Required()
      ->Check(OneOf({"bash", "zsh", "fish"}));
  command->Example("source <(diapason completion bash)", "Enable completion in ~/.bashrc");
  command->Example("source <(diapason completion zsh)",
                   "Enable completion in ~/.zshrc, after compinit");
  command->Example("diapason completion fish | source",
                   "Enable completion in ~/.config/fish/config.fish");
  command->SeeAlso({"man"});
  const std::shared_ptr<CommandInfo> tool = parent->info();
  command->Callback([shell, tool, run] {
    *run = [shell, tool] {
      FillWords(tool.get());
      const std::string text = *shell == "bash"  ? BashCompletion(*tool)
                               : *shell == "zsh" ? ZshCompletion(*tool)
                                                 : FishCompletion(*tool);
      WriteOut(text);
      return kExitFine;
    };
  });
}

}  // namespace diapason::cli
