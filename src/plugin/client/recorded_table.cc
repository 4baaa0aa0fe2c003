#include "plugin/client/recorded_table.h"

#include <charconv>
#include <cmath>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

namespace diapason::client {
namespace {

constexpr size_t kMostBytes = 64u << 20;
constexpr float kOnOffer = 100.0f;

Result<std::vector<RecordedTable>> ParseText(std::string_view text, const std::string& path,
                                             Library library) {
  std::map<std::pair<int, uint64_t>, RecordedTable> tables;
  int number = 0;
  for (const std::string_view raw : Split(text, '\n')) {
    ++number;
    const std::string_view line = Trim(raw.substr(0, raw.find('#')));
    if (line.empty()) continue;
    const auto bad = [&](const std::string& why) {
      return Invalid(Format("{}:{}: {}", path, number, why));
    };
    const std::vector<std::string_view> fields = Split(line, ',');
    if (fields.size() < 4 || fields.size() > 11) {
      return bad("expected collective,bytes,algorithm and one cost for each protocol");
    }
    const Result<Collective> collective = ParseCollective(library, Trim(fields[0]));
    if (!collective.ok()) return bad(collective.status().message());
    const Result<uint64_t> bytes = ParseBytes(fields[1]);
    if (!bytes.ok()) return bad(bytes.status().message());
    const Result<int> algorithm = ParseAlgorithm(library, collective.value(), Trim(fields[2]));
    if (!algorithm.ok()) return bad(algorithm.status().message());
    RecordedTable& table = tables[{static_cast<int>(collective.value()), bytes.value()}];
    const int protocols = static_cast<int>(fields.size()) - 3;
    if (table.cost.cells.empty()) {
      table.collective = collective.value();
      table.bytes = bytes.value();
      table.cost.protocols = protocols;
      table.cost.cells.assign(table.cost.Index(table.cost.algorithms, 0), -1.0f);
    }
    if (table.cost.protocols != protocols) return bad("the lines of a table differ in length");
    for (int p = 0; p < protocols; ++p) {
      const std::string_view field = Trim(fields[static_cast<size_t>(p) + 3]);
      float cost = 0;
      const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), cost);
      if (error != std::errc() || end != field.data() + field.size() || field.empty()) {
        return bad("'" + std::string(field.substr(0, 40)) + "' is not a number");
      }
      table.cost.cells[table.cost.Index(algorithm.value(), p)] = cost;
    }
  }
  std::vector<RecordedTable> list;
  for (auto& [key, table] : tables) list.push_back(std::move(table));
  if (list.empty()) return Invalid(path + ": no cost table in it");
  return list;
}

}  // namespace

std::vector<RecordedTable> TablesOf(const journal::JournalContents& journal) {
  std::map<std::pair<int, uint64_t>, RecordedTable> tables;
  for (const journal::JournalRecord& record : journal.records) {
    if (record.table_algorithms == 0) continue;
    RecordedTable table;
    table.collective = static_cast<Collective>(record.collective);
    table.bytes = record.bytes;
    if (const journal::JournalComm* of = journal.Find(record.communicator); of != nullptr) {
      table.shape = of->shape;
    }
    table.cost.algorithms = record.table_algorithms;
    table.cost.protocols = record.table_protocols;
    table.cost.cells.assign(record.table,
                            record.table + table.cost.algorithms * table.cost.protocols);
    tables[{record.collective, record.bytes}] = std::move(table);
  }
  std::vector<RecordedTable> list;
  for (auto& [key, table] : tables) list.push_back(std::move(table));
  return list;
}

std::string TablesText(const std::vector<RecordedTable>& tables, Library library) {
  std::string text = "# collective,bytes,algorithm,ll,ll128,simple\n";
  for (const RecordedTable& table : tables) {
    for (int a = 0; a < table.cost.algorithms; ++a) {
      const std::string_view name = AlgorithmName(library, table.collective, a);
      if (name == "?") continue;
      text += Format("{},{},{}", std::string(CollectiveName(table.collective)), table.bytes,
                     std::string(name));
      for (int p = 0; p < table.cost.protocols; ++p) {
        const float cost = table.cost.cells[table.cost.Index(a, p)];
        text += std::isfinite(cost) ? Format(",{:.6g}", cost) : ",-1";
      }
      text += "\n";
    }
  }
  return text;
}

Result<std::vector<RecordedTable>> ReadTables(const std::string& path, Library library) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  if (!Trim(text).starts_with('{')) return ParseText(text, path, library);
  ASSIGN_OR_RETURN(const journal::JournalContents contents, journal::ParseJournal(text, path));
  std::vector<RecordedTable> tables = TablesOf(contents);
  if (tables.empty()) {
    return Invalid("'" + path + "' holds no cost tables: write it with DIAPASON_JOURNAL_TABLES=1");
  }
  return tables;
}

const RecordedTable* Nearest(const std::vector<RecordedTable>& tables, Collective collective,
                             uint64_t bytes) {
  const RecordedTable* best = nullptr;
  double best_distance = 0;
  for (const RecordedTable& table : tables) {
    if (table.collective != collective) continue;
    const double distance = std::abs(std::log2(1.0 + static_cast<double>(table.bytes)) -
                                     std::log2(1.0 + static_cast<double>(bytes)));
    if (best == nullptr || distance < best_distance) {
      best = &table;
      best_distance = distance;
    }
  }
  return best;
}

CostTableArgs EveryPair(Collective collective) {
  CostTableArgs cost;
  for (int a = 0; a < cost.algorithms; ++a) {
    for (int p = 0; p < cost.protocols; ++p) {
      cost.cells.push_back(PairExists(collective, a, p) ? kOnOffer : -1.0f);
    }
  }
  return cost;
}

}  // namespace diapason::client
