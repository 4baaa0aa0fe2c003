#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands/watch/proxy.h"
#include "cli/framework/command.h"
#include "cli/framework/findings.h"
#include "cli/framework/json_text.h"
#include "dataset/words.h"
#include "watch/ask_proxy.h"

namespace diapason::cli {
namespace {

using dataset::Printable;
using watch::DumpAnswer;
using watch::DumpTarget;
using watch::OutputPlace;
using watch::ProxyDump;
using watch::ProxyOp;
using Json = nlohmann::ordered_json;

constexpr size_t kMostLog = size_t{256} << 20;
constexpr size_t kShownOps = 200;

// The file in which the answer can be read; "" if this process cannot read it.
std::string FileToRead(const DumpTarget& target, const ProxyAsked& asked) {
  if (!asked.from.empty()) return asked.from;
  if (target.output.kind == OutputPlace::Kind::kFile) {
    // The descriptor leads to the file even if it has another name here.
    return Format("/proc/{}/fd/1", static_cast<int>(target.pid));
  }
  if (target.output.readers.size() == 1 && target.output.readers[0].files.size() == 1) {
    return target.output.readers[0].files[0];
  }
  return "";
}

std::string Whereto(const OutputPlace& output) {
  switch (output.kind) {
    case OutputPlace::Kind::kFile:
      return "the file " + output.name;
    case OutputPlace::Kind::kTerminal:
      return "the terminal " + output.name + ": the answer appears there";
    case OutputPlace::Kind::kNowhere:
      return output.name + ": the answer is lost";
    case OutputPlace::Kind::kPipe:
    case OutputPlace::Kind::kOther:
      break;
  }
  if (output.readers.empty()) return output.name + "; its reader is not visible from here";
  std::vector<std::string> readers;
  for (const watch::OutputHolder& reader : output.readers) {
    std::string text =
        Format("{} (process {})", Printable(reader.name, 20), static_cast<int>(reader.pid));
    if (!reader.files.empty()) text += ", which writes " + Join(reader.files, ", ");
    readers.push_back(std::move(text));
  }
  return "a pipe to " + Join(readers, " and ");
}

Finding NoAnswer(const DumpTarget& target, const DumpAnswer& answer, double timeout_s) {
  if (answer.ended) {
    return {"proxy.ended",
            Severity::kError,
            Format("process {} ended after it was asked", static_cast<int>(target.pid)),
            {},
            "Read its log: the signal handler prints, which is not safe at every moment"};
  }
  return {"proxy.no-answer",
          Severity::kWarning,
          Format("no dump came within {:g} s ({} sent)", timeout_s, Count(answer.asked, "signal")),
          {"standard output goes to " + Whereto(target.output),
           "NCCL prints with printf: if the output is a file or a pipe, the text stays in the "
           "process until 4096 bytes are buffered or the process flushes it"},
          "Use --fill, which asks until that buffer overflows; start the next job with `stdbuf "
          "-oL`, which writes each line at once"};
}

Json DumpJson(const ProxyDump& dump) {
  Json ops = Json::array();
  for (const ProxyOp& op : dump.active) {
    Json subs = Json::array();
    for (const watch::ProxySub& sub : op.subs) {
      subs.push_back({{"peer", sub.peer},
                      {"channel", sub.channel},
                      {"status", std::string(1, sub.status)},
                      {"meaning", watch::ProxyStatusText(sub.status)}});
    }
    ops.push_back({{"line", op.line},
                   {"place", op.place},
                   {"op_count", op.op_count},
                   {"type", op.type},
                   {"state", op.state},
                   {"connections", std::move(subs)}});
  }
  return {{"active", std::move(ops)},
          {"stray", dump.stray.size()},
          {"complete", dump.complete},
          {"damaged_lines", dump.damaged_lines}};
}

std::string DumpText(const ProxyDump& dump) {
  std::string text = Count(dump.active.size(), "operation") + " in flight";
  text += dump.active.empty() ? "\n" : ":\n";
  for (size_t i = 0; i < dump.active.size() && i < kShownOps; ++i) {
    text += "  " + Printable(dump.active[i].line) + "\n";
  }
  if (dump.active.size() > kShownOps) {
    text += Format("  and {} more\n", dump.active.size() - kShownOps);
  }
  return text;
}

// The last complete dump.
ProxyDump LastWhole(const std::string& text) {
  std::vector<ProxyDump> dumps = watch::ParseProxyDumps(text);
  for (size_t i = dumps.size(); i-- > 0;) {
    if (dumps[i].complete) return std::move(dumps[i]);
  }
  return dumps.empty() ? ProxyDump() : std::move(dumps.back());
}

int Print(const ProxyAsked& asked, const Json& about, const std::vector<ProxyDump>& dumps,
          const std::vector<Finding>& findings) {
  if (asked.json) {
    Json json = about;
    json["dumps"] = Json::array();
    for (const ProxyDump& dump : dumps) json["dumps"].push_back(DumpJson(dump));
    json["findings"] = Json::parse(FindingsJson(findings), nullptr, false);
    PrintOut("{}\n", JsonText(json));
  } else {
    for (const ProxyDump& dump : dumps) PrintOut("{}", DumpText(dump));
    PrintOut("{}", FindingsText(findings, true));
  }
  return ExitStatusOf(findings);
}

void AddDiagnosis(const std::vector<ProxyDump>& dumps, std::vector<Finding>* findings) {
  if (dumps.empty()) return;
  const std::vector<Finding> more =
      watch::DiagnoseProxyDump(dumps.front(), dumps.size() > 1 ? &dumps.back() : nullptr);
  findings->insert(findings->end(), more.begin(), more.end());
}

// Sends the signal if the answer cannot be read from here.
Result<int> AskBlindly(const ProxyAsked& asked, const DumpTarget& target, const Json& about) {
  watch::DumpWait wait;
  wait.timeout_s = 0;
  ASSIGN_OR_RETURN(const DumpAnswer answer, watch::AskForDump(RootFs(), target, "", wait));
  const Finding finding = {"proxy.elsewhere",
                           Severity::kNote,
                           "the process was asked; its answer goes to " + Whereto(target.output),
                           {},
                           "Read it there, or with `diapason proxy dump --from FILE` or `diapason "
                           "logs FILE` once it is in a file"};
  return Print(asked, about, {}, {finding});
}

}  // namespace

Result<int> RunProxyDump(const ProxyAsked& asked) {
  if (asked.pid == 0) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(asked.from, kMostLog));
    std::vector<ProxyDump> dumps = watch::ParseProxyDumps(text);
    if (dumps.empty()) return NotFound("'" + asked.from + "' contains no proxy dump");
    if (dumps.size() > 2) dumps.erase(dumps.begin(), dumps.end() - 2);
    std::vector<Finding> findings;
    AddDiagnosis(dumps, &findings);
    return Print(asked, {{"from", asked.from}}, dumps, findings);
  }
  const RootFs tree;
  ASSIGN_OR_RETURN(const DumpTarget found, watch::FindDumpTarget(tree, asked.pid));
  const DumpTarget& target = found;
  const Json about = {{"pid", target.pid},
                      {"signal", target.signal},
                      {"thread", target.thread_name},
                      {"output", target.output.name}};
  const std::string file = FileToRead(target, asked);
  if (file.empty()) return AskBlindly(asked, target, about);
  if (target.thread == 0) {
    Warn(
        "the job was not started with NCCL_SET_THREAD_NAME=1: any thread may receive the signal, "
        "and the proxy thread may change its lists while they are printed");
  }
  watch::DumpWait wait;
  wait.timeout_s = asked.timeout_s;
  wait.fill = asked.fill;
  std::vector<ProxyDump> dumps;
  std::vector<Finding> findings;
  const int rounds = asked.again_s > 0 ? 2 : 1;
  for (int round = 0; round < rounds; ++round) {
    if (round > 0) watch::Pause(asked.again_s);
    ASSIGN_OR_RETURN(const DumpAnswer answer, watch::AskForDump(tree, target, file, wait));
    if (!answer.complete) {
      findings.push_back(NoAnswer(target, answer, asked.timeout_s));
      break;
    }
    dumps.push_back(LastWhole(answer.text));
  }
  AddDiagnosis(dumps, &findings);
  return Print(asked, about, dumps, findings);
}

}  // namespace diapason::cli
