#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/recorded_table.h"
#include "journal/reader.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::vector<std::string> files;
  bool calls = false;
  bool tables = false;
  bool json = false;
};

std::string Asked(const journal::Record& record, Library library) {
  return ConfigText(library, static_cast<Collective>(record.collective),
                    {record.algorithm, record.protocol, record.channels});
}

std::string Default(const journal::Record& record, Library library) {
  return ConfigText(library, static_cast<Collective>(record.collective),
                    {record.default_algorithm, record.default_protocol, 0});
}

std::string Why(const journal::Record& record) {
  std::string why(ReasonSentence(record.reason));
  if (record.line > 0)
    why = Format("line %d", record.line) + (record.reason == Reason::kRow ? "" : ": " + why);
  if (record.reason == Reason::kRow && !record.applied) why += " (only observed)";
  return why;
}

void PrintCalls(const journal::Contents& contents) {
  report::Table table({"comm", "call", "collective", "size", "asked for", "library alone", "why"});
  table.SetAlign({report::Table::Align::kRight, report::Table::Align::kRight,
                  report::Table::Align::kLeft, report::Table::Align::kRight});
  for (const journal::Record& record : contents.records) {
    const Library library = contents.Find(record.communicator)->library;
    table.Add({Format("%u", record.communicator), Format("%u", record.call),
               std::string(CollectiveName(static_cast<Collective>(record.collective))),
               FormatBytes(record.bytes), Asked(record, library), Default(record, library),
               Why(record)});
  }
  std::printf("%s", table.Text().c_str());
}

// Many calls ask the same: one line each, with how often.
void PrintSummary(const journal::Contents& contents) {
  struct Key {
    uint32_t communicator;
    int collective;
    uint64_t bytes;
    std::string asked;
    std::string by_default;
    std::string why;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, size_t> counts;
  for (const journal::Record& record : contents.records) {
    const Library library = contents.Find(record.communicator)->library;
    ++counts[{record.communicator, record.collective, record.bytes, Asked(record, library),
              Default(record, library), Why(record)}];
  }
  report::Table table({"comm", "collective", "size", "calls", "asked for", "library alone", "why"});
  table.SetAlign({report::Table::Align::kRight, report::Table::Align::kLeft,
                  report::Table::Align::kRight, report::Table::Align::kRight});
  for (const auto& [key, count] : counts) {
    table.Add({Format("%u", key.communicator),
               std::string(CollectiveName(static_cast<Collective>(key.collective))),
               FormatBytes(key.bytes), Format("%zu", count), key.asked, key.by_default, key.why});
  }
  std::printf("%s", table.Text().c_str());
}

void PrintHead(const std::string& file, const journal::Contents& contents) {
  std::printf("%s: host %s, process %d, %s\n", file.c_str(), contents.host.c_str(), contents.pid,
              Count(contents.records.size(), "decision").c_str());
  for (const journal::Communicator& communicator : contents.communicators) {
    std::printf(
        "communicator %u: %s %s, tuner API v%d, %lld nodes, %lld ranks, mode %s, policy %s%s%s\n",
        communicator.number, std::string(LibraryTitle(communicator.library)).c_str(),
        communicator.library_version == 0
            ? "(unknown version)"
            : Format("%d.%d.%d", communicator.library_version / 10000,
                     communicator.library_version / 100 % 100, communicator.library_version % 100)
                  .c_str(),
        communicator.api, static_cast<long long>(communicator.shape.nodes),
        static_cast<long long>(communicator.shape.ranks), communicator.mode.c_str(),
        communicator.policy.empty() ? "none in use" : communicator.policy.c_str(),
        communicator.chain.empty() ? "" : ", chained to ", communicator.chain.c_str());
  }
}

ordered_json HeadJson(const std::string& file, const journal::Contents& contents) {
  ordered_json communicators = ordered_json::array();
  for (const journal::Communicator& communicator : contents.communicators) {
    communicators.push_back(ordered_json::parse(CommunicatorLine(communicator)));
  }
  ordered_json records = ordered_json::array();
  for (const journal::Record& record : contents.records) {
    records.push_back(
        ordered_json::parse(RecordLine(record, contents.Find(record.communicator)->library)));
  }
  return {{"file", file},
          {"host", contents.host},
          {"pid", contents.pid},
          {"dropped", contents.dropped},
          {"ended", contents.ended},
          {"bad_lines", contents.bad_lines},
          {"communicators", communicators},
          {"decisions", records}};
}

int RunShow(const Options& options) {
  ordered_json list = ordered_json::array();
  for (const std::string& file : options.files) {
    const Result<journal::Contents> read = journal::ReadJournal(file);
    if (!read.ok()) return Fail(read.status());
    const journal::Contents& contents = read.value();
    if (contents.bad_lines > 0) {
      Warn(Format("%s: %s left out, the first is line %d: %s", file.c_str(),
                  Count(contents.bad_lines, "line").c_str(), contents.first_bad_line,
                  contents.first_bad_why.c_str()));
    }
    if (contents.dropped > 0) {
      Warn(Format("%s: %llu decisions were dropped while the job ran", file.c_str(),
                  static_cast<unsigned long long>(contents.dropped)));
    }
    if (options.json) {
      list.push_back(HeadJson(file, contents));
      continue;
    }
    if (options.tables) {
      const std::vector<RecordedTable> tables = TablesOf(contents);
      if (tables.empty()) {
        return Fail(Invalid("'" + file +
                            "' holds no cost tables: write it with DIAPASON_JOURNAL_TABLES=1"));
      }
      std::printf("%s", TablesText(tables, contents.communicators.front().library).c_str());
      continue;
    }
    PrintHead(file, contents);
    std::printf("\n");
    if (options.calls) {
      PrintCalls(contents);
    } else {
      PrintSummary(contents);
    }
  }
  if (options.json) {
    std::printf("%s\n", list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
  return kExitFine;
}

}  // namespace

void AddJournal(CLI::App* parent, Run* run) {
  auto options = std::make_shared<Options>();
  CLI::App* journal = parent->add_subcommand("journal", "Read the journals that jobs have written");
  journal->require_subcommand(1);
  CLI::App* show = journal->add_subcommand(
      "show", "What was asked, what was chosen and why, counted by size and choice");
  show->add_option("FILE", options->files, "Journal files")->required();
  show->add_flag("--calls", options->calls, "Every call on a line of its own");
  show->add_flag("--tables", options->tables,
                 "The library's cost tables, for `diapason ask --table`");
  show->add_flag("--json", options->json, "Print JSON");
  show->callback([options, run] { *run = [options] { return RunShow(*options); }; });
}

}  // namespace diapason::cli
