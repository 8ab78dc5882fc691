/* Small kernels for the tests, written by hand against the interface of generated code. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "tilewright_runtime.h"

/* C[24] = A[24] + B[24] */
int32_t add(const tw_runtime *rt, void *const *args, void *workspace) {
    (void)rt, (void)workspace;
    const float *a = args[0], *b = args[1];
    float *c = args[2];
    for (int i = 0; i < 24; i++) c[i] = a[i] + b[i];
    return 0;
}

/* Y[6] = X[6], elements of 1, 2, 4 and 8 bytes */
#define COPY(bytes)                                                                 \
    int32_t copy##bytes(const tw_runtime *rt, void *const *args, void *workspace) { \
        (void)rt, (void)workspace;                                                  \
        memcpy(args[1], args[0], 6 * bytes);                                        \
        return 0;                                                                   \
    }
COPY(1)
COPY(2)
COPY(4)
COPY(8)

/* low[3], high[3] = X[6] */
int32_t halves(const tw_runtime *rt, void *const *args, void *workspace) {
    (void)rt, (void)workspace;
    memcpy(args[1], args[0], 3 * sizeof(float));
    memcpy(args[2], (const float *)args[0] + 3, 3 * sizeof(float));
    return 0;
}

int32_t fail(const tw_runtime *rt, void *const *args, void *workspace) {
    (void)rt, (void)args, (void)workspace;
    return 7;
}

/* counts[i] += 1 for i in [0, extent[0]) */
static void count_body(void *context, int64_t begin, int64_t end) {
    int32_t *counts = context;
    for (int64_t i = begin; i < end; i++) counts[i]++;
}

int32_t count(const tw_runtime *rt, void *const *args, void *workspace) {
    (void)workspace;
    rt->parallel_for(rt, count_body, args[1], *(const int64_t *)args[0]);
    return 0;
}

/* threads[i] = the thread that ran i; each iteration lasts the given nanoseconds */
typedef struct {
    int64_t nanoseconds;
    int64_t *threads;
} slow_context;

static void slow_body(void *context, int64_t begin, int64_t end) {
    const slow_context *c = context;
    for (int64_t i = begin; i < end; i++) {
        struct timespec duration = {0, c->nanoseconds};
        nanosleep(&duration, NULL);
        c->threads[i] = (int64_t)pthread_self();
    }
}

int32_t slow(const tw_runtime *rt, void *const *args, void *workspace) {
    (void)workspace;
    slow_context context = {*(const int64_t *)args[0], args[1]};
    rt->parallel_for(rt, slow_body, &context, 16);
    return 0;
}

/* counts[8][8] += 1, with a region inside a region; 0 is written where the inner one left the thread */
typedef struct {
    const tw_runtime *rt;
    int32_t *counts;
    pthread_t outer;
} nested_context;

static void inner_body(void *context, int64_t begin, int64_t end) {
    nested_context *c = context;
    for (int64_t i = begin; i < end; i++) c->counts[i] += pthread_equal(c->outer, pthread_self()) ? 1 : 0;
}

static void outer_body(void *context, int64_t begin, int64_t end) {
    const nested_context *c = context;
    for (int64_t i = begin; i < end; i++) {
        nested_context inner = {c->rt, c->counts + 8 * i, pthread_self()};
        c->rt->parallel_for(c->rt, inner_body, &inner, 8);
    }
}

int32_t nested(const tw_runtime *rt, void *const *args, void *workspace) {
    (void)workspace;
    nested_context context = {rt, args[0], pthread_self()};
    rt->parallel_for(rt, outer_body, &context, 8);
    return 0;
}

/* ok[i] = 1 if this thread's scratch of 4096 bytes is aligned and kept what was written into it */
typedef struct {
    const tw_runtime *rt;
    int32_t *ok;
} scratch_context;

static void scratch_body(void *context, int64_t begin, int64_t end) {
    const scratch_context *c = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t *memory = c->rt->scratch(4096);
        for (int k = 0; k < 512; k++) memory[k] = i + k;
        struct timespec duration = {0, 100000};
        nanosleep(&duration, NULL);
        int is_intact = (uintptr_t)memory % TW_ALIGNMENT == 0 && c->rt->scratch(4096) == memory;
        for (int k = 0; k < 512; k++) is_intact &= memory[k] == i + k;
        c->ok[i] = is_intact;
    }
}

int32_t scratch(const tw_runtime *rt, void *const *args, void *workspace) {
    (void)workspace;
    scratch_context context = {rt, args[0]};
    rt->parallel_for(rt, scratch_body, &context, 32);
    return 0;
}

/* Fills its workspace of 1024 bytes and its scratch of 64, calls back, and tells whether they are as they were. */
int32_t call_back(const tw_runtime *rt, void *const *args, void *workspace) {
    void (*callback)(void) = *(void (*const *)(void))args[0];
    int32_t *ok = args[1];
    char *scratch_memory = rt->scratch(64);
    memset(workspace, 1, 1024);
    memset(scratch_memory, 2, 64);
    callback();
    *ok = (uintptr_t)workspace % TW_ALIGNMENT == 0;
    for (int i = 0; i < 1024; i++) *ok &= ((const char *)workspace)[i] == 1;
    for (int i = 0; i < 64; i++) *ok &= scratch_memory[i] == 2;
    return 0;
}

/* Wt[4][3] = transpose of W[3][4] */
int32_t pack(const tw_runtime *rt, void *const *args, void *workspace) {
    (void)rt, (void)workspace;
    const float *w = args[0];
    float *packed = args[1];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) packed[j * 3 + i] = w[i * 4 + j];
    return 0;
}

/* Y[4] = X[3] W[3][4] + b[4], with W in the order of `pack` */
int32_t dense(const tw_runtime *rt, void *const *args, void *workspace) {
    (void)rt, (void)workspace;
    const float *x = args[0], *packed = args[1], *b = args[2];
    float *y = args[3];
    for (int j = 0; j < 4; j++) {
        y[j] = b[j];
        for (int i = 0; i < 3; i++) y[j] += x[i] * packed[j * 3 + i];
    }
    return 0;
}

/* log[1 + log[0]++] = where W[3] lies, log[9] of int64; b[5] is read */
int32_t note(const tw_runtime *rt, void *const *args, void *workspace) {
    (void)rt, (void)workspace;
    int64_t *log = args[2];
    const float *b = args[1];
    log[1 + log[0]] = b[4] == 4.0f ? (int64_t)(intptr_t)args[0] : -1;
    log[0]++;
    return 0;
}
