/* Running the kernel calls of a network one after the other, with nothing in between. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "program_run.h"

#include <stddef.h>
#include <time.h>

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *address_of(const tw_program *program, tw_slot slot, void *const *arrays, char *arena) {
    switch (slot.place) {
        case TW_ARGUMENT: return arrays[slot.position];
        case TW_CONSTANT: return (void *)program->constants[slot.position]; /* an input: never written */
        default: return arena + slot.position;
    }
}

static int32_t run(const tw_program *program, void *const *arrays, char *arena, double *step_s) {
    tw_call call;
    if (tw_call_begin(&call, 0, program->scratch_bytes) != 0) return TW_NO_MEMORY;
    tw_runtime runtime;
    tw_runtime_init(&runtime, program->num_threads, program->scratch_bytes);
    void *arguments[program->max_slots > 0 ? program->max_slots : 1];
    int32_t status = 0;
    for (int64_t i = 0; i < program->num_steps && status == 0; i++) {
        const tw_step *step = &program->steps[i];
        const tw_slot *slots = &program->slots[step->first_slot];
        for (int64_t k = 0; k < step->num_slots; k++) arguments[k] = address_of(program, slots[k], arrays, arena);
        const double start_s = step_s == NULL ? 0 : now_s();
        status = step->kernel(&runtime, arguments, arena + step->workspace_offset);
        if (step_s != NULL) step_s[i] = now_s() - start_s;
    }
    tw_call_end(&call);
    return status;
}

int32_t tw_program_run(const tw_program *program, void *const *arrays, void *arena) {
    return run(program, arrays, arena, NULL);
}

int32_t tw_program_profile(const tw_program *program, void *const *arrays, void *arena, double *step_s) {
    return run(program, arrays, arena, step_s);
}
