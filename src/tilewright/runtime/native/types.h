/* What the files of this module have for each other: Python types, and what only this module times. */
#ifndef TILEWRIGHT_TYPES_H
#define TILEWRIGHT_TYPES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

extern PyType_Spec tw_native_kernel_type_spec;
extern PyType_Spec tw_native_program_type_spec;
extern PyType_Spec tw_aligned_memory_type_spec;

/* See probe.c. False if the threads were not all there at once. */
bool tw_probe_cores(int64_t num_threads, double *compute_s, double *exchange_s);

#endif
