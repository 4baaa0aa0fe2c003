/* diapason.h: the calls a program may make into the plugin that its collective library has loaded.
 *
 * The plugin is already in the process; ask the loader for it and look the functions up:
 *
 *     void* plugin = dlopen("libnccl-tuner-diapason.so", RTLD_NOW | RTLD_NOLOAD);
 *     int (*pin)(int, int, int) = plugin ? dlsym(plugin, "diapason_pin") : NULL;
 *
 * A NULL handle means that the library has not loaded the plugin (yet: it does so when the first
 * communicator is created). All functions may be called from any thread at any time. */
#ifndef DIAPASON_DIAPASON_H_
#define DIAPASON_DIAPASON_H_

#ifdef __cplusplus
extern "C" {
#endif

/* "Leave it to the library", for the algorithm or the protocol. */
#define DIAPASON_KEEP (-1)

/* The plugin's version, such as "0.1.0". */
const char* diapason_version(void);

/* Pins the configuration of every following collective, on every communicator of this process,
 * until diapason_unpin(): for code that measures configurations in one launch. It wins over the
 * policy.
 *
 * Numbers are NCCL's: algorithm tree 0, ring 1, collnet_direct 2, collnet_chain 3, nvls 4,
 * nvls_tree 5, pat 6; protocol ll 0, ll128 1, simple 2; channels 0 leaves the count to the library.
 *
 * EVERY RANK MUST PIN THE SAME BEFORE THE SAME CALL. The library does not check: ranks that pin
 * differently hang or compute wrong data. A pair that the library does not offer for a call is not
 * applied to it; diapason_pin_counts() tells.
 *
 * Returns 0, or -1 (and changes nothing) when a number is out of range. */
int diapason_pin(int algorithm, int protocol, int channels);
void diapason_unpin(void);

/* The number of questions the library has asked since the last diapason_pin(), and how many of them
 * were answered with the pinned configuration. Either pointer may be NULL. */
void diapason_pin_counts(unsigned long long* asked, unsigned long long* applied);

/* An iteration of the program has ended: call it once per training step (or request), on every
 * rank, after the step's work has been queued. With DIAPASON_MODE=learn the plugin minimises the
 * time between two calls on rank 0. With DIAPASON_JOURNAL the journal gets a line, from which
 * `diapason journal profile` takes the iterations. The cost of a call is negligible. */
void diapason_step(void);

/* One call of a collective took `milliseconds`, by the program's own clock: for programs that time
 * their calls. Report each call before the next one of its kind, on rank 0 of the communicator
 * (reports of other ranks are ignored). `collective` is "allreduce", "allgather", ...; `bytes` as
 * the library counts them (for allgather and reducescatter the total of all ranks). Returns 0; 1 if
 * the plugin does not learn such calls; -1 for an unknown name or an invalid time. */
int diapason_report(const char* collective, unsigned long long bytes, double milliseconds);

/* For tools that load the plugin to query it, as `diapason ask` does, and run no collectives:
 * communicators created from now on in this process have no other ranks, whatever their size, and
 * their policy is not verified with other ranks. A program that runs collectives must never call
 * it: its ranks could apply different policies. */
void diapason_rehearse(int on);

#ifdef __cplusplus
}
#endif

#endif /* DIAPASON_DIAPASON_H_ */
