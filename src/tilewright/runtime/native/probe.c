/* What the cores of the pool's threads are worth at the moment: all threads compute for a while at the same time, and
 * then pass a number round in a ring.
 *
 * Two threads that share a core compute at half the speed each; between cores that share no cache a line takes several
 * times as long. All threads must be there at once. A pool promises no such thing, so whoever waits gives up after a
 * while; then nothing is known, and nobody hangs.
 */
#include "types.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "tilewright_runtime.h"

#define CACHE_LINE 64
#define CHAINS 12
#define STEPS 1500
#define LAPS 32
#define WARM_UP_LAPS 4
#define PATIENCE_NS 500000
#define LOOKS_BETWEEN_CLOCK_READS 64

typedef float lanes __attribute__((vector_size(16)));

typedef struct {
    _Alignas(CACHE_LINE) _Atomic int64_t num_arrived;
    _Alignas(CACHE_LINE) _Atomic int64_t ball; /* whose turn it is, counted on from lap to lap */
    _Alignas(CACHE_LINE) atomic_bool is_given_up;
    _Atomic int64_t longest_compute_ns;
    int64_t num_threads;
    int64_t ring_ns;
    _Atomic float sum; /* so that nothing is left out */
} probe;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Whether `place` has come to hold `value` before patience ran out, here or elsewhere. */
static bool await(probe *p, const _Atomic int64_t *place, int64_t value) {
    const int64_t start_ns = now_ns();
    do {
        for (int i = 0; i < LOOKS_BETWEEN_CLOCK_READS; i++)
            if (atomic_load_explicit(place, memory_order_acquire) == value) return true;
    } while (!atomic_load(&p->is_given_up) && now_ns() - start_ns < PATIENCE_NS);
    atomic_store(&p->is_given_up, true);
    return false;
}

/* As many chains as keep the units of a core busy; the values stay near 1. */
static float compute(void) {
    lanes chains[CHAINS];
    for (int c = 0; c < CHAINS; c++) chains[c] = (lanes){1, 1, 1, 1} * (float)(c + 1);
    const lanes factor = {0.5f, 0.5f, 0.5f, 0.5f};
    for (int step = 0; step < STEPS; step++)
        for (int c = 0; c < CHAINS; c++) chains[c] = chains[c] * factor + factor;
    lanes sum = chains[0];
    for (int c = 1; c < CHAINS; c++) sum += chains[c];
    return sum[0];
}

static void take_part(void *context, int64_t begin, int64_t end) {
    probe *p = context;
    (void)end;
    atomic_fetch_add(&p->num_arrived, 1);
    if (!await(p, &p->num_arrived, p->num_threads)) return;

    const int64_t compute_start_ns = now_ns();
    p->sum = compute();
    const int64_t compute_ns = now_ns() - compute_start_ns;
    int64_t longest_ns = atomic_load(&p->longest_compute_ns);
    while (compute_ns > longest_ns && !atomic_compare_exchange_weak(&p->longest_compute_ns, &longest_ns, compute_ns)) {
    }

    int64_t start_ns = 0;
    for (int64_t lap = 0; lap < WARM_UP_LAPS + LAPS; lap++) {
        const int64_t turn = lap * p->num_threads + begin;
        if (!await(p, &p->ball, turn)) return;
        if (lap == WARM_UP_LAPS && begin == 0) start_ns = now_ns();
        atomic_store_explicit(&p->ball, turn + 1, memory_order_release);
    }
    if (begin != 0) return;
    if (await(p, &p->ball, (WARM_UP_LAPS + LAPS) * p->num_threads)) p->ring_ns = now_ns() - start_ns;
}

bool tw_probe_cores(int64_t num_threads, double *compute_s, double *exchange_s) {
    probe p = {.num_threads = num_threads};
    tw_runtime runtime;
    tw_runtime_init(&runtime, num_threads, 0);
    runtime.parallel_for(&runtime, take_part, &p, num_threads);
    *compute_s = (double)p.longest_compute_ns * 1e-9;
    *exchange_s = (double)p.ring_ns * 1e-9 / (double)(LAPS * num_threads);
    return p.ring_ns > 0;
}
