#include "cli/commands/data/data.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "dataset/words.h"
#include "domain/vocabulary.h"

namespace diapason::cli {
namespace {

void AddFilter(CommandLine* command, DataFilter* filter) {
  command->Heading("Sample filter");
  command->AddOption("--collective", filter->collective, "Use only samples of this collective")
      ->TypeName("NAME")
      ->Words(MeasuredCollectives())
      ->Check(ReadBy(dataset::ParseCollectiveWord));
  command->AddOption("--ranks", filter->ranks, "Use only samples on this number of ranks")
      ->Check(Positive());
  command->AddOption("--nodes", filter->nodes, "Use only samples on this number of nodes")
      ->Check(Positive());
  command->AddOption("--size", filter->bytes, "Use only samples of this size: 4M, 512K, 1024")
      ->TypeName("SIZE")
      ->Check(ReadBy(ParseBytes));
  command
      ->AddOption("--library", filter->library,
                  "Use only samples of this library: nccl, rccl, gloo, openmpi")
      ->TypeName("NAME")
      ->Words(LibraryWords())
      ->Check(ReadBy(ParseLibrary));
  command
      ->AddOption("--kind", filter->kind, "Use only samples of this kind: collective or iteration")
      ->TypeName("WORD")
      ->Check(OneOf({"collective", "iteration"}));
  command->AddOption("--run", filter->run, "Use only samples of this run")->TypeName("ID");
  Option* simulated =
      command->AddFlag("--simulated", filter->simulated, "Use only simulated samples");
  command->AddFlag("--measured", filter->measured, "Use only measured samples")
      ->Excludes(simulated);
}

void AddImportGroup(CommandLine* command, DataImport* asked) {
  dataset::ImportOptions& options = asked->options;
  CommandLine* what = command->AddGroup("Metadata that the files do not contain",
                                        "If a file contains the value, it must be the same.");
  what->AddOption("--collective", options.collective, "Collective that was measured")
      ->TypeName("NAME")
      ->Words(MeasuredCollectives())
      ->Check(ReadBy(dataset::ParseCollectiveWord));
  what->AddOption("--size", asked->bytes, "Message size, for --iterations")
      ->TypeName("SIZE")
      ->Check(ReadBy(ParseBytes));
  what->AddOption("--ranks", options.ranks, "Number of ranks")->Check(Positive());
  what->AddOption("--nodes", options.nodes, "Number of nodes")->Check(Positive());
  what->AddOption("--datatype", options.type, "Data type of the elements")
      ->TypeName("NAME")
      ->Words(DataTypeWords())
      ->Check(ReadBy(dataset::ParseTypeWord))
      ->Default("float");
  what->AddOption("--algorithm", options.algorithm, "Algorithm that was forced")->TypeName("NAME");
  what->AddOption("--protocol", options.protocol, "Protocol that was forced")->TypeName("NAME");
  what->AddOption("--channels", options.channels, "Number of channels that was forced")
      ->Check(Range(0, 1024));
  what->AddOption("--env", options.environment, "Environment variable that was set")
      ->TypeName("NAME=VALUE")
      ->OneEach();
  what->AddOption("--library", options.library,
                  "Library that was measured: nccl, rccl, gloo or openmpi")
      ->TypeName("NAME")
      ->Words(LibraryWords())
      ->Check(ReadBy(ParseLibrary));
  what->AddOption("--library-version", options.library_version,
                  "Version of the library, such as 2.28.9")
      ->TypeName("VERSION");
  what->AddOption("--gpu", options.gpu, "GPUs of a node, such as \"8x NVIDIA H100 80GB HBM3\"");
  what->AddOption("--workload", options.workload, "Workload that the iterations belong to");
  what->AddOption("--kind", asked->kind,
                  "Kind of the samples in reward lines: iteration or collective")
      ->TypeName("WORD")
      ->Check(OneOf({"collective", "iteration"}))
      ->Default("iteration");
}

void AddImport(CommandLine* data, CommandAction* run) {
  auto asked = std::make_shared<DataImport>();
  CommandLine* command = data->AddCommand(
      "import", "Import logs of nccl-tests, tables of measurements, reward lines and journals");
  command->Describe(
      "Imports logs of nccl-tests and rccl-tests, tables of measurements, reward lines, and the "
      "output of `data export --format csv`. Each file is recognised by its content.");
  command->AddOption("FILE", asked->files, "Files to import");
  command
      ->AddOption("--store", asked->store,
                  "Store to add the samples to; created if it does not exist")
      ->TypeName("STORE")
      ->Required();
  command
      ->AddOption("--iterations", asked->iterations,
                  "File with the time of one iteration in ms per line; needs --collective, --size "
                  "and --ranks")
      ->TypeName("FILE")
      ->OneEach();
  command
      ->AddOption("--journal", asked->journals,
                  "Journals of the plugin from all ranks of one job: imports the timed calls, or "
                  "else the learning results")
      ->TypeName("FILE");
  AddImportGroup(command, asked.get());
  command->Example("diapason data import --store my.db nccl-tests.log",
                   "Import a log of nccl-tests");
  command->Example("diapason data import --store my.db --journal j.*",
                   "Import the journals of a job");
  command->Callback([asked, run] {
    if (asked->files.empty() && asked->iterations.empty() && asked->journals.empty()) {
      throw UsageError{"",
                       "nothing to import: give a file, --iterations FILE or --journal FILE..."};
    }
    *run = [asked] { return RunDataImport(*asked); };
  });
}

void AddExport(CommandLine* data, CommandAction* run) {
  auto asked = std::make_shared<DataExport>();
  CommandLine* command = data->AddCommand("export", "Write samples as a table or as JSON");
  command->AddOption("STORE", asked->store, "Store to read")->Required();
  command
      ->AddOption("--format", asked->format,
                  "Output format. csv: every sample, can be imported again; optimized: "
                  "optimized_metrics.csv with the best configuration of every size; json: every "
                  "sample as JSON")
      ->TypeName("WORD")
      ->Check(OneOf({"csv", "optimized", "json"}))
      ->Default("csv");
  command
      ->AddOption("--tolerance", asked->tolerance,
                  "For --format optimized: configurations within this share of the best count as "
                  "equal, and the one with the fewest channels is chosen")
      ->TypeName("SHARE")
      ->Check(ShareOf("tolerance"))
      ->Default("5%");
  command->AddOutput(asked->output, "File to write")->Default("standard output");
  AddFilter(command, &asked->filter);
  command->Example("diapason data export my.db -o samples.csv", "Export every sample");
  command->Example("diapason data export my.db --format optimized --ranks 8");
  command->Callback([asked, run] { *run = [asked] { return RunDataExport(*asked); }; });
}

void AddShow(CommandLine* data, CommandAction* run) {
  auto asked = std::make_shared<DataShow>();
  CommandLine* command = data->AddCommand(
      "show", "Show the runs of a store and compare the configurations of every size");
  command->AddOption("STORE", asked->store, "Store to read")->Required();
  command->AddFlag("--all", asked->all, "Show every configuration, not only the eight best");
  command->AddFlag("--samples", asked->samples, "Also show every single sample");
  command->AddJson(asked->json);
  command->AddFormat();
  AddFilter(command, &asked->filter);
  command->Example("diapason data show diapason.db", "Show the results of a sweep");
  command->Example("diapason data show diapason.db --collective allreduce --size 64K --all");
  command->Callback([asked, run] { *run = [asked] { return RunDataShow(*asked); }; });
}

void AddCheck(CommandLine* data, CommandAction* run) {
  auto asked = std::make_shared<DataCheck>();
  CommandLine* command = data->AddCommand("check", "Find samples that are not trustworthy");
  command->AddOption("STORE", asked->store, "Store to check")->Required();
  command->AddJson(asked->json);
  AddFilter(command, &asked->filter);
  command->Example("diapason data check diapason.db");
  command->ExitStatus(kExitFailed, "a sample is not trustworthy, or the store cannot be read");
  command->Callback([asked, run] { *run = [asked] { return RunDataCheck(*asked); }; });
}

void AddMerge(CommandLine* data, CommandAction* run) {
  auto asked = std::make_shared<DataMerge>();
  CommandLine* command = data->AddCommand(
      "merge", "Merge several stores; samples that exist already are not added twice");
  command
      ->AddOption("STORE", asked->stores,
                  "Stores to merge; without -o the others are merged into the first")
      ->Required();
  command->AddOption("-o,--output", asked->output, "Store to merge all others into")
      ->TypeName("STORE");
  command->Example("diapason data merge node*.db -o all.db", "Merge many stores into one");
  command->Callback([asked, run] {
    if (asked->output.empty() && asked->stores.size() < 2) {
      throw UsageError{"", "merging needs two stores, or -o"};
    }
    *run = [asked] { return RunDataMerge(*asked); };
  });
}

Status ToStoreFilter(const DataFilter& asked, dataset::Filter* filter) {
  filter->run = asked.run;
  if (!asked.collective.empty()) {
    ASSIGN_OR_RETURN(const std::string name, dataset::ParseCollectiveWord(asked.collective));
    filter->collective = name;
  }
  if (!asked.library.empty()) {
    ASSIGN_OR_RETURN(const Library library, ParseLibrary(asked.library));
    filter->library = LibraryName(library);
  }
  if (asked.ranks > 0) filter->ranks = asked.ranks;
  if (asked.nodes > 0) filter->nodes = asked.nodes;
  if (!asked.bytes.empty()) {
    ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(asked.bytes));
    filter->bytes = bytes;
  }
  if (!asked.kind.empty()) {
    filter->kind = asked.kind == "iteration" ? dataset::Point::Kind::kIteration
                                             : dataset::Point::Kind::kCollective;
  }
  return {};
}

std::string WhatThereIs(const dataset::StoreContents& contents) {
  std::vector<std::string> contexts;
  for (const dataset::StoredSample& record : contents.records) {
    const dataset::Point& point = record.sample.point;
    const std::string text = Format("{} on {} ranks", point.collective, point.ranks);
    if (std::find(contexts.begin(), contexts.end(), text) != contexts.end()) continue;
    contexts.push_back(text);
    if (contexts.size() == 8) {
      contexts.emplace_back("...");
      break;
    }
  }
  return contexts.empty() ? "the store holds no samples" : "there is " + Join(contexts, ", ");
}

}  // namespace

Result<dataset::StoreContents> ReadStore(const std::string& path, const DataFilter& asked) {
  dataset::Filter filter;
  RETURN_IF_ERROR(ToStoreFilter(asked, &filter));
  ASSIGN_OR_RETURN(std::unique_ptr<dataset::SampleStore> store,
                   dataset::SampleStore::Open(path, dataset::SampleStore::Access::kRead));
  ASSIGN_OR_RETURN(dataset::StoreContents read, store->Read(filter));
  dataset::StoreContents& all = read;
  const bool selects = !asked.run.empty() || !asked.collective.empty() || !asked.library.empty() ||
                       !asked.bytes.empty() || !asked.kind.empty() || asked.ranks > 0 ||
                       asked.nodes > 0 || asked.simulated || asked.measured;
  if (!selects) return read;
  dataset::StoreContents kept;
  std::vector<size_t> place(all.runs.size(), all.runs.size());
  for (dataset::StoredSample& record : all.records) {
    const dataset::SampleRun& run = all.runs[record.run];
    if (asked.simulated && !run.machine.simulated) continue;
    if (asked.measured && run.machine.simulated) continue;
    if (place[record.run] == all.runs.size()) {
      place[record.run] = kept.runs.size();
      kept.runs.push_back(run);
    }
    kept.records.push_back({place[record.run], std::move(record.sample)});
  }
  if (kept.records.empty()) {
    ASSIGN_OR_RETURN(const dataset::StoreContents everything, store->Read());
    return NotFound("nothing in store '" + path + "' matches; " + WhatThereIs(everything));
  }
  return kept;
}

Result<int> RunDataMerge(const DataMerge& asked) {
  std::vector<std::string> sources = asked.stores;
  std::string target = asked.output;
  if (target.empty()) {
    target = sources.front();
    sources.erase(sources.begin());
    // Merging into a store that does not exist is most likely a typo and would create a file.
    RETURN_IF_ERROR(dataset::SampleStore::Open(target, dataset::SampleStore::Access::kRead));
  }
  // All stores must be readable before anything is written.
  for (const std::string& source : sources) {
    RETURN_IF_ERROR(dataset::SampleStore::Open(source, dataset::SampleStore::Access::kRead));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<dataset::SampleStore> store,
                   dataset::SampleStore::Open(target, dataset::SampleStore::Access::kWrite));
  for (const std::string& source : sources) {
    ASSIGN_OR_RETURN(const size_t came, store->Merge(source));
    if (came == 0) {
      PrintOut("{}: all samples exist already\n", source);
    } else {
      PrintOut("{}: {} added\n", source, Count(came, "sample"));
    }
  }
  ASSIGN_OR_RETURN(const dataset::StoreContents all, store->Read());
  PrintOut("{} contains {} of {}\n", target, Count(all.records.size(), "sample"),
           Count(all.runs.size(), "run"));
  return kExitFine;
}

void AddData(CommandLine* parent, CommandAction* run) {
  CommandLine* data =
      parent->AddCommand("data", "Import, export, merge, show and check measured samples");
  data->Describe("A store is one SQLite file; docs/formats/dataset.md describes it.");
  data->Example("diapason data show diapason.db", "Show the results of a sweep");
  data->RequireCommand();
  data->SeeAlso({"sweep", "bench", "plan"});
  AddImport(data, run);
  AddExport(data, run);
  AddMerge(data, run);
  AddShow(data, run);
  AddCheck(data, run);
}

}  // namespace diapason::cli
