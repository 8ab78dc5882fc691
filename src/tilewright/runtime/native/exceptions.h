/* Raising tilewright's errors from C, with the exception that caused them. */
#ifndef TILEWRIGHT_EXCEPTIONS_H
#define TILEWRIGHT_EXCEPTIONS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Take the exception that is set, or NULL, and set it again. */
PyObject *tw_exception_take(void);
void tw_exception_put(PyObject *exception);

/* Raise KernelArgumentError("kernel NAME: ..."), the format as in PyUnicode_FromFormat. An exception that is set
 * becomes the cause. Returns -1. */
int tw_raise_argument_error(PyObject *kernel_name, const char *format, ...);

/* Raise TilewrightError("kernel NAME: ..."). Returns -1. */
int tw_raise_kernel_error(PyObject *kernel_name, const char *format, ...);

#endif
