#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "base/version.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/mistakes.h"

namespace diapason::cli {
namespace {

// Parses a command line and reports errors in our own wording.
class Reader {
 public:
  Reader(CLI::App* app, const CommandLine* line) : app_(app), line_(line) {}

  // Checks the words that name commands where one is required; false if one is wrong.
  bool CheckCommands(int argc, char** argv) {
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    command_ = line_->info().get();
    const std::string wrong = WrongCommand(words, &command_);
    return wrong.empty() || Wrong(wrong);
  }

  bool Wrong(const std::string& text) {
    Complain(text, "See " + command_->Words() + " --help");
    return false;
  }

  // The command at which the parser stopped.
  void FindCommand() {
    app_ = Deepest(app_);
    command_ = line_->info().get();
    std::vector<std::string> names;
    for (const CLI::App* app = app_; app->get_parent() != nullptr; app = app->get_parent()) {
      if (!app->get_name().empty()) names.push_back(app->get_name());
    }
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      if (const CommandInfo* below = command_->Find(*name); below != nullptr) command_ = below;
    }
  }

  const CommandInfo& command() const { return *command_; }

  // Takes what stands after "--" from a command that may be given a program: the number of words
  // that are left to parse.
  int CutProgram(int argc, char** argv) const {
    CommandInfo* command = line_->info().get();
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--" && command->may_take_command) {
        command->program.assign(argv + i + 1, argv + argc);
        if (command->program.empty()) {
          throw UsageError{"--", "a command has to follow"};
        }
        return i;
      }
      for (const auto& below : command->below) {
        if (below->name() == word) {
          command = below.get();
          break;
        }
      }
    }
    return argc;
  }

  std::string Explain(const CLI::ParseError& error) const {
    const std::string text = error.what();
    const std::string first = text.substr(0, text.find_first_of(": "));
    // The value of an unknown option looks like an unexpected argument.
    const std::vector<std::string> rest = app_->remaining(true);
    for (const std::string& word : rest) {
      if (word.starts_with('-') && word != "--") return UnknownWord(*command_, word);
    }
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
      return UnknownWord(*command_, rest.empty() ? "" : rest.front());
    }
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
      return first +
             (text.find("override") != std::string::npos ? " takes no value" : " needs a value");
    }
    if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
      const size_t word = text.find(" excludes ");
      if (word != std::string::npos) {
        return text.substr(0, word) + " and " + text.substr(word + 10) + " cannot be used together";
      }
    }
    if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
      const size_t word = text.find(" requires ");
      if (word != std::string::npos)
        return text.substr(0, word) + " needs " + text.substr(word + 10);
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
        (text.find("is required") == std::string::npos ||
         text.find("option") != std::string::npos)) {
      return OneIsMissing();
    }
    // Numbers have been checked before: only a flag with a value gets here.
    if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
      const size_t name = text.find("--");
      if (name != std::string::npos) {
        return text.substr(name, text.find(' ', name) - name) + " takes no value";
      }
    }
    return text;
  }

 private:
  static CLI::App* Deepest(CLI::App* app) {
    for (CLI::App* below : app->get_subcommands()) {
      if (!below->get_name().empty()) return Deepest(below);
    }
    return app;
  }

  // One of the options of a group is required.
  std::string OneIsMissing() const {
    for (const CLI::App* group : app_->get_subcommands([](const CLI::App* one) {
           return one->get_name().empty() && one->get_require_option_min() > 0;
         })) {
      std::vector<std::string> names;
      for (const CLI::Option* option : group->get_options()) {
        const std::string& name = option->get_lnames().front();
        if (name != "help") names.push_back("--" + name);
      }
      return "exactly one of " + Join(names, ", ") + " is required";
    }
    return "a required argument is missing";
  }

  CLI::App* app_;
  const CommandLine* line_;
  const CommandInfo* command_ = nullptr;
};

}  // namespace

int ReadCommandLine(int argc, char** argv, const std::string& text,
                    const std::function<void(CommandLine* app)>& declare) {
  CLI::App app(text, "diapason");
  app.set_version_flag("-V,--version", std::string("diapason ") + kVersion);
  auto info = std::make_shared<CommandInfo>();
  info->path = {"diapason"};
  info->text = text;
  OptionInfo help;
  help.names = {"-h", "--help"};
  help.text = "Print this text and exit";
  OptionInfo version;
  version.names = {"-V", "--version"};
  version.text = "Print the version and exit";
  info->options = {help, version};
  CommandLine line(&app, info);
  line.RequireCommand();
  declare(&line);

  Reader reader(&app, &line);
  if (!reader.CheckCommands(argc, argv)) return kExitUsage;
  try {
    app.parse(reader.CutProgram(argc, argv), argv);
  } catch (const CLI::CallForHelp&) {
    reader.FindCommand();
    WriteOut(HelpText(reader.command(), TerminalColumns()));
    return kExitFine;
  } catch (const CLI::CallForVersion& asked) {
    PrintOut("{}\n", asked.what());
    return kExitFine;
  } catch (const CLI::ParseError& error) {
    reader.FindCommand();
    (void)reader.Wrong(reader.Explain(error));
    return kExitUsage;
  } catch (const UsageError& error) {
    reader.FindCommand();
    (void)reader.Wrong(error.where.empty() ? error.text : error.where + ": " + error.text);
    return kExitUsage;
  }
  return -1;
}

}  // namespace diapason::cli
