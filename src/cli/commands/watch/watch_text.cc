#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/watch/watch.h"
#include "dataset/summary.h"
#include "dataset/words.h"
#include "domain/schedule.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using dataset::Printable;
using watch::NetRate;
using watch::ProcessView;
using watch::ThreadRate;
using watch::WatchView;
using Align = report::Table::Align;

constexpr size_t kShownOthers = 8;
constexpr size_t kShownContexts = 8;
constexpr size_t kShownArms = 12;
constexpr size_t kShownSymbols = 8;

std::string Percent(double share) { return Format("{:.1f}", share * 100); }

std::string PerSecond(double rate) {
  return Format("{:.{}f}", rate, rate >= 100 || rate == 0 ? 0 : 1);
}

bool GrowthKnown(const ProcessView& process) {
  return process.growth_since > 0 && process.growth_looks >= watch::kLeastGrowthLooks;
}

std::string Growth(const ProcessView& process) {
  if (!GrowthKnown(process)) return "-";
  const std::string text = AboutBytes(process.growth);
  return process.growth > 0 ? "+" + text : text;
}

std::string Futex(const ThreadRate& thread) {
  if (thread.futex.told == 0) return "-";
  return Format("{:.0f}", 100.0 * static_cast<double>(thread.futex.futex) /
                              static_cast<double>(thread.futex.told));
}

void AddThread(const ThreadRate& thread, const std::string& name, report::Table* table) {
  table->Add({name, Format("{}", thread.threads), Percent(thread.cpu()), Percent(thread.system),
              thread.has_wait ? Percent(thread.wait) : "-", PerSecond(thread.voluntary_per_s),
              PerSecond(thread.involuntary_per_s), Futex(thread),
              thread.last_cpu < 0 ? "" : Format("{}", thread.last_cpu),
              Printable(thread.waits_in.substr(0, thread.waits_in.find('.')), 32)});
}

std::string ThreadsText(const ProcessView& process) {
  report::Table table({"thread", "n", "CPU %", "system %", "no CPU %", "waits/s", "lost CPU/s",
                       "in futex %", "on CPU", "waits in"});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const ThreadRate& thread : process.rate.named) {
    AddThread(thread, Printable(thread.name, 20), &table);
  }
  size_t shown = 0;
  ThreadRate rest;
  rest.threads = 0;
  for (const ThreadRate& thread : process.rate.others) {
    if (shown++ < kShownOthers) {
      AddThread(thread, Printable(thread.name, 20), &table);
      continue;
    }
    rest.threads += thread.threads;
    rest.user += thread.user;
    rest.system += thread.system;
    rest.has_wait |= thread.has_wait;
    rest.wait += thread.wait;
    rest.voluntary_per_s += thread.voluntary_per_s;
    rest.involuntary_per_s += thread.involuntary_per_s;
  }
  if (rest.threads > 0) AddThread(rest, "(others)", &table);
  std::string text = table.Text();
  if (process.names_off && process.rate.progress_threads == 0) {
    for (const ThreadRate& thread : process.rate.busy) {
      text += Format("  busy: thread {} ({}), {} % of a CPU\n", static_cast<int>(thread.tid),
                     Printable(thread.name, 20), Percent(thread.cpu()));
    }
    text +=
        "NCCL's threads cannot be distinguished: the job was not started with "
        "NCCL_SET_THREAD_NAME=1\n";
  }
  return text;
}

std::string LearningRows(const watch::JournalTail& journal) {
  report::Table table(
      {"learning", "up to", "epoch", "configuration", "blocks", "median", "to default", ""});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight, Align::kLeft, Align::kRight,
                  Align::kRight, Align::kRight});
  size_t shown = 0;
  size_t arms = 0;
  for (const journal::JournalContext& context : journal.Learning()) {
    const Library library = journal.LibraryOf(context.communicator);
    for (const journal::LearningArm& arm : context.arms) {
      ++arms;
      if (shown == kShownArms) continue;
      ++shown;
      table.Add(
          {Format("{} {}", context.communicator, std::string(CollectiveName(context.collective))),
           FormatBytes(BandLast(context.band)),
           context.epochs.empty() ? "" : Format("{}", context.epochs.back().epoch),
           ConfigText(library, context.collective, arm.config), Format("{}", arm.blocks),
           arm.seconds > 0 ? dataset::TimeText(arm.seconds) : "-",
           arm.ratio > 0 ? Format("{:.2f} x", arm.ratio) : "-", arm.StateText()});
    }
  }
  if (shown == 0) return "";
  std::string text = "\n" + table.Text();
  if (arms > shown) text += Format("and {} more\n", arms - shown);
  return text;
}

std::string JournalText(const ProcessView& process) {
  if (process.journal == nullptr || !process.journal_read) return "";
  const watch::JournalTail& journal = *process.journal;
  const auto& counts = journal.counts();
  std::string text =
      Format("\njournal {}: {} operations, {}/s ({} runs/s, {} rewards/s)", journal.path(),
             counts.operations(), PerSecond(process.operations_per_s),
             PerSecond(process.runs_per_s), PerSecond(process.rewards_per_s));
  if (counts.dropped > 0) {
    text += Format(", {} dropped", counts.dropped);
  }
  if (counts.unknown > 0) {
    text += Format(", {} lines not parsed", counts.unknown);
  }
  text += "\n";
  const std::vector<watch::JournalTail::Context> contexts = journal.Contexts();
  if (contexts.empty()) return text;
  report::Table table(
      {"comm", "collective", "size", "calls", "asked for", "ran", "GPU time", "why"});
  table.SetAlign({Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft,
                  Align::kLeft, Align::kRight});
  for (size_t i = 0; i < contexts.size() && i < kShownContexts; ++i) {
    const watch::JournalTail::Context& context = contexts[i];
    table.Add({Format("{}", context.communicator), context.collective, FormatBytes(context.bytes),
               Format("{}", context.calls), context.asked,
               context.ran.empty() ? "not seen" : context.ran,
               context.seconds > 0 ? dataset::TimeText(context.seconds) : "", context.why});
  }
  text += table.Text();
  if (contexts.size() > kShownContexts) {
    text += Format("and {} more\n", contexts.size() - kShownContexts);
  }
  return text + LearningRows(journal);
}

std::string NetText(const WatchView& view) {
  report::Table table({"network", "received/s", "sent/s", "errors/s", "of", ""});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  size_t rows = 0;
  const auto add = [&](const NetRate& rate, const std::string& of) {
    const bool quiet = rate.received_per_s + rate.sent_per_s + rate.errors_per_s == 0;
    if (quiet && !rate.rdma) return;
    std::string trouble;
    for (const auto& [name, value] : rate.trouble_per_s) {
      trouble += Format("{}{} {}/s", trouble.empty() ? "" : ", ", name, PerSecond(value));
    }
    table.Add({Printable(rate.name, 20), AboutBytes(rate.received_per_s),
               AboutBytes(rate.sent_per_s), PerSecond(rate.errors_per_s), of, trouble});
    ++rows;
  };
  for (const WatchView::Net& net : view.nets) {
    for (const NetRate& rate : net.rates) add(rate, net.of);
  }
  for (const NetRate& rate : view.rdma) add(rate, "RDMA, all processes");
  return rows == 0 ? "" : "\n" + table.Text();
}

std::string OneText(const ProcessView& process) {
  std::string text =
      Format("process {} ({})", static_cast<int>(process.now.pid), Printable(process.now.name, 20));
  if (process.rank >= 0) text += Format(", rank {}", process.rank);
  if (process.ended) return text + ": has ended\n" + JournalText(process);
  text += Format(", {}, {}\n", Count(process.now.threads.size(), "thread"),
                 Count(static_cast<size_t>(process.now.open_files), "open file"));
  text += Format("memory {} resident ({} a minute), {} shared, {} locked, {} pinned, {} swapped\n",
                 AboutBytes(process.now.resident), Growth(process),
                 AboutBytes(process.now.shared_memory), AboutBytes(process.now.locked),
                 AboutBytes(process.now.pinned), AboutBytes(process.now.swapped));
  if (process.first) return text + "(rates follow with the second sample)\n" + JournalText(process);
  const ThreadRate& total = process.rate.total;
  text += Format("CPU {} %, of it {} % in the kernel", Percent(total.cpu()), Percent(total.system));
  if (total.has_wait) text += Format("; runnable without a CPU {} %", Percent(total.wait));
  text += Format("; over {:.1f} s\n\n", process.rate.seconds);
  return text + ThreadsText(process) + JournalText(process);
}

std::string ManyText(const WatchView& view) {
  report::Table table({"process", "rank", "name", "CPU %", "progress %", "no CPU %", "lost CPU/s",
                       "resident", "a minute", "ops/s", ""});
  table.SetAlign({Align::kRight, Align::kRight, Align::kLeft, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  double cpu = 0;
  double progress = 0;
  double wait = 0;
  double pushed = 0;
  double growth = 0;
  double operations = 0;
  uint64_t resident = 0;
  bool journals = false;
  bool growing = false;
  bool progressing = false;
  bool names_off = false;
  for (const ProcessView& process : view.processes) {
    const ThreadRate& total = process.rate.total;
    const std::string rank = process.rank < 0 ? "" : Format("{}", process.rank);
    if (process.ended) {
      table.Add({Format("{}", static_cast<int>(process.now.pid)), rank,
                 Printable(process.now.name, 20), "", "", "", "", "", "", "", "ended"});
      continue;
    }
    cpu += total.cpu();
    progress += process.rate.progress_cpu;
    wait += total.wait;
    pushed += total.involuntary_per_s;
    growth += GrowthKnown(process) ? process.growth : 0;
    growing |= GrowthKnown(process);
    operations += process.operations_per_s;
    resident += process.now.resident;
    journals |= process.journal_read;
    progressing |= process.rate.progress_threads > 0;
    names_off |= process.names_off && process.rate.progress_threads == 0;
    table.Add({Format("{}", static_cast<int>(process.now.pid)), rank,
               Printable(process.now.name, 20), Percent(total.cpu()),
               process.rate.progress_threads == 0 ? "-" : Percent(process.rate.progress_cpu),
               total.has_wait ? Percent(total.wait) : "-", PerSecond(total.involuntary_per_s),
               AboutBytes(process.now.resident), Growth(process),
               process.journal_read ? PerSecond(process.operations_per_s) : "-",
               process.first ? "first sample" : ""});
  }
  table.Add({"sum", "", "", Percent(cpu), progressing ? Percent(progress) : "-", Percent(wait),
             PerSecond(pushed), AboutBytes(resident), growing ? AboutBytes(growth) : "-",
             journals ? PerSecond(operations) : "-", ""});
  std::string text = table.Text();
  if (names_off) {
    text += "progress -: NCCL's threads have no names; start the job with NCCL_SET_THREAD_NAME=1\n";
  }
  return text;
}

}  // namespace

std::string WatchText(const WatchView& view) {
  std::string text = view.processes.size() == 1 ? OneText(view.processes[0]) : ManyText(view);
  text += NetText(view);
  for (const std::string& note : view.notes) text += "note: " + Printable(note) + "\n";
  return text;
}

std::string ProfileText(pid_t pid, const watch::Profile& profile) {
  if (profile.lines.empty()) {
    return Format("process {}: no samples; it used no CPU\n", static_cast<int>(pid));
  }
  struct Thread {
    double share = 0;
    std::vector<const watch::ProfileLine*> lines;
  };
  std::map<pid_t, Thread> threads;
  for (const watch::ProfileLine& line : profile.lines) {
    threads[line.tid].share += line.share;
    threads[line.tid].lines.push_back(&line);
  }
  std::vector<const Thread*> order;
  for (const auto& [tid, thread] : threads) order.push_back(&thread);
  // NCCL's threads first, then the busiest.
  std::stable_sort(order.begin(), order.end(), [](const Thread* a, const Thread* b) {
    const auto named = [](const Thread* thread) {
      return host::RoleOfThread(thread->lines[0]->thread) != host::ThreadRole::kOther;
    };
    if (named(a) != named(b)) return named(a);
    return a->share > b->share;
  });
  std::string text =
      Format("process {}: {} samples at 99 per second\n", static_cast<int>(pid), profile.samples);
  report::Table table({"thread", "tid", "share %", "symbol", "of"});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight});
  for (size_t i = 0; i < order.size() && i < kShownOthers; ++i) {
    const Thread& thread = *order[i];
    table.Add({Printable(thread.lines[0]->thread, 20),
               Format("{}", static_cast<int>(thread.lines[0]->tid)), Percent(thread.share), "",
               ""});
    for (size_t line = 0; line < thread.lines.size() && line < kShownSymbols; ++line) {
      table.Add({"", "", Percent(thread.lines[line]->share),
                 Printable(thread.lines[line]->symbol, 60),
                 Printable(thread.lines[line]->object, 40)});
    }
  }
  return text + table.Text();
}

}  // namespace diapason::cli
