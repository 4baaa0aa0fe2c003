// For bench/compare.py: preloaded into ranks, it delays what they send. A send of BENCH_DELAY_FROM
// to BENCH_DELAY_TO bytes spins BENCH_DELAY_US microseconds first.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

static double Setting(const char* name) {
  const char* text = getenv(name);
  return text != NULL ? atof(text) : 0;
}

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

static void Delay(size_t bytes) {
  static double microseconds = -1;
  static size_t from;
  static size_t to;
  if (microseconds < 0) {
    from = (size_t)Setting("BENCH_DELAY_FROM");
    to = (size_t)Setting("BENCH_DELAY_TO");
    microseconds = Setting("BENCH_DELAY_US");
  }
  if (microseconds <= 0 || bytes < from || bytes > to) return;
  for (const double end = Now() + microseconds; Now() < end;) {
  }
}

static size_t Total(const struct iovec* parts, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += parts[i].iov_len;
  return bytes;
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  static ssize_t (*real)(int, const struct iovec*, int);
  if (real == NULL) real = (ssize_t(*)(int, const struct iovec*, int))dlsym(RTLD_NEXT, "writev");
  Delay(Total(parts, (size_t)count));
  return real(fd, parts, count);
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  static ssize_t (*real)(int, const struct msghdr*, int);
  if (real == NULL) real = (ssize_t(*)(int, const struct msghdr*, int))dlsym(RTLD_NEXT, "sendmsg");
  Delay(Total(message->msg_iov, message->msg_iovlen));
  return real(fd, message, flags);
}
