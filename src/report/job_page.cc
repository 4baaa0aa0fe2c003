#include "report/job_page.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/json_writer.h"

namespace diapason::report {
namespace {

constexpr double kToMicroseconds = 1e6;
constexpr size_t kMostRows = 400;
constexpr size_t kLongestText = 400;

void WriteGain(JsonWriter* json, const char* name, const JobGain& gain) {
  json->Number(name, gain.gain);
  json->Number("low", gain.low);
  json->Number("high", gain.high);
}

void WriteSetting(JsonWriter* json, const JobSetting& one) {
  json->Text("name", one.name);
  json->Text("title", one.title);
  json->Number("us", one.seconds * kToMicroseconds);
  json->Number("compute", one.known ? one.compute * kToMicroseconds : std::nan(""));
  json->Number("hidden", one.known ? one.hidden * kToMicroseconds : std::nan(""));
  json->Number("low", one.low * kToMicroseconds);
  json->Number("high", one.high * kToMicroseconds);
  json->Key("exposed");
  json->BeginArray();
  for (const auto& [at, seconds] : one.exposed) {
    json->BeginArray();
    json->Unsigned(at);
    json->Number(seconds * kToMicroseconds);
    json->EndArray();
  }
  json->EndArray();
}

void WritePicture(JsonWriter* json, const JobPage& page) {
  json->Text("barsNote", page.bars_note);
  json->Text("method", page.method);
  WriteList(json, "classes", page.classes,
            [&](const std::string& one) { json->Text("label", one); });
  WriteList(json, "settings", page.settings,
            [&](const JobSetting& one) { WriteSetting(json, one); });
  WriteList(json, "rows", page.rows, [&](const JobPartRow& row) {
    json->Text("name", row.name);
    json->Bool("bold", row.bold);
    json->Key("us");
    json->BeginArray();
    for (const double seconds : row.seconds) {
      json->Number(seconds < 0 ? std::nan("") : seconds * kToMicroseconds);
    }
    json->EndArray();
  });
}

void WriteVerified(JsonWriter* json, const JobPage& page) {
  json->Key("gain");
  if (page.gain.gain > 0) {
    json->BeginObject();
    WriteGain(json, "value", page.gain);
    json->Unsigned("launches", page.gain_launches);
    json->Unsigned("changes", page.gain_changes);
    json->Bool("byPairs", page.by_pairs);
    json->Number("defaultUs", page.default_seconds * kToMicroseconds);
    json->Number("tunedUs", page.tuned_seconds * kToMicroseconds);
    json->Text("next", page.next);
    json->EndObject();
  } else {
    json->Number(std::nan(""));
  }
  WriteList(json, "verified", page.verified, [&](const JobVerified& one) {
    json->Integer("launch", one.launch);
    json->Integer("defaultLaunch", one.default_launch);
    WriteGain(json, "gain", one.gain);
    json->Unsigned("changes", one.changes);
    json->Unsigned("iterations", one.iterations);
    json->Number("defaultUs", one.default_seconds * kToMicroseconds);
    json->Number("tunedUs", one.tuned_seconds * kToMicroseconds);
    json->Text("note", one.note);
  });
}

void WriteContexts(JsonWriter* json, const JobPage& page) {
  WriteList(json, "contexts", page.contexts, [&](const JobPageContext& one) {
    json->Text("label", one.label);
    json->Text("facts", one.facts);
    json->Text("outcome", one.outcome);
    json->Bool("kept", one.kept);
    json->Bool("byLaunches", one.by_launches);
    WriteList(json, "tried", one.tried, [&](const JobTried& tried) {
      json->Text("config", tried.config);
      WriteGain(json, "gain", tried.gain);
      json->Unsigned("blocks", tried.blocks);
      json->Bool("chosen", tried.chosen);
    });
  });
  json->Texts("untried", page.untried);
}

// What does not fit on a page is left out, and the page says so.
template <typename Row>
void LimitRows(const char* what, std::vector<Row>* rows, std::vector<std::string>* notes) {
  if (rows->size() <= kMostRows) return;
  notes->push_back(Format("left out here: {} of {} {}; result.json has all of them",
                          rows->size() - kMostRows, rows->size(), what));
  rows->resize(kMostRows);
}

void LimitText(std::string* text) {
  if (text->size() > kLongestText) *text = text->substr(0, kLongestText) + "...";
}

void Limit(JobPage* page) {
  LimitRows("contexts", &page->contexts, &page->notes);
  LimitRows("launches", &page->launches, &page->notes);
  LimitRows("launches that verify", &page->verified, &page->notes);
  LimitRows("parts of an iteration", &page->rows, &page->notes);
  LimitRows("reasons", &page->untried, &page->notes);
  size_t left = kMostRows * 10;
  for (JobPageContext& one : page->contexts) {
    if (one.tried.size() > left) one.tried.resize(left);
    left -= one.tried.size();
    for (std::string* text : {&one.label, &one.facts, &one.outcome}) LimitText(text);
  }
  for (JobPageLaunch& one : page->launches) {
    for (std::string* text : {&one.purpose, &one.ended, &one.log}) LimitText(text);
  }
  for (JobVerified& one : page->verified) LimitText(&one.note);
  for (std::string& text : page->untried) LimitText(&text);
  for (auto& [name, text] : page->facts) LimitText(&text);
  LimitText(&page->title);
}

}  // namespace

std::string JobPageJson(const JobPage& page) {
  JsonWriter json;
  json.BeginObject();
  // Seconds since 1970 have more digits than other figures.
  json.Unsigned("made", static_cast<uint64_t>(std::max(page.made, 0.0)));
  json.Text("title", page.title);
  json.Text("version", page.version);
  json.Text("verdict", page.verdict);
  json.Text("headline", page.headline);
  json.Text("unit", page.unit);
  WritePicture(&json, page);
  WriteVerified(&json, page);
  WriteContexts(&json, page);
  WriteList(&json, "launches", page.launches, [&](const JobPageLaunch& one) {
    json.Integer("number", one.number);
    json.Text("purpose", one.purpose);
    json.Number("seconds", one.seconds);
    json.Text("ended", one.ended);
    json.Bool("bad", one.bad);
    json.Text("log", one.log);
  });
  json.Text("metric", page.metric);
  json.Text("use", page.use);
  json.Key("facts");
  json.BeginArray();
  for (const auto& [name, fact] : page.facts) {
    json.BeginArray();
    json.Text(name);
    json.Text(fact);
    json.EndArray();
  }
  json.EndArray();
  json.Texts("notes", page.notes);
  json.EndObject();
  return json.text();
}

std::string JobPageHtml(JobPage page, const std::string& nonce) {
  Limit(&page);
  return FillPage({page.title, page.headline, page.version, JobPageJson(page), JobScript()}, nonce);
}

}  // namespace diapason::report
