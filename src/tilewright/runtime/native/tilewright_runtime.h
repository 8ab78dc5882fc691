/* The interface between generated kernels and the program that runs them.
 *
 * The first half is the binary interface that generated code is compiled against; the field order of tw_runtime
 * is fixed. The second half is for hosts: it has no dependency on Python, so that pool.c and arena.c can be
 * linked into a shipped artifact as they are.
 */
#ifndef TILEWRIGHT_RUNTIME_H
#define TILEWRIGHT_RUNTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Alignment in bytes of every block that the runtime hands out: a cache line, and the widest vector register. */
#define TW_ALIGNMENT 64

/* The largest num_threads that has an effect; a larger one is treated as this. */
#define TW_MAX_THREADS 512

/* ---- for generated code --------------------------------------------------------------------------------- */

typedef struct tw_runtime tw_runtime;

/* A piece of a parallel loop: iterations [begin, end). */
typedef void (*tw_body)(void *context, int64_t begin, int64_t end);

struct tw_runtime {
    /* Run `body` over [0, extent) on up to num_threads threads, the caller among them, and return when all of it
     * is done. Pieces are disjoint and cover the range; their number and sizes vary from call to call. A call
     * from inside a body, or while another caller's region occupies the pool, runs on the calling thread. */
    void (*parallel_for)(const tw_runtime *rt, tw_body body, void *context, int64_t extent);

    /* This thread's private memory, aligned to TW_ALIGNMENT, contents undefined. Each thread has one block, so two
     * uses of it on one thread are the same memory; it stays where it is until a call asks for more than any call
     * before. Up to scratch_bytes are reserved before a kernel or a body starts, so that such a call never fails;
     * a call for more may return NULL. */
    void *(*scratch)(int64_t bytes);

    int64_t num_threads;

    /* What a kernel may ask of scratch() on each thread; known when the kernel is built. */
    int64_t scratch_bytes;
};

/* A kernel. `args` are the data pointers of the inputs, then of the outputs; `workspace` is aligned to TW_ALIGNMENT,
 * has the size the kernel was built with and belongs to this call alone. Returns 0 on success. */
typedef int32_t (*tw_kernel)(const tw_runtime *rt, void *const *args, void *workspace);

/* ---- for hosts ------------------------------------------------------------------------------------------ */

/* Fill in a runtime. Threads are started when a region first needs them and are shared by all runtimes. */
void tw_runtime_init(tw_runtime *rt, int64_t num_threads, int64_t scratch_bytes);

/* The memory of one kernel call on the calling thread; see tw_call_begin. */
typedef struct tw_call {
    void *workspace;
    int workspace_is_own; /* allocated for this call, since an outer call uses the thread's */
    void *outer_scratch;  /* the scratch block of the outer call, set aside meanwhile */
    int64_t outer_scratch_bytes;
} tw_call;

/* Reserve the workspace and the calling thread's scratch for one kernel call. Returns 0, or -1 if there is not enough
 * memory, in which case nothing is held. A worker that cannot reserve its scratch does not take part in a region;
 * the others do its share. Calls may nest: a body may call a host function that runs another kernel. */
int tw_call_begin(tw_call *call, int64_t workspace_bytes, int64_t scratch_bytes);
void tw_call_end(tw_call *call);

/* Memory aligned to TW_ALIGNMENT (large blocks to huge pages), or NULL. Freed with free(). */
void *tw_allocate(int64_t bytes);

/* How many worker threads this process has now. */
int tw_pool_num_workers(void);

#ifdef __cplusplus
}
#endif

#endif
