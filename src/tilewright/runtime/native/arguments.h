/* The arguments of a kernel: what is expected of them, and the memory of those that were passed. */
#ifndef TILEWRIGHT_ARGUMENTS_H
#define TILEWRIGHT_ARGUMENTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "dlpack.h"

#define TW_MAX_DIMS 64

/* The kind of an element: bool, int, uint, float, or bfloat16, which is a kind of its own. */
typedef enum { KIND_UNKNOWN, KIND_BOOL, KIND_INT, KIND_UINT, KIND_FLOAT, KIND_BFLOAT } tw_kind;

typedef struct {
    PyObject *name;
    PyObject *shape_text; /* "(4, 8)", for messages */
    const char *dtype;
    tw_kind kind;
    int64_t itemsize;
    int64_t nbytes;
    int ndim;
    bool is_output;
    int64_t *shape;
} tw_argument_spec;

/* What was passed, whichever protocol described it. Strides are in bytes; for DLPack and buffers without strides they
 * are filled in. */
typedef struct {
    char *data;
    tw_kind kind;
    int64_t itemsize;
    int ndim;
    bool is_read_only;
    int64_t shape[TW_MAX_DIMS];
    int64_t strides[TW_MAX_DIMS];
} tw_layout;

/* A passed array whose memory is held until it is released: by its buffer or by DLPack. */
typedef struct {
    void *data;
    bool has_buffer;
    bool has_dlpack;
    Py_buffer buffer;
    tw_dlpack_tensor dlpack;
} tw_argument;

/* From a tuple (name, dtype, shape, is_output). Returns 0, or -1 with an exception set; clear it in both cases. */
int tw_argument_spec_init(tw_argument_spec *spec, PyObject *description);
void tw_argument_spec_clear(tw_argument_spec *spec);

/* Hold the memory of `count` arrays and check them against their specs and each other. Returns 0, or -1 with
 * KernelArgumentError set and nothing held. */
int tw_arguments_acquire(tw_argument *arguments, PyObject *kernel_name, const tw_argument_spec *specs,
                         PyObject *const *arrays, Py_ssize_t count);
void tw_arguments_release(tw_argument *arguments, Py_ssize_t count);

/* Type, shape, contiguity, alignment and, for an output, writability of what was passed. */
int tw_check_layout(PyObject *kernel_name, const tw_argument_spec *spec, PyObject *object, const tw_layout *layout);

/* That no output shares memory with another argument. */
int tw_check_overlap(PyObject *kernel_name, const tw_argument_spec *specs, const tw_argument *arguments,
                     Py_ssize_t count);

/* Raise the error of an array of another type than expected. */
int tw_raise_dtype_error(PyObject *kernel_name, const tw_argument_spec *spec, PyObject *object);

/* "input" or "output". */
const char *tw_argument_role(const tw_argument_spec *spec);

#endif
