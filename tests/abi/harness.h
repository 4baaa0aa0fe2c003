/* harness.h: what every program in tests/abi and tests/fault needs: checks, a scratch folder, the
 * environment, the log the plugin writes to. Any thread may CHECK and log. */
#ifndef TESTS_ABI_HARNESS_H_
#define TESTS_ABI_HARNESS_H_

#include <stdbool.h>
#include <stddef.h>

/* Names what the following checks are about, in failure lines. Also resets the environment (every
 * DIAPASON_ and NCCL_ variable goes), the captured log and the version the library claims. */
void case_begin(const char* format, ...) __attribute__((format(printf, 1, 2)));

/* CHECK(condition, "what was seen: %d", x): one line with file and line when it does not hold; the
 * value is the condition's. */
#define CHECK(condition, ...) \
  check_that((condition) ? true : false, __FILE__, __LINE__, #condition, __VA_ARGS__)
bool check_that(bool holds, const char* file, int line, const char* condition, const char* format,
                ...) __attribute__((format(printf, 5, 6)));

int checks_failed(void);
/* Prints the sum and gives main its exit status. */
int checks_report(const char* program);
/* A line beside the checks, wherever stdout points at the moment. */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program because nothing can be tested. */
void give_up(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ctest's SKIP_RETURN_CODE. */
enum { EXIT_SKIPPED = 77 };

/* A folder of this process's own, removed when it exits. Paths live as long as the process. */
const char* temp_path(const char* name);
/* Replaces the file and returns its path. */
const char* write_file(const char* name, const void* content, size_t size);
const char* write_text(const char* name, const char* text);
/* A policy file of these rows, in the current case. */
const char* use_policy(const char* rows);
/* The whole file, NUL-terminated, to be freed; NULL when it cannot be read. */
char* read_file(const char* path);

/* NULL unsets. */
void env_set(const char* name, const char* value);
void env_reset(void);
/* Set again after every reset, from now on. */
void env_keep(const char* name, const char* value);

/* The logger handed to the plugin: keeps the lines. Its address is in this program, which also
 * exports ncclGetVersion: as far as the plugin can see, this program is the library. */
void captured_log(int level, unsigned long flags, const char* file, int line, const char* format,
                  ...);
void log_clear(void);
/* Lines at this level that hold the text ("" matches all). */
int log_count(int level, const char* text);
void log_print(void);

/* What ncclGetVersion answers: 22809 for 2.28.9; 0: it answers with an error. */
extern int claimed_version;

/* Between the two, stdout and stderr go to a file; the second returns how much came. */
void output_hold(void);
long output_release(void);

/* Runs the body in a forked child, and checks that it ended by itself and without a failed check.
 * `seconds` are enough on an idle machine; the child is killed after ten times as many. */
bool child_succeeds(const char* what, int seconds, void (*body)(void*), void* argument);
/* The same; another exit status is allowed too. */
bool child_ends(const char* what, int seconds, void (*body)(void*), void* argument, int allowed);

#endif /* TESTS_ABI_HARNESS_H_ */
