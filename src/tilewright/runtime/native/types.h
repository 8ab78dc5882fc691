/* The Python types of this module. */
#ifndef TILEWRIGHT_TYPES_H
#define TILEWRIGHT_TYPES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec tw_native_kernel_type_spec;
extern PyType_Spec tw_native_program_type_spec;
extern PyType_Spec tw_aligned_memory_type_spec;

#endif
