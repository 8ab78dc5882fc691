/* A program: the kernel calls of a network, in order, each with where its arguments lie.
 *
 * It has no dependency on Python: program_run.c, pool.c and arena.c are all that a shipped network needs.
 */
#ifndef TILEWRIGHT_PROGRAM_RUN_H
#define TILEWRIGHT_PROGRAM_RUN_H

#include <stdint.h>

#include "tilewright_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where an argument of a kernel lies: among the arrays that the caller passes, in the arena, or among the constants. */
typedef enum { TW_ARGUMENT = 0, TW_ARENA = 1, TW_CONSTANT = 2 } tw_place;

typedef struct tw_slot {
    tw_place place;
    int64_t position; /* an index, or for the arena an offset in bytes */
} tw_slot;

/* One kernel call: its inputs and then its outputs are slots[first_slot], ... of the program. */
typedef struct tw_step {
    tw_kernel kernel;
    int64_t first_slot;
    int64_t num_slots;
    int64_t workspace_offset; /* in the arena */
} tw_step;

typedef struct tw_program {
    const tw_step *steps;
    int64_t num_steps;
    const tw_slot *slots;
    int64_t max_slots; /* the most that any step has */
    const void *const *constants;
    int64_t arena_bytes;
    int64_t scratch_bytes; /* the most that any kernel asks of a thread */
    int64_t num_threads;
} tw_program;

/* What tw_program_run returns if there is not enough memory for scratch; any other status but 0 is a kernel's. */
#define TW_NO_MEMORY INT32_MIN

/* Run all steps. `arrays` are the caller's inputs and outputs; `arena` has arena_bytes, is aligned to TW_ALIGNMENT and
 * belongs to this call alone. Returns 0 on success. */
int32_t tw_program_run(const tw_program *program, void *const *arrays, void *arena);

/* The same, and the seconds that each step takes. */
int32_t tw_program_profile(const tw_program *program, void *const *arrays, void *arena, double *step_s);

#ifdef __cplusplus
}
#endif

#endif
