/* What each thread keeps between kernel calls: shared by arena.c, which owns the memory, and pool.c. */
#ifndef TILEWRIGHT_THREAD_STATE_H
#define TILEWRIGHT_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "tilewright_runtime.h"

/* A block that only grows. */
typedef struct tw_arena {
    void *data;
    int64_t bytes;
} tw_arena;

typedef struct tw_thread_state {
    tw_arena scratch;
    tw_arena workspace;
    int depth;       /* kernel calls and regions under way on this thread */
    bool in_region;  /* inside a body: a nested region runs inline */
    bool is_watched; /* freed at thread exit */
} tw_thread_state;

tw_thread_state *tw_this_thread(void);

/* Make the calling thread's scratch at least `bytes` large. Returns 0, or -1 if there is not enough memory. */
int tw_scratch_reserve(int64_t bytes);

/* The tw_runtime.scratch of every runtime. */
void *tw_scratch(int64_t bytes);

/* The tw_runtime.parallel_for of every runtime. */
void tw_parallel_for(const tw_runtime *rt, tw_body body, void *context, int64_t extent);

#endif
