#pragma once

// Allocations of one thread that fail when a test says so. Replaces operator new of the program: to
// be included in one source of a test program.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "agree/store.h"
#include "base/text.h"

namespace diapason::agree {

// The allocations that this thread still makes until one fails, that one included; 0: none fails.
inline thread_local int allocations_until_failure = 0;
inline thread_local bool allocation_failed = false;

// Runs `step` while the `number`-th allocation of this thread fails, and only that one. False: the
// step made fewer allocations.
template <typename Step>
bool FailsAt(int number, const Step& step) {
  allocation_failed = false;
  allocations_until_failure = number;
  try {
    step();
  } catch (const std::bad_alloc&) {
  }
  allocations_until_failure = 0;
  return allocation_failed;
}

// Calls `step(number)` for number = 1, 2 ... until it returns false; the number of failures.
template <typename Step>
int ForEveryAllocation(const Step& step) {
  constexpr int kMost = 100000;
  for (int number = 1; number < kMost; ++number) {
    if (!step(number) || testing::Test::HasFailure()) return number - 1;
  }
  ADD_FAILURE() << "the step never ends without a failed allocation";
  return kMost;
}

// Cells "a" and "b" of a store with values of their own. Every allocation of a Read and of a
// Propose fails once; the Read that follows returns its own cell or an error. `before` is called
// before each of them, for example to break the connection.
template <typename Before>
void ExpectNoCellOfAnotherRequest(CellStore* store, const Before& before) {
  const auto enough = [] { return std::chrono::steady_clock::now() + std::chrono::minutes(2); };
  // Longer than a std::string holds without an allocation.
  const auto value = [](const std::string& key) { return "the value of the cell named " + key; };
  for (const char* key : {"a", "b"}) {
    ASSERT_TRUE(store->Propose(key, value(key), enough()).ok());
  }
  const auto next_is_fine = [&](int number) {
    const auto next = store->Read("b", enough());
    ASSERT_TRUE(next.ok()) << number << ": " << next.status().message();
    ASSERT_EQ(next.value().value_or("no value"), value("b")) << number;
  };
  const int of_read = ForEveryAllocation([&](int number) {
    before();
    std::optional<std::string> read = value("a");
    const bool failed = FailsAt(number, [&] {
      Result<std::optional<std::string>> got = store->Read("a", enough());
      if (got.ok()) read = std::move(got).value();
    });
    EXPECT_EQ(read.value_or("no value"), value("a")) << number;
    next_is_fine(number);
    return failed;
  });
  EXPECT_GT(of_read, 3);
  const int of_propose = ForEveryAllocation([&](int number) {
    const std::string key = Format("p{}", number);
    const std::string mine = value(key);
    before();
    std::string stands = mine;
    const bool failed = FailsAt(number, [&] {
      Result<std::string> got = store->Propose(key, mine, enough());
      if (got.ok()) stands = std::move(got).value();
    });
    EXPECT_EQ(stands, mine) << number;
    next_is_fine(number);
    return failed;
  });
  EXPECT_GT(of_propose, 3);
}

}  // namespace diapason::agree

// Not inline: the compiler would see free() of what another function has allocated.
[[gnu::noinline]] void* operator new(size_t size) {
  using diapason::agree::allocations_until_failure;
  if (allocations_until_failure > 0 && --allocations_until_failure == 0) {
    diapason::agree::allocation_failed = true;
    throw std::bad_alloc();
  }
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
// Sanitizers have one of their own otherwise, whose memory must not reach this operator delete.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t /*size*/) noexcept {
  std::free(memory);
}
