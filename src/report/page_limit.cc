#include <algorithm>
#include <set>

#include "base/text.h"
#include "report/page_data.h"

namespace diapason::report {
namespace {

// The longest prefix that does not split a character.
void Cut(size_t limit, std::string* text) {
  if (text->size() <= limit) return;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>((*text)[end]) & 0xc0) == 0x80) --end;
  text->resize(end);
  *text += "...";
}

void Cut(size_t limit, std::vector<std::string>* texts) {
  for (std::string& text : *texts) Cut(limit, &text);
}

template <typename Row>
void Shorten(size_t limit, const char* noun, std::vector<Row>* rows, PageData* data) {
  if (rows->size() <= limit) return;
  data->notes.push_back(Format("{} of {} left out, to keep this file small",
                               Count(rows->size() - limit, noun), std::to_string(rows->size())));
  rows->resize(limit);
}

void CutTexts(size_t limit, PageData* data) {
  Cut(limit, &data->title);
  Cut(4 * limit, &data->use.policy);
  Cut(8 * limit, &data->use.lines);
  Cut(limit, &data->notes);
  for (PageConfig& config : data->configs) {
    for (std::string* text :
         {&config.text, &config.algorithm, &config.protocol, &config.environment}) {
      Cut(limit, text);
    }
  }
  for (PagePlace& place : data->places) {
    for (std::string* text : {&place.library, &place.version, &place.gpu, &place.driver,
                              &place.topology, &place.hosts, &place.tool}) {
      Cut(limit, text);
    }
  }
  for (PageRun& run : data->runs) {
    for (std::string* text : {&run.id, &run.source, &run.origin}) Cut(limit, text);
  }
  for (PageGroup& group : data->groups) {
    for (std::string* text :
         {&group.label, &group.shape, &group.context.collective, &group.context.type,
          &group.context.reduce, &group.context.workload}) {
      Cut(limit, text);
    }
  }
  for (PageMap& map : data->maps) {
    for (std::string* text : {&map.name, &map.origin}) Cut(limit, text);
    for (PageMapRow& row : map.rows) {
      Cut(limit, &row.label);
      for (PageDecision& decision : row.decisions) {
        for (std::string* text : {&decision.row, &decision.remark, &decision.why}) Cut(limit, text);
      }
    }
  }
  for (PageFailure& failure : data->failures) Cut(limit, &failure.note);
  for (PageLearning& learning : data->learning) {
    Cut(limit, &learning.label);
    Cut(limit, &learning.journal);
  }
  for (PageJournal& journal : data->journals) {
    for (std::string* text : {&journal.name, &journal.host, &journal.communicators}) {
      Cut(limit, text);
    }
  }
  for (PageVariable& variable : data->variables) {
    Cut(limit, &variable.name);
    Cut(limit, &variable.value);
  }
  for (std::vector<Finding>* const findings : {&data->trust, &data->doctor.findings}) {
    for (Finding& finding : *findings) {
      Cut(limit, &finding.title);
      Cut(limit, &finding.evidence);
      Cut(limit, &finding.action);
    }
  }
  Cut(limit, &data->agreement.problems);
  Cut(limit, &data->agreement.notes);
}

// The default, the choice, the best and its ties come first; then by speed.
void LimitCells(size_t limit, PageData* data) {
  struct Rank {
    bool matters;
    double ratio;
  };
  const auto rank = [](const PageSize& size, const PageCell& cell) -> Rank {
    return {cell.config == 0 || cell.config == size.chosen || &cell == &size.cells.front(),
            cell.time.median / size.cells.front().time.median};
  };
  size_t all = 0;
  size_t mattering = 0;
  std::vector<double> ratios;
  for (const PageGroup& group : data->groups) {
    for (const PageSize& size : group.sizes) {
      all += size.cells.size();
      for (const PageCell& cell : size.cells) {
        const Rank one = rank(size, cell);
        mattering += one.matters ? 1 : 0;
        if (!one.matters) ratios.push_back(one.ratio);
      }
    }
  }
  if (all <= limit) return;
  const size_t room = limit - std::min(limit, mattering);
  double most = 0;  // no ratio is below 1
  if (room > 0) {
    const auto place = ratios.begin() + static_cast<ptrdiff_t>(std::min(room, ratios.size()) - 1);
    std::nth_element(ratios.begin(), place, ratios.end());
    most = *place;
  }
  size_t budget = limit;
  for (PageGroup& group : data->groups) {
    for (PageSize& size : group.sizes) {
      std::vector<PageCell> kept;
      for (const PageCell& cell : size.cells) {
        const Rank one = rank(size, cell);
        if (budget == 0 || (!one.matters && one.ratio > most)) {
          ++size.left_out;
          continue;
        }
        --budget;
        kept.push_back(cell);
      }
      size.cells = std::move(kept);
    }
    std::erase_if(group.sizes, [](const PageSize& size) { return size.cells.empty(); });
  }
  data->notes.push_back(
      Format("{} of {} figures are not in this file, to keep it small: of every size the slowest "
             "configurations. The store has them all (diapason data export)",
             all - (limit - budget), all));
}

// Real stores have few contexts. Removes the failures and map rows of removed contexts, too.
void LimitGroups(size_t limit, PageData* data) {
  Shorten(limit, "context", &data->groups, data);
  std::erase_if(data->failures, [&](const PageFailure& one) { return one.group >= limit; });
  for (PageMap& map : data->maps) {
    std::erase_if(map.rows,
                  [&](const PageMapRow& row) { return row.group >= static_cast<int>(limit); });
  }
  for (PageGroup& group : data->groups) Shorten(limit, "verified size", &group.verified, data);
}

// Keeps every n-th block, so that curves keep their shape; every arm keeps its share of them.
void LimitBlocks(size_t limit, PageData* data) {
  size_t all = 0;
  for (const PageLearning& learning : data->learning) all += learning.blocks.size();
  if (all <= limit) return;
  const size_t step = (all + limit - 1) / std::max<size_t>(limit, 1);
  for (PageLearning& learning : data->learning) {
    std::vector<size_t> seen(learning.arms.size());
    std::vector<PageLearning::Block> kept;
    for (const PageLearning::Block& block : learning.blocks) {
      if (seen[block.arm]++ % step == 0) kept.push_back(block);
    }
    learning.left_out = learning.blocks.size() - kept.size();
    learning.blocks = std::move(kept);
  }
  data->notes.push_back(
      Format("of the learning curves one block in {} is drawn, to keep this file small", step));
}

// Distributions of later contexts go first.
void LimitSpreads(size_t limit, PageData* data) {
  size_t left = limit;
  bool cut = false;
  const auto take = [&](std::vector<PageSpread>* spreads) {
    if (spreads->size() <= left) {
      left -= spreads->size();
      return;
    }
    spreads->clear();
    cut = true;
  };
  for (PageGroup& group : data->groups) {
    for (PageVerified& one : group.verified) take(&one.spreads);
    for (PageSize& size : group.sizes) take(&size.spreads);
  }
  if (cut)
    data->notes.push_back("some distributions of samples are left out, to keep this file small");
}

// Removes configurations without references.
void DropConfigs(PageData* data) {
  std::vector<int> numbers(data->configs.size(), -1);
  numbers[0] = 0;
  const auto each = [&](const auto& visit) {
    for (PageGroup& group : data->groups) {
      for (PageSize& size : group.sizes) {
        if (size.chosen >= 0) visit(&size.chosen);
        for (PageCell& cell : size.cells) visit(&cell.config);
        for (PageSpread& spread : size.spreads) visit(&spread.config);
      }
      for (PageVerified& verified : group.verified) {
        visit(&verified.config);
        for (PageSpread& spread : verified.spreads) visit(&spread.config);
      }
      for (auto& [bytes, decided] : group.decided) visit(&decided);
    }
    for (PageMap& map : data->maps) {
      for (PageMapRow& row : map.rows) {
        for (PageDecision& decision : row.decisions) visit(&decision.config);
      }
    }
    for (PageFailure& failure : data->failures) visit(&failure.config);
    for (PageLearning& learning : data->learning) {
      for (PageLearning::Arm& arm : learning.arms) visit(&arm.config);
    }
  };
  each([&](const int* config) { numbers[static_cast<size_t>(*config)] = 0; });
  std::vector<PageConfig> kept;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0) continue;
    numbers[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(data->configs[i]));
  }
  each([&](int* config) { *config = numbers[static_cast<size_t>(*config)]; });
  data->configs = std::move(kept);
}

}  // namespace

PageLimits PageLimits::Smaller() const {
  const auto less = [](size_t value, size_t least) { return std::max(value * 3 / 4, least); };
  return {less(cells, 50), less(rows, 5), less(blocks, 50), less(text, 40), less(spreads, 0)};
}

void LimitPage(const PageLimits& limits, PageData* data) {
  LimitGroups(limits.rows, data);
  LimitCells(limits.cells, data);
  LimitBlocks(limits.blocks, data);
  LimitSpreads(limits.spreads, data);
  Shorten(limits.rows, "failure", &data->failures, data);
  Shorten(limits.rows, "run", &data->runs, data);
  Shorten(limits.rows, "variable", &data->variables, data);
  Shorten(limits.rows, "headline", &data->other_headlines, data);
  Shorten(limits.rows, "headline", &data->other_iterations, data);
  Shorten(limits.rows, "journal", &data->journals, data);
  Shorten(limits.rows, "finding", &data->doctor.findings, data);
  Shorten(limits.rows, "learning curve", &data->learning, data);
  Shorten(limits.rows, "difference", &data->agreement.first, data);
  Shorten(limits.rows, "spread", &data->agreement.spreads, data);
  for (PageMap& map : data->maps) {
    Shorten(limits.rows, "line of a map", &map.rows, data);
    for (PageMapRow& row : map.rows) Shorten(limits.rows, "decision", &row.decisions, data);
  }
  CutTexts(limits.text, data);
  DropConfigs(data);
}

}  // namespace diapason::report
