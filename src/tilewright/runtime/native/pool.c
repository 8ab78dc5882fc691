/* The thread pool: one a process, shared by all kernels.
 *
 * A region is announced by one atomic word, the gate. Workers join through the gate while it is open; the caller works
 * too, closes the gate once no iteration is left to take, and waits only for those that joined. So a worker that is
 * asleep or not scheduled never delays a region: the caller does its share.
 *
 *   gate = epoch (32 bits) | open (1) | caller waits (1) | participants (14) | joined workers (16)
 *
 * Each participant owns one contiguous slice of the iterations, takes pieces of it, and then helps with the slices of
 * the others. A piece is a quarter of what is left in the slice: few calls of the body at first, a fine balance at the
 * end.
 *
 * Who waits first spins for SPIN_NS, then goes on looking but lets any other thread go first, and then sleeps: to be
 * woken can take longer than a region. A worker is patient because kernels often follow each other closely; the caller
 * of a region more so, because what it waits for is under way.
 */
#define _GNU_SOURCE /* CPU affinity */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "thread_state.h"

#define CACHE_LINE 64
#define SPIN_NS 40000
#define WORKER_PATIENCE_NS 200000
#define CALLER_PATIENCE_NS 2000000
#define SPINS_BETWEEN_CLOCK_READS 16
#define WORKER_STACK_BYTES (4 << 20)

#define GATE_EPOCH_SHIFT 32
#define GATE_OPEN (UINT64_C(1) << 31)
#define GATE_CALLER_WAITS (UINT64_C(1) << 30)
#define GATE_PARTICIPANTS_SHIFT 16
#define GATE_PARTICIPANTS_MASK UINT64_C(0x3fff)
#define GATE_JOINED_MASK UINT64_C(0xffff)

typedef struct {
    _Alignas(CACHE_LINE) _Atomic int64_t next;
    int64_t end;
} slice;

typedef struct {
    _Alignas(CACHE_LINE) pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    atomic_bool is_asleep;
    int slot; /* its slice; the caller has slot 0 */
    uint32_t epoch_at_start;
} worker;

static struct {
    _Alignas(CACHE_LINE) _Atomic uint64_t gate;

    /* Held by the caller of the region under way; for ever once the process exits. */
    _Alignas(CACHE_LINE) atomic_bool is_taken;
    atomic_bool is_stopping;
    atomic_int num_workers;
    pthread_mutex_t caller_mutex;
    pthread_cond_t caller_wake;

    /* The region under way: written before the gate opens, read by those who joined. */
    tw_body body;
    void *context;
    int64_t scratch_bytes;
    slice slices[TW_MAX_THREADS];

    worker workers[TW_MAX_THREADS - 1];
    int placed_for_cpu; /* where the caller ran when the workers were placed; -1 if they were not */
    int placed_participants;
} pool = {
    .caller_mutex = PTHREAD_MUTEX_INITIALIZER, .caller_wake = PTHREAD_COND_INITIALIZER, .placed_for_cpu = -1};

static pthread_once_t process_hooks_once = PTHREAD_ONCE_INIT;

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield" ::: "memory");
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint32_t gate_epoch(uint64_t gate) { return (uint32_t)(gate >> GATE_EPOCH_SHIFT); }

static int gate_participants(uint64_t gate) { return (int)(gate >> GATE_PARTICIPANTS_SHIFT & GATE_PARTICIPANTS_MASK); }

static uint64_t gate_joined(uint64_t gate) { return gate & GATE_JOINED_MASK; }

/* ---- work ----------------------------------------------------------------------------------------------- */

static void drain(slice *s) {
    int64_t begin = atomic_load_explicit(&s->next, memory_order_relaxed);
    while (begin < s->end) {
        const int64_t quarter = (s->end - begin) / 4;
        const int64_t end = begin + (quarter > 0 ? quarter : 1);
        /* Relaxed: what the bodies write becomes visible to the caller through the gate. */
        if (!atomic_compare_exchange_weak_explicit(&s->next, &begin, end, memory_order_relaxed, memory_order_relaxed))
            continue;
        pool.body(pool.context, begin, end);
        begin = atomic_load_explicit(&s->next, memory_order_relaxed);
    }
}

static void work(int slot, int participants) {
    tw_thread_state *state = tw_this_thread();
    state->in_region = true;
    state->depth++;
    for (int k = 0; k < participants; k++) drain(&pool.slices[(slot + k) % participants]);
    state->depth--;
    state->in_region = false;
}

/* ---- workers -------------------------------------------------------------------------------------------- */

/* Return once the gate shows another epoch than `seen`, or the pool stops. */
static uint64_t wait_for_region(worker *self, uint32_t seen) {
    const int64_t start_ns = now_ns();
    for (int64_t waited_ns = 0; waited_ns < WORKER_PATIENCE_NS; waited_ns = now_ns() - start_ns) {
        for (int i = 0; i < SPINS_BETWEEN_CLOCK_READS; i++) {
            const uint64_t gate = atomic_load(&pool.gate);
            if (gate_epoch(gate) != seen) return gate;
            relax();
        }
        if (waited_ns > SPIN_NS) sched_yield();
    }

    pthread_mutex_lock(&self->mutex);
    /* Announced before the gate is read again; open_gate writes the gate before it looks who sleeps. */
    atomic_store(&self->is_asleep, true);
    while (gate_epoch(atomic_load(&pool.gate)) == seen && !atomic_load(&pool.is_stopping))
        pthread_cond_wait(&self->wake, &self->mutex);
    atomic_store(&self->is_asleep, false);
    pthread_mutex_unlock(&self->mutex);
    return atomic_load(&pool.gate);
}

static bool join_region(uint64_t gate, int slot) {
    const uint32_t epoch = gate_epoch(gate);
    while ((gate & GATE_OPEN) && gate_epoch(gate) == epoch && slot < gate_participants(gate))
        if (atomic_compare_exchange_weak(&pool.gate, &gate, gate + 1)) return true;
    return false;
}

static void leave_region(void) {
    const uint64_t before = atomic_fetch_sub(&pool.gate, 1);
    if (gate_joined(before) != 1 || !(before & GATE_CALLER_WAITS)) return;
    pthread_mutex_lock(&pool.caller_mutex);
    pthread_cond_signal(&pool.caller_wake);
    pthread_mutex_unlock(&pool.caller_mutex);
}

static void *worker_main(void *worker_pointer) {
    worker *self = worker_pointer;
    uint32_t seen = self->epoch_at_start;
    while (true) {
        const uint64_t gate = wait_for_region(self, seen);
        if (atomic_load(&pool.is_stopping)) return NULL;
        seen = gate_epoch(gate);
        if (!join_region(gate, self->slot)) continue;
        if (tw_scratch_reserve(pool.scratch_bytes) == 0) work(self->slot, gate_participants(gate));
        leave_region();
    }
}

static void wake_worker(worker *w) {
    if (!atomic_load(&w->is_asleep)) return;
    pthread_mutex_lock(&w->mutex);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
}

static bool start_worker(int index) {
    worker *w = &pool.workers[index];
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->wake, NULL);
    atomic_store(&w->is_asleep, false);
    w->slot = index + 1;
    w->epoch_at_start = gate_epoch(atomic_load(&pool.gate));

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
    /* Signals are for the threads of the host program. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool is_started = pthread_create(&w->thread, &attributes, worker_main, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return is_started;
}

/* ---- process events ------------------------------------------------------------------------------------- */

/* The child of a fork has none of its parent's workers: it starts over. */
static void reset_after_fork(void) {
    atomic_store(&pool.gate, 0);
    pool.num_workers = 0;
    pool.placed_for_cpu = -1;
    pthread_mutex_init(&pool.caller_mutex, NULL);
    pthread_cond_init(&pool.caller_wake, NULL);
    atomic_store(&pool.is_taken, false);
}

/* Join the workers, unless a thread of the host is still inside a region; regions from now on run inline. */
static void stop_at_exit(void) {
    if (atomic_exchange(&pool.is_taken, true)) return;
    atomic_store(&pool.is_stopping, true);
    atomic_fetch_add(&pool.gate, UINT64_C(1) << GATE_EPOCH_SHIFT);
    for (int i = 0; i < pool.num_workers; i++) wake_worker(&pool.workers[i]);
    for (int i = 0; i < pool.num_workers; i++) pthread_join(pool.workers[i].thread, NULL);
    pool.num_workers = 0;
}

static void install_process_hooks(void) {
    if (pthread_atfork(NULL, NULL, reset_after_fork) != 0 || atexit(stop_at_exit) != 0) abort();
}

/* ---- regions -------------------------------------------------------------------------------------------- */

/* Returns how many threads can take part, at most `wanted`: fewer if the system refuses to start more. */
static int ensure_participants(int wanted) {
    while (pool.num_workers < wanted - 1) {
        if (!start_worker(pool.num_workers)) return pool.num_workers + 1;
        pool.num_workers++;
    }
    return wanted;
}

/* Keep workers off the CPU that the caller runs on. A system is slow to part two busy threads that it has put on one
 * CPU while another idles, and a region is over before it does. Linux only; elsewhere the system's choice stands. */
static void place_workers(int participants) {
#ifdef __linux__
    const int cpu = sched_getcpu();
    if (cpu < 0 || (cpu == pool.placed_for_cpu && participants <= pool.placed_participants)) return;
    pool.placed_for_cpu = cpu;
    pool.placed_participants = participants;
    cpu_set_t others;
    if (sched_getaffinity(0, sizeof others, &others) != 0) return;
    const int num_cpus = CPU_COUNT(&others);
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) == 0) return; /* the caller is bound to one CPU */
    int next = -1;
    for (int i = 0; i < participants - 1; i++) {
        cpu_set_t chosen = others;
        if (participants >= num_cpus) { /* no CPU is left to choose from: one for each */
            do next = (next + 1) % CPU_SETSIZE;
            while (!CPU_ISSET(next, &others));
            CPU_ZERO(&chosen);
            CPU_SET(next, &chosen);
        }
        pthread_setaffinity_np(pool.workers[i].thread, sizeof chosen, &chosen);
    }
#else
    (void)participants;
#endif
}

static void open_gate(int participants) {
    const uint64_t epoch = gate_epoch(atomic_load(&pool.gate)) + UINT64_C(1);
    atomic_store(&pool.gate, epoch << GATE_EPOCH_SHIFT | GATE_OPEN | (uint64_t)participants << GATE_PARTICIPANTS_SHIFT);
    for (int i = 0; i < participants - 1; i++) wake_worker(&pool.workers[i]);
}

static void close_gate_and_wait(void) {
    uint64_t gate = atomic_fetch_and(&pool.gate, ~GATE_OPEN);
    if (gate_joined(gate) == 0) return;
    const int64_t start_ns = now_ns();
    for (int64_t waited_ns = 0; waited_ns < CALLER_PATIENCE_NS; waited_ns = now_ns() - start_ns) {
        for (int i = 0; i < SPINS_BETWEEN_CLOCK_READS; i++) {
            if (gate_joined(atomic_load(&pool.gate)) == 0) return;
            relax();
        }
        if (waited_ns > SPIN_NS) sched_yield();
    }

    pthread_mutex_lock(&pool.caller_mutex);
    atomic_fetch_or(&pool.gate, GATE_CALLER_WAITS);
    while (gate_joined(atomic_load(&pool.gate)) != 0) pthread_cond_wait(&pool.caller_wake, &pool.caller_mutex);
    pthread_mutex_unlock(&pool.caller_mutex);
}

static void run_inline(tw_body body, void *context, int64_t extent) {
    tw_thread_state *state = tw_this_thread();
    const bool was_in_region = state->in_region;
    state->in_region = true;
    body(context, 0, extent);
    state->in_region = was_in_region;
}

void tw_parallel_for(const tw_runtime *rt, tw_body body, void *context, int64_t extent) {
    if (extent <= 0) return;
    int64_t wanted = rt->num_threads < extent ? rt->num_threads : extent;
    if (wanted > TW_MAX_THREADS) wanted = TW_MAX_THREADS;
    if (wanted <= 1 || tw_this_thread()->in_region || atomic_exchange(&pool.is_taken, true)) {
        run_inline(body, context, extent);
        return;
    }
    pthread_once(&process_hooks_once, install_process_hooks);
    const int participants = ensure_participants((int)wanted);
    place_workers(participants);
    pool.body = body;
    pool.context = context;
    pool.scratch_bytes = rt->scratch_bytes;
    const int64_t share = extent / participants;
    const int64_t remainder = extent % participants;
    int64_t begin = 0;
    for (int i = 0; i < participants; i++) {
        atomic_store_explicit(&pool.slices[i].next, begin, memory_order_relaxed);
        begin += share + (i < remainder);
        pool.slices[i].end = begin;
    }
    open_gate(participants);
    work(0, participants);
    close_gate_and_wait();
    atomic_store(&pool.is_taken, false);
}

void tw_runtime_init(tw_runtime *rt, int64_t num_threads, int64_t scratch_bytes) {
    *rt = (tw_runtime){tw_parallel_for, tw_scratch, num_threads, scratch_bytes};
}

int tw_pool_num_workers(void) { return pool.num_workers; }
