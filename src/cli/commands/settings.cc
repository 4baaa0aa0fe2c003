#include "base/settings.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/secrets.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

struct SettingsOptions {
  bool json = false;
  bool markdown = false;
};

std::string Names(const SettingInfo& info) {
  return *info.other_name == '\0' ? info.name
                                  : std::string(info.name) + " (or " + info.other_name + ")";
}

void PrintMarkdown() {
  PrintOut(
      "# Settings\n\n"
      "Every setting is an environment variable. `diapason settings` prints the current values;\n"
      "`diapason settings --markdown` prints this page. A value that cannot be used makes the\n"
      "plugin step aside, with one line in the library's log.\n\n"
      "| name | default | values | description |\n|---|---|---|---|\n");
  for (const SettingInfo& info : SettingTable()) {
    std::string name = std::string("`") + info.name + "`";
    if (*info.other_name != '\0') name += std::string(", also `") + info.other_name + "`";
    PrintOut("| {} | {} | {} | {} |\n", name,
             *info.default_value == '\0' ? "(none)" : info.default_value, SettingBounds(info),
             info.text);
  }
}

void PrintJson(const Settings& settings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SettingInfo& info : SettingTable()) {
    list.push_back({{"name", info.name},
                    {"other_name", info.other_name},
                    {"value", MaskSecrets(info.name, settings.Text(info.id))},
                    {"source", settings.Source(info.id)},
                    {"default", info.default_value},
                    {"bounds", SettingBounds(info)},
                    {"text", info.text}});
  }
  const nlohmann::ordered_json whole{
      {"settings", list}, {"problems", settings.problems()}, {"warnings", settings.warnings()}};
  PrintOut("{}\n", JsonText(whole));
}

void PrintTable(const Settings& settings) {
  report::Table table({"setting", "value", "from", "default", "values"});
  for (const SettingInfo& info : SettingTable()) {
    std::string value = MaskSecrets(info.name, settings.Text(info.id));
    if (value.size() > 40) value = value.substr(0, 37) + "...";
    table.Add({Names(info), value.empty() ? "-" : value, settings.Source(info.id),
               *info.default_value == '\0' ? "-" : info.default_value, SettingBounds(info)});
  }
  PrintOut("{}\n", table.Text());
  for (const SettingInfo& info : SettingTable()) PrintOut("{}\n    {}\n", info.name, info.text);
}

}  // namespace

void AddSettings(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<SettingsOptions>();
  CommandLine* command = parent->AddCommand(
      "settings",
      "Show every setting: its value and where it comes from, default, bounds, meaning");
  Option* json = command->AddJson(options->json);
  command
      ->AddFlag("--markdown", options->markdown,
                "Print the reference page docs/formats/settings.md")
      ->Excludes(json);
  command->Example("diapason settings",
                   "Show the settings that the plugin would use in this environment");
  command->ExitStatus(kExitFailed, "a variable has an invalid value");
  command->SeeAlso({"knobs"});
  command->Callback([options, run] {
    *run = [options] {
      if (options->markdown) {
        PrintMarkdown();
        return kExitFine;
      }
      const Settings settings = Settings::Read(ProcessEnvironment());
      if (options->json) {
        PrintJson(settings);
      } else {
        PrintTable(settings);
      }
      for (const std::string& warning : settings.warnings()) Warn(warning);
      for (const std::string& problem : settings.problems()) {
        (void)Fail(Invalid(problem + "; the plugin steps aside"));
      }
      return settings.problems().empty() ? kExitFine : kExitFailed;
    };
  });
}

}  // namespace diapason::cli
