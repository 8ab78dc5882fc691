/* Runs one kernel where its machine is emulated: `program INPUT OUTPUT REPEATS SECONDS`, linked with an object that
 * defines KERNEL.
 *
 * INPUT holds int64 numbers and raw data: the number of arguments, the bytes of workspace and of scratch, then each
 * argument's size and contents. OUTPUT receives the contents of all arguments after the first call. REPEATS calls follow,
 * none after those before took SECONDS; the seconds of each call, the first included, go to the standard output. Exits
 * with 0, or with a message and 1, also where the kernel wrote outside its arguments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tilewright_runtime.h"

#define GUARD_BYTES 256
#define GUARD_VALUE 0xA5
#define MAX_ARGUMENTS 1024

int32_t KERNEL(const tw_runtime *rt, void *const *args, void *workspace);

static void *scratch_block;

static void fail(const char *message) {
    fprintf(stderr, "%s\n", message);
    exit(1);
}

/* In several pieces, so that a body that ignores its bounds gives a wrong result. */
static void serial_parallel_for(const tw_runtime *rt, tw_body body, void *context, int64_t extent) {
    int64_t piece = extent / rt->num_threads + 1;
    for (int64_t begin = 0; begin < extent; begin += piece)
        body(context, begin, begin + piece < extent ? begin + piece : extent);
}

static void *serial_scratch(int64_t bytes) {
    (void)bytes;
    return scratch_block;
}

static int64_t read_number(FILE *file) {
    int64_t value;
    if (fread(&value, sizeof value, 1, file) != 1) fail("the input file ends too early");
    return value;
}

/* Memory with a guard before and after it. */
static unsigned char *allocate(int64_t bytes) {
    int64_t total = (bytes + 2 * GUARD_BYTES + TW_ALIGNMENT - 1) / TW_ALIGNMENT * TW_ALIGNMENT;
    unsigned char *block = aligned_alloc(TW_ALIGNMENT, (size_t)total);
    if (block == NULL) fail("not enough memory");
    memset(block, GUARD_VALUE, (size_t)total);
    return block + GUARD_BYTES;
}

static void check_guards(const unsigned char *data, int64_t bytes) {
    for (int64_t i = 0; i < GUARD_BYTES; ++i)
        if (data[-1 - i] != GUARD_VALUE || data[bytes + i] != GUARD_VALUE) fail("the kernel wrote outside an argument");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The seconds of a call, which are printed. */
static double timed_call(const tw_runtime *rt, void *const *args, void *workspace) {
    double started = now();
    if (KERNEL(rt, args, workspace) != 0) fail("the kernel did not return 0");
    double seconds = now() - started;
    printf("%.9g\n", seconds);
    return seconds;
}

int main(int argc, char **argv) {
    if (argc != 5) fail("usage: program INPUT OUTPUT REPEATS SECONDS");
    FILE *input = fopen(argv[1], "rb");
    if (input == NULL) fail("cannot open the input file");
    int64_t num_args = read_number(input);
    if (num_args < 0 || num_args > MAX_ARGUMENTS) fail("too many arguments");
    int64_t workspace_bytes = read_number(input);
    int64_t scratch_bytes = read_number(input);
    unsigned char *workspace = allocate(workspace_bytes);
    scratch_block = allocate(scratch_bytes);

    static void *args[MAX_ARGUMENTS];
    static int64_t sizes[MAX_ARGUMENTS];
    for (int64_t i = 0; i < num_args; ++i) {
        sizes[i] = read_number(input);
        args[i] = allocate(sizes[i]);
        if (fread(args[i], 1, (size_t)sizes[i], input) != (size_t)sizes[i]) fail("the input file ends too early");
    }
    fclose(input);

    tw_runtime rt = {serial_parallel_for, serial_scratch, 3, scratch_bytes};
    double total = timed_call(&rt, args, workspace);
    check_guards(workspace, workspace_bytes);
    check_guards(scratch_block, scratch_bytes);
    for (int64_t i = 0; i < num_args; ++i) check_guards(args[i], sizes[i]);
    FILE *output = fopen(argv[2], "wb");
    if (output == NULL) fail("cannot open the output file");
    for (int64_t i = 0; i < num_args; ++i)
        if (fwrite(args[i], 1, (size_t)sizes[i], output) != (size_t)sizes[i]) fail("cannot write the output file");
    if (fclose(output) != 0) fail("cannot write the output file");

    for (int repeat = 0; repeat < atoi(argv[3]) && total < atof(argv[4]); ++repeat)
        total += timed_call(&rt, args, workspace);
    return 0;
}
