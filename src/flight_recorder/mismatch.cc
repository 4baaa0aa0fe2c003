#include "flight_recorder/mismatch.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "flight_recorder/words.h"

namespace diapason::flight_recorder {
namespace {

// One rank's entry of a collective. `part` counts the operations of a batch.
struct Record {
  int64_t sequence = 0;
  uint32_t part = 0;
  uint32_t rank = 0;
  const Op* op = nullptr;
};

// What all ranks have to have in common; -1 and "" fit everything.
struct Terms {
  std::string operation;
  int64_t elements = -1;
  std::string type;
};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Terms TermsOf(const Call& call) {
  Terms terms;
  terms.operation = call.operation;
  const std::string& name = call.operation;
  if (name == "coalesced" || Contains(name, "_oop")) return terms;
  terms.type = call.input_types;
  // Ranks send and receive different amounts.
  if (Contains(name, "all_to_all") || Contains(name, "alltoall")) return terms;
  terms.elements = call.input_elements;
  // A list of tensors may be uneven: all of it is the same on every rank.
  const bool root_has_input = name == "scatter";
  if (name == "all_gather" || name == "allgather" || root_has_input) {
    terms.elements = call.output_elements;
    if (root_has_input) terms.type = call.output_types;
  }
  return terms;
}

// The variants by one of the terms; entries without it belong to every variant.
template <typename Key, typename KeyOf>
std::vector<Mismatch::Variant> Partition(const JobProgress& job, const std::vector<Record>& records,
                                         const Key& any, const KeyOf& key_of) {
  std::map<Key, Mismatch::Variant> variants;
  for (const Record& record : records) {
    const Entry& entry = *record.op->entry;
    if (entry.call >= job.record().calls.size()) continue;
    const Key key = key_of(TermsOf(job.record().calls[entry.call]));
    if (key == any) continue;
    Mismatch::Variant& variant = variants[key];
    if (variant.entry == nullptr) variant.entry = &entry;
    variant.ranks.push_back(record.rank);
  }
  std::vector<Mismatch::Variant> list;
  for (auto& [key, variant] : variants) {
    variant.call = job.record().CallText(*variant.entry);
    list.push_back(std::move(variant));
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() > b.ranks.size(); });
  return list;
}

// Compares the records of one collective; false if they fit.
bool Compare(const JobProgress& job, const std::vector<Record>& records, Mismatch* found) {
  found->kind = Mismatch::Kind::kOperation;
  found->variants =
      Partition(job, records, std::string(), [](const Terms& terms) { return terms.operation; });
  if (found->variants.size() > 1) return true;
  found->kind = Mismatch::Kind::kSize;
  found->variants =
      Partition(job, records, int64_t{-1}, [](const Terms& terms) { return terms.elements; });
  if (found->variants.size() > 1) return true;
  found->kind = Mismatch::Kind::kType;
  found->variants =
      Partition(job, records, std::string(), [](const Terms& terms) { return terms.type; });
  return found->variants.size() > 1;
}

bool Exchanges(std::string_view operation) {
  return Contains(operation, "all_to_all") || Contains(operation, "alltoall");
}

// Versions before 2.4 did not write the sizes of an all_to_all.
bool HasExchangeSizes(const std::string& version) {
  return version != "2.0" && version != "2.1" && version != "2.2" && version != "2.3";
}

// What all ranks send together is what they receive together.
bool ExchangeDiffers(const JobProgress& job, const std::vector<Record>& records, uint32_t group,
                     Mismatch* found) {
  const std::vector<Call>& calls = job.record().calls;
  if (records.size() != job.Members(group).size()) return false;
  int64_t sent = 0;
  int64_t received = 0;
  for (const Record& record : records) {
    const Entry& entry = *record.op->entry;
    if (entry.call >= calls.size() || !Exchanges(calls[entry.call].operation)) return false;
    const Call& call = calls[entry.call];
    if (call.input_elements < 0 || call.output_elements < 0) return false;
    if (!HasExchangeSizes(job.rank(record.rank).dump->version)) return false;
    if (__builtin_add_overflow(sent, call.input_elements, &sent) ||
        __builtin_add_overflow(received, call.output_elements, &received)) {
      return false;
    }
  }
  if (sent == received) return false;
  found->kind = Mismatch::Kind::kExchange;
  found->variants.clear();
  Mismatch::Variant all;
  all.entry = records[0].op->entry;
  for (const Record& record : records) all.ranks.push_back(record.rank);
  all.call = Format("{}: together they send {} elements and expect {}",
                    job.record().Operation(*all.entry), sent, received);
  found->variants.push_back(std::move(all));
  return true;
}

// The records of a group from one index on that belong to the same collective and part.
std::vector<Record> Next(const std::vector<Record>& records, size_t at) {
  std::vector<Record> same;
  for (size_t i = at; i < records.size() && records[i].sequence == records[at].sequence &&
                      records[i].part == records[at].part;
       ++i) {
    same.push_back(records[i]);
  }
  return same;
}

bool AllEqual(const std::vector<Record>& records) {
  return std::all_of(records.begin(), records.end(), [&](const Record& record) {
    return record.op->entry->call == records[0].op->entry->call;
  });
}

// The text of a rank's collective `sequence`; "" if its dump has none.
std::string CallAt(const JobProgress& job, const std::vector<Record>& records, uint32_t rank,
                   int64_t sequence) {
  auto at = std::lower_bound(records.begin(), records.end(), sequence,
                             [](const Record& r, int64_t value) { return r.sequence < value; });
  for (; at != records.end() && at->sequence == sequence; ++at) {
    if (at->rank == rank) return job.record().CallText(*at->op->entry);
  }
  return "";
}

// How the orders of calls of the two largest variants differ.
std::string OrderRemark(const JobProgress& job, const std::vector<Record>& records,
                        const Mismatch& found) {
  const Mismatch::Variant& most = found.variants[0];
  const Mismatch::Variant& odd = found.variants[1];
  const std::string most_next = CallAt(job, records, most.ranks[0], found.sequence + 1);
  const std::string odd_next = CallAt(job, records, odd.ranks[0], found.sequence + 1);
  if (most_next.empty() && odd_next.empty()) return "";
  if (most_next == odd.call && odd_next == most.call) {
    return "they make the same two calls in another order";
  }
  std::vector<int64_t> ranks;
  for (const uint32_t rank : odd.ranks) ranks.push_back(job.rank(rank).dump->rank);
  const std::string odd_words = RankWords(ranks);
  const bool one = ranks.size() == 1;
  if (most_next == odd.call && most_next != most.call) {
    return odd_words + (one ? " skips" : " skip") + " a call that the others make";
  }
  if (odd_next == most.call && odd_next != odd.call) {
    return odd_words + (one ? " makes" : " make") + " a call that the others do not make";
  }
  return "";
}

// The first mismatch of a group's records, sorted by sequence; blocking ones count before others.
bool FirstMismatch(const JobProgress& job, uint32_t group, const std::vector<Record>& records,
                   Mismatch* first) {
  bool any = false;
  for (size_t at = 0; at < records.size();) {
    const std::vector<Record> same = Next(records, at);
    at += same.size();
    if (same.size() < 2) continue;
    Mismatch found;
    found.group = group;
    found.sequence = same[0].sequence;
    const bool exchange = Exchanges(job.record().Operation(*same[0].op->entry));
    if (!exchange && AllEqual(same)) continue;
    size_t open = 0;
    for (const Record& record : same) open += record.op->open ? 1 : 0;
    found.open = open > 0;
    // Batches of sends count as collectives on the ranks that take part in them, so that numbers of
    // such groups differ between ranks.
    if (job.HasP2p(group) && open < same.size()) continue;
    if (!found.open && any) continue;
    if (!Compare(job, same, &found) &&
        !(found.open && exchange && ExchangeDiffers(job, same, group, &found))) {
      continue;
    }
    if (found.variants.size() > 1) {
      found.tie = found.variants[0].ranks.size() == found.variants[1].ranks.size();
      found.remark = OrderRemark(job, records, found);
    }
    *first = std::move(found);
    any = true;
    if (first->open) break;
  }
  return any;
}

}  // namespace

std::vector<Mismatch> FindMismatches(const JobProgress& job) {
  std::vector<std::vector<Record>> groups(job.record().groups.size());
  for (size_t rank = 0; rank < job.ranks().size(); ++rank) {
    std::map<uint32_t, std::pair<int64_t, uint32_t>> last;  // sequence and part of each group
    for (const Op& op : job.rank(rank).ops) {
      if (op.entry->p2p || op.entry->sequence < 0) continue;
      auto& [sequence, part] = last.emplace(op.entry->group, std::pair(-1, 0)).first->second;
      part = sequence == op.entry->sequence ? part + 1 : 0;
      sequence = op.entry->sequence;
      groups[op.entry->group].push_back({sequence, part, static_cast<uint32_t>(rank), &op});
    }
  }
  std::vector<Mismatch> found;
  for (size_t group = 0; group < groups.size(); ++group) {
    std::vector<Record>& records = groups[group];
    std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
      return std::tie(a.sequence, a.part, a.rank) < std::tie(b.sequence, b.part, b.rank);
    });
    Mismatch first;
    if (FirstMismatch(job, static_cast<uint32_t>(group), records, &first)) {
      found.push_back(std::move(first));
    }
    records = {};
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Mismatch& a, const Mismatch& b) { return a.open && !b.open; });
  return found;
}

bool PairDiffers(const JobProgress& job, const Op& send, const Op& receive) {
  const std::vector<Call>& calls = job.record().calls;
  if (send.entry->call >= calls.size() || receive.entry->call >= calls.size()) return false;
  const Call& sent = calls[send.entry->call];
  const Call& expected = calls[receive.entry->call];
  if (sent.input_elements >= 0 && expected.output_elements >= 0 &&
      sent.input_elements != expected.output_elements) {
    return true;
  }
  return !sent.input_types.empty() && !expected.output_types.empty() &&
         sent.input_types != expected.output_types;
}

}  // namespace diapason::flight_recorder
