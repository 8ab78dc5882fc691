/* Memory of kernel calls: one scratch and one workspace block a thread, kept between calls, freed at thread exit.
 *
 * Allocating anew for each call would cost page faults that are longer than many kernels.
 */
#include <pthread.h>
#include <stdlib.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "thread_state.h"

static __thread tw_thread_state this_thread;
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;

tw_thread_state *tw_this_thread(void) { return &this_thread; }

static void release_at_thread_exit(void *state_pointer) {
    tw_thread_state *state = state_pointer;
    free(state->scratch.data);
    free(state->workspace.data);
    state->scratch = state->workspace = (tw_arena){0};
    state->is_watched = false;
}

static void create_exit_key(void) {
    if (pthread_key_create(&exit_key, release_at_thread_exit) != 0) abort();
}

void *tw_allocate(int64_t bytes) {
    const int64_t huge_page = 2 << 20;
    const bool is_large = bytes >= 2 * huge_page;
    const int64_t alignment = is_large ? huge_page : TW_ALIGNMENT;
    void *data = NULL;
    if (bytes > INT64_MAX - huge_page) return NULL;
    /* Whole cache lines, so that no block shares its last line with another thread's. */
    const int64_t rounded = (bytes + TW_ALIGNMENT - 1) / TW_ALIGNMENT * TW_ALIGNMENT;
    if (posix_memalign(&data, (size_t)alignment, (size_t)(rounded ? rounded : TW_ALIGNMENT)) != 0) return NULL;
#if defined(MADV_HUGEPAGE)
    /* A hint: packed panels are walked with strides that miss the TLB on small pages. Refusal does no harm. */
    if (is_large) (void)madvise(data, (size_t)rounded, MADV_HUGEPAGE);
#endif
    return data;
}

static int reserve(tw_arena *arena, int64_t bytes) {
    if (bytes <= arena->bytes) return 0;
    if (!this_thread.is_watched) {
        pthread_once(&exit_key_once, create_exit_key);
        if (pthread_setspecific(exit_key, &this_thread) != 0) return -1;
        this_thread.is_watched = true;
    }
    /* Freed first: the old contents are not wanted, and both blocks at once may not fit. */
    free(arena->data);
    *arena = (tw_arena){0};
    arena->data = tw_allocate(bytes);
    if (arena->data == NULL) return -1;
    arena->bytes = bytes;
    return 0;
}

int tw_scratch_reserve(int64_t bytes) { return reserve(&this_thread.scratch, bytes); }

void *tw_scratch(int64_t bytes) { return tw_scratch_reserve(bytes) == 0 ? this_thread.scratch.data : NULL; }

int tw_call_begin(tw_call *call, int64_t workspace_bytes, int64_t scratch_bytes) {
    tw_thread_state *state = &this_thread;
    const bool is_nested = state->depth > 0;
    *call = (tw_call){0};
    if (is_nested) {
        call->workspace_is_own = 1;
        call->workspace = tw_allocate(workspace_bytes);
        call->outer_scratch = state->scratch.data;
        call->outer_scratch_bytes = state->scratch.bytes;
        state->scratch = (tw_arena){0};
    } else if (reserve(&state->workspace, workspace_bytes) == 0) {
        call->workspace = state->workspace.data;
    }
    state->depth++;
    const bool has_workspace = call->workspace != NULL || workspace_bytes == 0;
    if (has_workspace && tw_scratch_reserve(scratch_bytes) == 0) return 0;
    tw_call_end(call);
    return -1;
}

void tw_call_end(tw_call *call) {
    tw_thread_state *state = &this_thread;
    state->depth--;
    if (!call->workspace_is_own) return;
    free(call->workspace);
    free(state->scratch.data);
    state->scratch = (tw_arena){call->outer_scratch, call->outer_scratch_bytes};
}
