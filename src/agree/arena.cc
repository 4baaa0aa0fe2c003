#include "agree/arena.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "agree/store.h"
#include "base/encoding.h"
#include "base/random.h"
#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr char kMagic[8] = {'d', 'i', 'a', 'p', 'a', 'r', 'e', '1'};
constexpr uint64_t kBuckets = 8192;
constexpr uint64_t kHeadsAt = 128;
constexpr uint64_t kFirstEntry = kHeadsAt + kBuckets * sizeof(uint64_t);

struct Header {
  char magic[8];
  uint64_t buckets;
  uint64_t size;
  uint64_t nonce;
  uint64_t check;
  char apart[24];  // what never changes and what always does are on different cache lines
  uint64_t used;
};
static_assert(sizeof(Header) <= kHeadsAt);

uint64_t HeaderCheck(const Header& header) {
  return MixBits(header.nonce ^ MixBits(header.size ^ MixBits(header.buckets)));
}

std::atomic_ref<uint64_t> Used(char* memory) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory + offsetof(Header, used)));
}

uint64_t HeadWordOf(uint64_t nonce, uint64_t bucket, uint32_t offset) {
  const uint64_t check = MixBits(nonce ^ MixBits((bucket << 32) | offset));
  return (check << 32) | offset;
}

Status Damaged(const char* what) {
  return Unavailable(Format("the memory in which the ranks agree is damaged (%s)", what));
}

}  // namespace

// In front of the key's letters and the value's bytes.
struct Arena::Entry {
  uint32_t next = 0;
  uint32_t key_length = 0;
  uint32_t value_length = 0;
  uint32_t unused = 0;
  uint64_t check = 0;  // of all this, the key, and where it is
  uint64_t value_check = 0;
};

uint64_t Arena::FirstBytes() { return kFirstEntry; }

void Arena::Prepare(void* memory, uint64_t size, uint64_t nonce) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.buckets = kBuckets;
  header.size = size;
  header.nonce = nonce;
  header.check = HeaderCheck(header);
  header.used = kFirstEntry;
  std::memcpy(memory, &header, sizeof(header));
  auto* heads = reinterpret_cast<uint64_t*>(static_cast<char*>(memory) + kHeadsAt);
  for (uint64_t bucket = 0; bucket < kBuckets; ++bucket) {
    heads[bucket] = HeadWordOf(nonce, bucket, 0);
  }
}

Status Arena::Check(const void* memory, uint64_t size) {
  Header header;
  // Not `used`, which others are changing.
  std::memcpy(&header, memory, offsetof(Header, used));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return Unavailable("it was made by another version of diapason, or by another program");
  }
  if (header.size != size || header.buckets != kBuckets || header.check != HeaderCheck(header)) {
    return Damaged("its beginning");
  }
  return {};
}

Arena::Arena(void* memory, uint64_t size, Commit commit)
    : memory_(static_cast<char*>(memory)), size_(size), commit_(std::move(commit)) {
  std::memcpy(&nonce_, memory_ + offsetof(Header, nonce), sizeof(nonce_));
}

uint64_t* Arena::Head(uint64_t bucket) const {
  return reinterpret_cast<uint64_t*>(memory_ + kHeadsAt) + bucket;
}

uint64_t Arena::HeadWord(uint64_t bucket, uint32_t offset) const {
  return HeadWordOf(nonce_, bucket, offset);
}

Result<uint32_t> Arena::LoadHead(uint64_t bucket) const {
  const uint64_t word = std::atomic_ref<uint64_t>(*Head(bucket)).load(std::memory_order_acquire);
  const auto offset = static_cast<uint32_t>(word);
  if (word != HeadWord(bucket, offset)) return Damaged("the head of a chain");
  return offset;
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
  const uint64_t limit = std::min(size_, Used(memory_).load(std::memory_order_acquire));
  // Longer than any chain can be: a damaged one may be a ring.
  uint64_t steps = limit / sizeof(Entry) + 1;
  for (uint32_t offset = first; offset != last;) {
    if (offset == 0) return Damaged("a chain that ends too early");
    if (steps-- == 0) return Damaged("a chain without an end");
    if (offset < kFirstEntry || offset % 8 != 0 || offset + sizeof(Entry) > limit) {
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
    // Also of entries that are not the one sought: one whose name has changed is a lost cell.
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

Result<std::optional<std::string>> Arena::Read(std::string_view key) const {
  const Result<uint32_t> head = LoadHead(Fnv1a64(key) % kBuckets);
  if (!head.ok()) return head.status();
  return Find(head.value(), 0, key);
}

Result<uint32_t> Arena::Take(uint64_t bytes) {
  std::atomic_ref<uint64_t> used = Used(memory_);
  uint64_t start = used.load(std::memory_order_acquire);
  do {
    if (start < kFirstEntry || start > size_ || start % 8 != 0) return Damaged("how full it is");
    if (bytes > size_ - start) {
      return Unavailable(Format("the memory in which the ranks agree is full (%llu of %llu bytes)",
                                static_cast<unsigned long long>(start),
                                static_cast<unsigned long long>(size_)));
    }
  } while (!used.compare_exchange_weak(start, start + bytes, std::memory_order_acq_rel));
  const auto offset = static_cast<uint32_t>(start);
  if (commit_) {
    if (Status committed = commit_(start + bytes); !committed.ok()) {
      GiveBack(offset, bytes);
      return committed;
    }
  }
  // What was never handed out is zero: anything else is somebody's entry, which must stay.
  const char* begin = memory_ + start;
  if (std::any_of(begin, begin + bytes, [](char c) { return c != 0; })) {
    return Damaged("free memory is in use");
  }
  return offset;
}

void Arena::GiveBack(uint32_t offset, uint64_t bytes) {
  uint64_t end = offset + bytes;
  Used(memory_).compare_exchange_strong(end, offset, std::memory_order_acq_rel);
}

Result<std::string> Arena::Propose(std::string_view key, std::string_view value) {
  const uint64_t bucket = Fnv1a64(key) % kBuckets;
  Result<uint32_t> head = LoadHead(bucket);
  if (!head.ok()) return head.status();
  Result<std::optional<std::string>> standing = Find(head.value(), 0, key);
  if (!standing.ok()) return standing.status();
  if (standing.value()) return *std::move(standing).value();

  const uint64_t bytes = (sizeof(Entry) + key.size() + value.size() + 7) / 8 * 8;
  const Result<uint32_t> taken = Take(bytes);
  if (!taken.ok()) return taken.status();
  const uint32_t offset = taken.value();
  Entry entry;
  entry.key_length = static_cast<uint32_t>(key.size());
  entry.value_length = static_cast<uint32_t>(value.size());
  entry.value_check = Fnv1a64(value);
  char* place = memory_ + offset;
  std::memcpy(place + sizeof(entry), key.data(), key.size());
  std::memcpy(place + sizeof(entry) + key.size(), value.data(), value.size());

  std::atomic_ref<uint64_t> word(*Head(bucket));
  while (true) {
    const uint32_t before = head.value();
    entry.next = before;
    entry.check = EntryCheck(offset, entry, key);
    std::memcpy(place, &entry, sizeof(entry));
    uint64_t expected = HeadWord(bucket, before);
    if (word.compare_exchange_strong(expected, HeadWord(bucket, offset),
                                     std::memory_order_acq_rel)) {
      return std::string(value);
    }
    // Somebody was faster, with this key or with another one of the chain.
    head = LoadHead(bucket);
    if (!head.ok()) return head.status();
    standing = Find(head.value(), before, key);
    if (!standing.ok()) return standing.status();
    if (standing.value()) {
      // Ranks that join race with values that can be large: what lost must not fill the arena.
      std::memset(place, 0, bytes);
      GiveBack(offset, bytes);
      return *std::move(standing).value();
    }
  }
}

double Arena::Fullness() const {
  const uint64_t used = std::min(size_, Used(memory_).load(std::memory_order_relaxed));
  return static_cast<double>(used) / static_cast<double>(size_);
}

}  // namespace diapason::agree
