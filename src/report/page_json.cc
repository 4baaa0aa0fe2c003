#include <cmath>

#include "domain/vocabulary.h"
#include "report/json_writer.h"
#include "report/page.h"

namespace diapason::report {
namespace {

// Larger sizes, which a script's numbers cannot hold exactly, are written as unbounded.
constexpr uint64_t kMostExact = uint64_t{1} << 53;

void WriteBytes(JsonWriter* json, uint64_t bytes) {
  if (bytes < kMostExact) {
    json->Unsigned(bytes);
  } else {
    json->Number(std::nan(""));
  }
}

// [samples, median, low, high]; null if unknown.
void WriteFigure(JsonWriter* json, const char* name, const PageFigure& figure, double scale) {
  json->Key(name);
  if (!figure.known()) {
    json->Number(std::nan(""));
    return;
  }
  json->BeginArray();
  json->Unsigned(figure.samples);
  for (const double value : {figure.median, figure.interval.low, figure.interval.high}) {
    json->Number(value * scale);
  }
  json->EndArray();
}

constexpr double kMicroseconds = 1e6;

void WriteHeadline(JsonWriter* json, const PageHeadline& headline) {
  json->Unsigned("place", headline.place);
  json->Bool("verified", headline.verified);
  WriteFigure(json, "gain", headline.gain, 1);
  json->Unsigned("sizes", headline.sizes);
  json->Unsigned("improved", headline.improved);
  json->Unsigned("noDifference", headline.no_difference);
  json->Unsigned("slower", headline.slower);
  json->Unsigned("tooFew", headline.too_few);
  json->Unsigned("leftAlone", headline.left_alone);
  json->Bool("byPolicy", headline.by_policy);
  json->Unsigned("measured", headline.measured);
  json->Unsigned("notKept", headline.not_kept);
  json->Unsigned("unverified", headline.unverified);
  WriteFigure(json, "all", headline.all, 1);
  json->Text("worst", headline.worst);
  json->Unsigned("worstBytes", headline.worst_bytes);
  WriteFigure(json, "worstGain", headline.worst_gain, 1);
  json->Unsigned("onlyDefault", headline.only_default);
  json->Text("changedText", CasesText(headline.sizes, headline.changed_extent));
  json->Text("leftText", CasesText(headline.left_alone, headline.left_extent));
  json->Text("measuredText", CasesText(headline.measured, headline.measured_extent));
}

void WriteConfigs(JsonWriter* json, const PageData& data) {
  json->Key("configs");
  json->BeginArray();
  for (const PageConfig& config : data.configs) {
    json->BeginArray();
    json->Text(config.text);
    json->Text(config.algorithm);
    json->Text(config.protocol);
    json->Integer(config.channels);
    json->Integer(config.segment_bytes);
    json->Text(config.environment);
    json->Integer(config.family);
    json->EndArray();
  }
  json->EndArray();
}

void WritePlaces(JsonWriter* json, const PageData& data) {
  WriteList(json, "places", data.places, [&](const PagePlace& place) {
    json->Text("library", place.library);
    json->Text("version", place.version);
    json->Text("gpu", place.gpu);
    json->Text("driver", place.driver);
    json->Text("topology", place.topology);
    json->Text("hosts", place.hosts);
    json->Text("tool", place.tool);
    json->Bool("simulated", place.simulated);
    json->Unsigned("runs", place.runs);
    json->Unsigned("samples", place.samples);
    json->Integer("first", static_cast<int64_t>(place.first));
    json->Integer("last", static_cast<int64_t>(place.last));
  });
  WriteList(json, "runs", data.runs, [&](const PageRun& run) {
    json->Text("id", run.id);
    json->Text("source", run.source);
    json->Text("origin", run.origin);
    json->Integer("started", static_cast<int64_t>(run.started));
    json->Text("state", run.state);
    json->Unsigned("place", run.place);
    json->Unsigned("samples", run.samples);
  });
}

// [config, samples, median, low, high, tie, failures]: these are most of the file, so trailing
// defaults are omitted.
void WriteCell(JsonWriter* json, const PageCell& cell) {
  json->BeginArray();
  json->Integer(cell.config);
  json->Unsigned(cell.time.samples);
  json->Number(cell.time.median * kMicroseconds);
  const Interval& interval = cell.time.interval;
  const bool wide = interval.low != interval.high;
  if (wide || cell.tie || cell.failures > 0) {
    json->Number(interval.low * kMicroseconds);
    json->Number(interval.high * kMicroseconds);
  }
  if (cell.tie || cell.failures > 0) json->Integer(cell.tie ? 1 : 0);
  if (cell.failures > 0) json->Unsigned(cell.failures);
  json->EndArray();
}

// [config, verified, samples, the quantiles...]
void WriteSpreads(JsonWriter* json, const std::vector<PageSpread>& spreads) {
  if (spreads.empty()) return;
  json->Key("spreads");
  json->BeginArray();
  for (const PageSpread& spread : spreads) {
    json->BeginArray();
    json->Integer(spread.config);
    json->Integer(spread.verified ? 1 : 0);
    json->Unsigned(spread.samples);
    for (const double value : spread.quantiles) json->Number(value * kMicroseconds);
    json->EndArray();
  }
  json->EndArray();
}

// [seconds, samples, gain] of every step.
void WriteProgress(JsonWriter* json, const std::vector<PageProgress>& progress) {
  json->Key("progress");
  json->BeginArray();
  for (const PageProgress& step : progress) {
    json->BeginArray();
    json->Number(step.seconds);
    json->Unsigned(step.samples);
    json->Number(step.gain);
    json->EndArray();
  }
  json->EndArray();
}

void WriteGroup(JsonWriter* json, const PageGroup& group) {
  const dataset::Point& context = group.context;
  const bool iteration = context.kind == dataset::Point::Kind::kIteration;
  json->Text("kind", iteration ? "iteration" : "collective");
  json->Text("collective", context.collective);
  json->Integer("nodes", context.nodes);
  json->Integer("ranks", context.ranks);
  json->Text("type", context.type);
  json->Text("reduce", context.reduce);
  json->Integer("root", context.root);
  json->Bool("inPlace", context.in_place);
  json->Text("workload", context.workload);
  json->Unsigned("place", group.place);
  json->Text("label", group.label);
  json->Text("shape", group.shape);
  json->Number("bus", group.bus_factor);
  WriteList(json, "sizes", group.sizes, [&](const PageSize& size) {
    json->Unsigned("bytes", size.bytes);
    json->Text("certainty", CertaintyName(size.certainty));
    json->Integer("chosen", size.chosen);
    WriteFigure(json, "lost", size.lost, 1);
    WriteFigure(json, "lostChosen", size.lost_chosen, 1);
    json->Key("cells");
    json->BeginArray();
    for (const PageCell& cell : size.cells) WriteCell(json, cell);
    json->EndArray();
    WriteSpreads(json, size.spreads);
  });
  WriteList(json, "verified", group.verified, [&](const PageVerified& one) {
    json->Unsigned("bytes", one.bytes);
    WriteFigure(json, "standard", one.standard, kMicroseconds);
    WriteFigure(json, "tuned", one.tuned, kMicroseconds);
    json->Integer("config", one.config);
    WriteFigure(json, "gain", one.gain, 1);
    json->Text("verdict", one.verdict);
    json->Bool("kept", one.kept);
    const auto decided = group.decided.find(one.bytes);
    json->Integer("runs", decided == group.decided.end() ? -1 : decided->second);
    WriteSpreads(json, one.spreads);
  });
  WriteProgress(json, group.progress);
}

void WriteDecision(JsonWriter* json, const PageDecision& decision) {
  json->Key("first");
  WriteBytes(json, decision.first);
  json->Key("last");
  WriteBytes(json, decision.last);
  json->Integer("config", decision.config);
  json->Text("row", decision.row);
  json->Text("remark", decision.remark);
  json->Text("why", decision.why);
  WriteList(json, "proofs", decision.proofs, [&](const PageDecision::Proof& proof) {
    json->Unsigned("bytes", proof.bytes);
    WriteFigure(json, "gain", proof.gain, 1);
    json->Bool("verified", proof.verified);
  });
}

void WriteMaps(JsonWriter* json, const PageData& data) {
  WriteList(json, "maps", data.maps, [&](const PageMap& map) {
    json->Text("name", map.name);
    json->Text("origin", map.origin);
    json->Text("digest", map.name.empty() ? "" : map.digest);
    json->Unsigned("rules", map.rules);
    WriteList(json, "rows", map.rows, [&](const PageMapRow& row) {
      json->Text("label", row.label);
      json->Integer("group", row.group);
      WriteList(json, "decisions", row.decisions,
                [&](const PageDecision& decision) { WriteDecision(json, decision); });
    });
  });
  WriteList(json, "failures", data.failures, [&](const PageFailure& failure) {
    json->Unsigned("group", failure.group);
    json->Unsigned("bytes", failure.bytes);
    json->Integer("config", failure.config);
    json->Text("outcome", failure.outcome);
    json->Unsigned("count", failure.count);
    json->Text("note", failure.note);
  });
}

void WriteLearning(JsonWriter* json, const PageLearning& learning) {
  json->Text("label", learning.label);
  json->Text("journal", learning.journal);
  json->Bool("iterations", learning.iterations);
  json->Unsigned("epochs", learning.epochs);
  WriteList(json, "arms", learning.arms, [&](const PageLearning::Arm& arm) {
    json->Integer("config", arm.config);
    json->Text("state", arm.state);
    json->Unsigned("blocks", arm.blocks);
    json->Unsigned("samples", arm.samples);
    json->Number("us", arm.seconds * kMicroseconds);
    WriteFigure(json, "ratio", arm.ratio, 1);
    json->Number("skew", arm.skew);
  });
  json->Key("blocks");
  json->BeginArray();
  for (const PageLearning::Block& block : learning.blocks) {
    json->BeginArray();
    json->Unsigned(block.epoch);
    json->Unsigned(block.arm);
    json->Number(block.ratio);
    json->Number(block.seconds * kMicroseconds);
    json->Unsigned(block.samples);
    json->EndArray();
  }
  json->EndArray();
  json->Key("held");
  json->BeginArray();
  for (const uint32_t epoch : learning.held) json->Unsigned(epoch);
  json->EndArray();
  json->Unsigned("leftOut", learning.left_out);
}

void WriteJournals(JsonWriter* json, const PageData& data) {
  WriteList(json, "learning", data.learning,
            [&](const PageLearning& learning) { WriteLearning(json, learning); });
  WriteList(json, "journals", data.journals, [&](const PageJournal& journal) {
    json->Text("name", journal.name);
    json->Text("host", journal.host);
    json->Integer("pid", journal.pid);
    json->Text("communicators", journal.communicators);
    json->Unsigned("decisions", journal.decisions);
    json->Unsigned("runs", journal.runs);
    json->Unsigned("rewards", journal.rewards);
    json->Unsigned("dropped", journal.dropped);
    json->Unsigned("badLines", journal.bad_lines);
    json->Bool("ended", journal.ended);
  });
  const journal::JournalComparison::Report& report = data.agreement;
  json->Key("agreement");
  if (report.journals < 2) {
    json->Number(std::nan(""));
    return;
  }
  json->BeginObject();
  json->Bool("agree", report.agree());
  json->Unsigned("compared", report.compared);
  json->Text("verdict", report.Verdict());
  json->Texts("problems", report.problems);
  json->Texts("notes", report.notes);
  json->Key("differences");
  json->BeginArray();
  for (const journal::JournalComparison::Difference& one : report.first) json->Text(one.Text());
  json->EndArray();
  WriteList(json, "spreads", report.spreads, [&](const journal::JournalComparison::Spread& spread) {
    json->Text("communicator", spread.communicator);
    json->Text("collective", CollectiveName(spread.collective));
    json->Unsigned("bytes", spread.bytes);
    json->Unsigned("runs", spread.runs);
    json->Number("us", spread.seconds * kMicroseconds);
    json->Number("apart", spread.spread * kMicroseconds);
    json->Number("starts", spread.starts < 0 ? std::nan("") : spread.starts * kMicroseconds);
  });
  json->EndObject();
}

void WriteMachine(JsonWriter* json, const PageData& data) {
  const auto write_finding = [&](const Finding& finding) {
    json->Text("severity", SeverityName(finding.severity));
    json->Text("title", finding.title);
    json->Texts("evidence", finding.evidence);
    json->Text("action", finding.action);
  };
  WriteList(json, "trust", data.trust, write_finding);
  WriteList(json, "variables", data.variables, [&](const PageVariable& variable) {
    json->Text("name", variable.name);
    json->Text("value", variable.value);
    json->Unsigned("runs", variable.runs);
    json->Unsigned("samples", variable.samples);
  });
  json->Key("doctor");
  json->BeginObject();
  json->Text("host", data.doctor.host);
  json->Texts("machine", data.doctor.machine);
  WriteList(json, "findings", data.doctor.findings, write_finding);
  WriteList(json, "checklist", data.doctor.checklist, [&](const PageDoctor::Item& item) {
    json->Text("state", item.state);
    json->Text("text", item.text);
    json->Text("because", item.because);
  });
  json->EndObject();
}

}  // namespace

std::string PageJson(const PageData& data) {
  JsonWriter json;
  json.BeginObject();
  json.Text("title", data.title);
  json.Text("version", data.version);
  json.Integer("made", static_cast<int64_t>(data.made));
  json.Unsigned("samples", data.samples);
  json.Unsigned("simulated", data.simulated);
  json.Texts("notes", data.notes);
  for (const auto& [name, headline] :
       {std::pair("headline", &data.headline), std::pair("iterations", &data.iterations)}) {
    json.Key(name);
    json.BeginObject();
    WriteHeadline(&json, *headline);
    json.EndObject();
  }
  for (const auto& [name, list] : {std::pair("otherHeadlines", &data.other_headlines),
                                   std::pair("otherIterations", &data.other_iterations)}) {
    WriteList(&json, name, *list,
              [&](const PageHeadline& headline) { WriteHeadline(&json, headline); });
  }
  json.Key("use");
  json.BeginObject();
  json.Text("policy", data.use.policy);
  json.Texts("lines", data.use.lines);
  json.Text("remark", data.use.remark);
  json.EndObject();
  WriteConfigs(&json, data);
  WritePlaces(&json, data);
  WriteList(&json, "groups", data.groups,
            [&](const PageGroup& group) { WriteGroup(&json, group); });
  WriteMaps(&json, data);
  WriteJournals(&json, data);
  WriteMachine(&json, data);
  json.EndObject();
  return json.text();
}

}  // namespace diapason::report
