#include "agree/arena.h"

#include <algorithm>
#include <cstring>

#include "agree/arena_layout.h"
#include "agree/store.h"
#include "base/encoding.h"
#include "base/random.h"

namespace diapason::agree {

using arena_layout::ArenaHeader;
using arena_layout::Atomic;
using arena_layout::BlockHeader;
using arena_layout::Control;
using arena_layout::Damaged;
using arena_layout::kBuckets;
using arena_layout::kEnded;
using arena_layout::kFirstBlock;
using arena_layout::kHeadsAt;
using arena_layout::kRegionBuckets;

namespace {

constexpr uint32_t kTableAt = offsetof(Control, table);
constexpr uint32_t kNewestAt = offsetof(Control, newest);
constexpr uint32_t kLargeAt = offsetof(Control, large);
constexpr uint32_t kDoneAt = offsetof(Control, done);

uint64_t HeaderCheck(const ArenaHeader& header) {
  return MixBits(header.nonce ^ MixBits(header.size ^ MixBits(header.buckets)));
}

uint64_t SealedWith(uint64_t nonce, uint32_t place, uint32_t content) {
  const uint64_t check = MixBits(nonce ^ MixBits((static_cast<uint64_t>(place) << 32) | content));
  return (check << 32) | content;
}

// "c<id>.<generation>." at the beginning of a communicator's keys; "" of all others.
std::string_view RegionOf(std::string_view key) {
  if (key.empty() || key.front() != 'c') return {};
  const size_t first = key.find('.');
  if (first == std::string_view::npos) return {};
  const size_t second = key.find('.', first + 1);
  if (second == std::string_view::npos) return {};
  return key.substr(0, second + 1);
}

}  // namespace

// Precedes the characters of the key and the bytes of the value.
struct Arena::Entry {
  uint32_t next = 0;
  uint32_t key_length = 0;
  uint32_t value_length = 0;
  uint32_t unused = 0;
  uint64_t check = 0;  // checksum of these members, the key, and the entry's place
  uint64_t value_check = 0;
};

uint64_t Arena::FirstBytes() { return kFirstBlock; }

void Arena::Prepare(void* memory, uint64_t size, uint64_t nonce) {
  ArenaHeader header{};
  std::memcpy(header.magic, arena_layout::kMagic, sizeof(header.magic));
  header.buckets = kBuckets;
  header.size = size;
  header.nonce = nonce;
  header.check = HeaderCheck(header);
  header.used = kFirstBlock;
  std::memcpy(memory, &header, sizeof(header));
  Arena arena(memory, size);
  arena.Clear(offsetof(ArenaHeader, common), sizeof(Control) / sizeof(uint64_t));
  arena.Clear(kHeadsAt, kBuckets);
}

Status Arena::Check(const void* memory, uint64_t size) {
  ArenaHeader header;
  // Without `used` and the members after it, which other processes change.
  std::memcpy(&header, memory, offsetof(ArenaHeader, used));
  if (std::memcmp(header.magic, arena_layout::kMagic, sizeof(header.magic)) != 0) {
    return Unavailable("it was made by another version of diapason, or by another program");
  }
  if (header.size != size || header.buckets != kBuckets || header.check != HeaderCheck(header)) {
    return Damaged("its beginning");
  }
  return {};
}

Arena::Arena(void* memory, uint64_t size, std::function<void()> between)
    : memory_(static_cast<char*>(memory)), size_(size), between_(std::move(between)) {
  std::memcpy(&nonce_, memory_ + offsetof(ArenaHeader, nonce), sizeof(nonce_));
}

// Initialises words that point nowhere yet.
void Arena::Clear(uint32_t place, uint32_t words) {
  for (uint32_t i = 0; i < words; ++i) {
    const uint32_t at = place + i * static_cast<uint32_t>(sizeof(uint64_t));
    const uint64_t word = SealedWith(nonce_, at, 0);
    std::memcpy(memory_ + at, &word, sizeof(word));
  }
}

Result<uint32_t> Arena::Load(uint32_t place) const {
  const uint64_t word = Atomic(memory_, place).load(std::memory_order_acquire);
  const auto content = static_cast<uint32_t>(word);
  if (word != SealedWith(nonce_, place, content)) return Damaged("a word that leads to others");
  return content;
}

bool Arena::Swap(uint32_t place, uint32_t before, uint32_t after) {
  uint64_t expected = SealedWith(nonce_, place, before);
  return Atomic(memory_, place)
      .compare_exchange_strong(expected, SealedWith(nonce_, place, after),
                               std::memory_order_acq_rel);
}

uint64_t Arena::EntryCheck(uint32_t offset, const Entry& entry, std::string_view key) const {
  uint64_t check = MixBits(nonce_ ^ offset);
  check = MixBits(check ^ ((static_cast<uint64_t>(entry.next) << 32) | entry.key_length));
  check = MixBits(check ^ ((static_cast<uint64_t>(entry.value_length) << 32) | entry.unused));
  check = MixBits(check ^ entry.value_check);
  return MixBits(check ^ Fnv1a64(key));
}

Result<std::optional<std::string>> Arena::Find(uint32_t first, uint32_t last,
                                               std::string_view key) const {
  const uint64_t limit = Limit();
  // Longer than any chain can be: a damaged chain may be a cycle.
  uint64_t steps = limit / sizeof(Entry) + 1;
  for (uint32_t offset = first; offset != last;) {
    if (offset == 0) return Damaged("a chain that ends too early");
    if (steps-- == 0) return Damaged("a chain without an end");
    if (offset < kFirstBlock || offset % 8 != 0 || offset + sizeof(Entry) > limit) {
      return Damaged("an entry out of bounds");
    }
    Entry entry;
    std::memcpy(&entry, memory_ + offset, sizeof(entry));
    if (entry.key_length > kLongestKey || entry.value_length > kLongestValue ||
        offset + sizeof(entry) + entry.key_length + entry.value_length > limit) {
      return Damaged("the size of an entry");
    }
    char name[kLongestKey];
    std::memcpy(name, memory_ + offset + sizeof(entry), entry.key_length);
    const std::string_view found(name, entry.key_length);
    // Entries other than the one sought are checked too: a damaged key would hide a cell.
    if (entry.check != EntryCheck(offset, entry, found)) return Damaged("an entry");
    if (found == key) {
      std::string value(memory_ + offset + sizeof(entry) + entry.key_length, entry.value_length);
      if (Fnv1a64(value) != entry.value_check) return Damaged("a value");
      return std::optional<std::string>(std::move(value));
    }
    offset = entry.next;
  }
  return std::optional<std::string>();
}

Arena::Table Arena::Common() {
  return {kHeadsAt, kBuckets, static_cast<uint32_t>(offsetof(ArenaHeader, common)), 0};
}

uint32_t Arena::Table::HeadOf(std::string_view key) const {
  return heads + static_cast<uint32_t>(Fnv1a64(key) % buckets * sizeof(uint64_t));
}

Result<uint32_t> Arena::CheckedControl(const std::string& value) const {
  uint32_t control = 0;
  if (value.size() != sizeof(control)) return Damaged("the name of a region");
  std::memcpy(&control, value.data(), sizeof(control));
  if (control < kFirstBlock || control % 8 != 0 || control + sizeof(Control) > Limit()) {
    return Damaged("a region out of bounds");
  }
  return control;
}

// Where the control words of a region are. The region's name is stored as a common cell; no other
// cell can have this key, because keys of this form belong to the region itself.
Result<std::optional<uint32_t>> Arena::FindControl(std::string_view region) const {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, ReadIn(Common(), region));
  if (!name) return std::optional<uint32_t>();
  ASSIGN_OR_RETURN(const uint32_t control, CheckedControl(*name));
  return std::optional<uint32_t>(control);
}

Result<uint32_t> Arena::MakeControl(std::string_view region) {
  ASSIGN_OR_RETURN(const std::optional<uint32_t> found, FindControl(region));
  if (found) return *found;
  ASSIGN_OR_RETURN(const Room room, Take(Common(), sizeof(Control)));
  const uint32_t ours = room.offset;
  Clear(ours, sizeof(Control) / sizeof(uint64_t));
  const std::string value(reinterpret_cast<const char*>(&ours), sizeof(ours));
  const Result<std::string> stands = ProposeIn(Common(), region, value);
  if (!stands.ok() || stands.value() != value) GiveBack(room);
  if (!stands.ok()) return stands.status();
  return CheckedControl(stands.value());
}

Result<std::optional<Arena::Table>> Arena::TableOf(uint32_t control) const {
  ASSIGN_OR_RETURN(const uint32_t block, Load(control + kTableAt));
  if (block == 0) return std::optional<Table>();
  if (block == kEnded) {
    return Unavailable("a cell is asked for of a communicator that all its members have ended");
  }
  if (!GoodBlock(block, 1)) return Damaged("a region's first block");
  const auto heads = static_cast<uint32_t>(block + sizeof(BlockHeader));
  return std::optional<Table>(Table{heads, kRegionBuckets, control, block});
}

Result<std::optional<Arena::Table>> Arena::FindTable(std::string_view key) const {
  const std::string_view region = RegionOf(key);
  if (region.empty()) return std::optional<Table>(Common());
  ASSIGN_OR_RETURN(const std::optional<uint32_t> control, FindControl(region));
  if (!control) return std::optional<Table>();
  return TableOf(*control);
}

Result<Arena::Table> Arena::MakeTable(std::string_view key) {
  const std::string_view region = RegionOf(key);
  if (region.empty()) return Common();
  ASSIGN_OR_RETURN(const uint32_t control, MakeControl(region));
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<Table> table, TableOf(control));
    if (table) return *table;
    ASSIGN_OR_RETURN(const uint32_t block, TakeBlocks(1));
    Clear(block + static_cast<uint32_t>(sizeof(BlockHeader)), kRegionBuckets);
    const auto used =
        static_cast<uint32_t>(sizeof(BlockHeader) + kRegionBuckets * sizeof(uint64_t));
    if (!LinkBlock({control + kTableAt, 0, 0}, block, 1, used)) {
      FreeBlocks(block, 1);
    }
  }
}

Result<std::optional<std::string>> Arena::ReadIn(const Table& table, std::string_view key) const {
  ASSIGN_OR_RETURN(const uint32_t head, Load(table.HeadOf(key)));
  return Find(head, 0, key);
}

Result<std::optional<std::string>> Arena::Read(std::string_view key) const {
  ASSIGN_OR_RETURN(const std::optional<Table> table, FindTable(key));
  if (!table) return std::optional<std::string>();
  return ReadIn(*table, key);
}

Result<std::string> Arena::Propose(std::string_view key, std::string_view value) {
  ASSIGN_OR_RETURN(const Table table, MakeTable(key));
  return ProposeIn(table, key, value);
}

Result<std::string> Arena::ProposeIn(const Table& table, std::string_view key,
                                     std::string_view value) {
  ASSIGN_OR_RETURN(const uint32_t head, Load(table.HeadOf(key)));
  ASSIGN_OR_RETURN(std::optional<std::string> standing, Find(head, 0, key));
  if (standing) return *std::move(standing);
  ASSIGN_OR_RETURN(const Room room,
                   Take(table, (sizeof(Entry) + key.size() + value.size() + 7) / 8 * 8));
  if (between_) between_();
  return Publish(table, key, value, room, head);
}

Result<std::string> Arena::Publish(const Table& table, std::string_view key, std::string_view value,
                                   const Room& room, uint32_t head) {
  Entry entry;
  entry.key_length = static_cast<uint32_t>(key.size());
  entry.value_length = static_cast<uint32_t>(value.size());
  entry.value_check = Fnv1a64(value);
  char* place = memory_ + room.offset;
  std::memcpy(place + sizeof(entry), key.data(), key.size());
  std::memcpy(place + sizeof(entry) + key.size(), value.data(), value.size());
  while (true) {
    entry.next = head;
    entry.check = EntryCheck(room.offset, entry, key);
    std::memcpy(place, &entry, sizeof(entry));
    if (Swap(table.HeadOf(key), head, room.offset)) {
      if (room.span != 0 && table.first_block != 0) LinkLarge(table.control, room);
      return std::string(value);
    }
    // Another process was faster, with this key or another one of the chain.
    ASSIGN_OR_RETURN(const uint32_t now, Load(table.HeadOf(key)));
    ASSIGN_OR_RETURN(std::optional<std::string> standing, Find(now, head, key));
    if (standing) {
      // Joining ranks race with values that can be large: a losing proposal must not fill the
      // arena.
      GiveBack(room);
      return *std::move(standing);
    }
    head = now;
  }
}

Status Arena::Done(std::string_view prefix, uint32_t members) {
  if (prefix.empty() || RegionOf(prefix) != prefix) return {};
  ASSIGN_OR_RETURN(const uint32_t control, MakeControl(prefix));
  uint32_t done = 0;
  do {
    ASSIGN_OR_RETURN(const uint32_t before, Load(control + kDoneAt));
    done = before + 1;
  } while (!Swap(control + kDoneAt, done - 1, done));
  if (done != members) return {};
  return End(control);
}

// First clears the words that point to the region's blocks, and then frees the blocks.
Status Arena::End(uint32_t control) {
  const Result<uint32_t> table = Load(control + kTableAt);
  const Result<uint32_t> newest = Load(control + kNewestAt);
  const Result<uint32_t> large = Load(control + kLargeAt);
  for (const Result<uint32_t>* word : {&table, &newest, &large}) {
    if (!word->ok()) return word->status();
  }
  if (!Swap(control + kTableAt, table.value(), kEnded)) return Damaged("a region that ends");
  FreeChain(newest.value() != 0 ? newest.value() : table.value());
  FreeChain(large.value());
  return {};
}

}  // namespace diapason::agree
