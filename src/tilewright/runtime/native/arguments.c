/* Taking the memory of arrays: by the buffer protocol (NumPy), or by DLPack (torch and others). */
#include "arguments.h"

#include <string.h>

#include "exceptions.h"

static const struct {
    const char *name;
    tw_kind kind;
    int64_t itemsize;
} DTYPES[] = {
    {"bool", KIND_BOOL, 1},       {"int8", KIND_INT, 1},      {"uint8", KIND_UINT, 1},
    {"int32", KIND_INT, 4},       {"int64", KIND_INT, 8},     {"float16", KIND_FLOAT, 2},
    {"bfloat16", KIND_BFLOAT, 2}, {"float32", KIND_FLOAT, 4}, {"float64", KIND_FLOAT, 8},
};

/* ---- what a kernel expects ------------------------------------------------------------------------------ */

static int set_dtype(tw_argument_spec *spec, const char *name) {
    for (size_t i = 0; i < sizeof DTYPES / sizeof DTYPES[0]; i++) {
        if (strcmp(DTYPES[i].name, name) != 0) continue;
        spec->dtype = DTYPES[i].name;
        spec->kind = DTYPES[i].kind;
        spec->itemsize = DTYPES[i].itemsize;
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "argument %U has the unknown dtype '%s'", spec->name, name);
    return -1;
}

static int set_shape(tw_argument_spec *spec, PyObject *shape) {
    if (PyTuple_GET_SIZE(shape) > TW_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "argument %U has more than %d dimensions", spec->name, TW_MAX_DIMS);
        return -1;
    }
    spec->ndim = (int)PyTuple_GET_SIZE(shape);
    spec->shape_text = PyObject_Repr(shape);
    spec->shape = PyMem_New(int64_t, spec->ndim > 0 ? spec->ndim : 1);
    if (spec->shape_text == NULL) return -1;
    if (spec->shape == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    spec->nbytes = spec->itemsize;
    for (int d = 0; d < spec->ndim; d++) {
        spec->shape[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, d));
        if (spec->shape[d] == -1 && PyErr_Occurred()) return -1;
        if (spec->shape[d] < 0 || __builtin_mul_overflow(spec->nbytes, spec->shape[d], &spec->nbytes)) {
            PyErr_Format(PyExc_ValueError, "argument %U has the impossible shape %U", spec->name, spec->shape_text);
            return -1;
        }
    }
    return 0;
}

int tw_argument_spec_init(tw_argument_spec *spec, PyObject *description) {
    PyObject *name, *shape;
    const char *dtype;
    int is_output;
    *spec = (tw_argument_spec){0};
    if (!PyTuple_Check(description)) {
        PyErr_Format(PyExc_TypeError, "an argument is described by (name, dtype, shape, is_output), got %R",
                     description);
        return -1;
    }
    if (!PyArg_ParseTuple(description, "UsO!p;an argument is described by (name, dtype, shape, is_output)", &name,
                          &dtype, &PyTuple_Type, &shape, &is_output))
        return -1;
    Py_INCREF(name);
    spec->name = name;
    spec->is_output = is_output;
    if (set_dtype(spec, dtype) != 0) return -1;
    return set_shape(spec, shape);
}

void tw_argument_spec_clear(tw_argument_spec *spec) {
    Py_CLEAR(spec->name);
    Py_CLEAR(spec->shape_text);
    PyMem_Free(spec->shape);
    spec->shape = NULL;
}

/* ---- what was passed ------------------------------------------------------------------------------------ */

/* The kind of a one-letter struct format in the machine's byte order; its size is the buffer's itemsize. */
static tw_kind kind_of_format(const char *format) {
    const char foreign_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<';
    if (format == NULL) return KIND_UINT;
    if (*format == foreign_order || (*format == '!' && foreign_order == '>')) return KIND_UNKNOWN;
    if (strchr("@=<>!", *format) != NULL && *format != '\0') format++;
    if (format[0] == '\0' || format[1] != '\0') return KIND_UNKNOWN;
    if (*format == '?') return KIND_BOOL;
    if (strchr("bhilqn", *format) != NULL) return KIND_INT;
    if (strchr("BHILQN", *format) != NULL) return KIND_UINT;
    if (strchr("efd", *format) != NULL) return KIND_FLOAT;
    return KIND_UNKNOWN;
}

static tw_kind kind_of_dlpack(DLDataType dtype) {
    if (dtype.lanes != 1 || dtype.bits % 8 != 0) return KIND_UNKNOWN;
    switch (dtype.code) {
        case DL_INT: return KIND_INT;
        case DL_UINT: return KIND_UINT;
        case DL_FLOAT: return KIND_FLOAT;
        case DL_BFLOAT: return KIND_BFLOAT;
        case DL_BOOL: return KIND_BOOL;
        default: return KIND_UNKNOWN;
    }
}

static void fill_contiguous_strides(tw_layout *layout) {
    int64_t stride = layout->itemsize;
    for (int d = layout->ndim - 1; d >= 0; d--) {
        layout->strides[d] = stride;
        stride *= layout->shape[d];
    }
}

static void layout_from_buffer(tw_layout *layout, const Py_buffer *buffer) {
    layout->data = buffer->buf;
    layout->kind = kind_of_format(buffer->format);
    layout->itemsize = buffer->itemsize;
    layout->ndim = buffer->ndim < TW_MAX_DIMS ? buffer->ndim : TW_MAX_DIMS;
    layout->is_read_only = buffer->readonly;
    for (int d = 0; d < layout->ndim; d++) layout->shape[d] = buffer->shape[d];
    if (buffer->strides == NULL) {
        fill_contiguous_strides(layout);
        return;
    }
    for (int d = 0; d < layout->ndim; d++) layout->strides[d] = buffer->strides[d];
}

static void layout_from_dlpack(tw_layout *layout, const tw_dlpack_tensor *taken) {
    const DLTensor *tensor = tw_dlpack_view(taken);
    layout->data = (char *)tensor->data + tensor->byte_offset;
    layout->kind = kind_of_dlpack(tensor->dtype);
    layout->itemsize = tensor->dtype.bits / 8;
    layout->ndim = tensor->ndim < TW_MAX_DIMS ? tensor->ndim : TW_MAX_DIMS;
    layout->is_read_only = tw_dlpack_is_read_only(taken);
    for (int d = 0; d < layout->ndim; d++) layout->shape[d] = tensor->shape[d];
    if (tensor->strides == NULL) {
        fill_contiguous_strides(layout);
        return;
    }
    for (int d = 0; d < layout->ndim; d++) layout->strides[d] = tensor->strides[d] * layout->itemsize;
}

/* Whether `object` is an array of ml_dtypes.bfloat16 or the like, which the buffer protocol cannot describe. */
static bool has_bfloat16_dtype(PyObject *object) {
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *name = dtype == NULL ? NULL : PyObject_GetAttrString(dtype, "name");
    const bool is_bfloat16 =
        name != NULL && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0;
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    if (PyErr_Occurred()) PyErr_Clear();
    return is_bfloat16;
}

static int acquire_buffer(tw_argument *argument, PyObject *kernel_name, const tw_argument_spec *spec,
                          PyObject *object) {
    /* Writability is checked later, by the read-only flag, for a message of our own. */
    argument->has_buffer = PyObject_GetBuffer(object, &argument->buffer, PyBUF_RECORDS_RO) == 0;
    if (argument->has_buffer) return 0;
    PyObject *cause = tw_exception_take();
    if (spec->kind != KIND_BFLOAT || !has_bfloat16_dtype(object)) {
        tw_exception_put(cause);
        return tw_raise_dtype_error(kernel_name, spec, object);
    }
    Py_DECREF(cause);
    PyObject *bits = PyObject_CallMethod(object, "view", "s", "uint16");
    if (bits == NULL) return tw_raise_dtype_error(kernel_name, spec, object);
    argument->has_buffer = PyObject_GetBuffer(bits, &argument->buffer, PyBUF_RECORDS_RO) == 0;
    Py_DECREF(bits);
    return argument->has_buffer ? 0 : tw_raise_dtype_error(kernel_name, spec, object);
}

static int acquire_dlpack(tw_argument *argument, PyObject *kernel_name, const tw_argument_spec *spec,
                          PyObject *object) {
    argument->has_dlpack = tw_dlpack_acquire(object, &argument->dlpack) == 0;
    if (argument->has_dlpack) return 0;
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_RuntimeError)) return -1;
    PyObject *refusal = tw_exception_take();
    PyObject *reason = PyObject_Str(refusal);
    tw_exception_put(refusal);
    if (reason == NULL) return -1;
    tw_raise_argument_error(
        kernel_name,
        "%s %U must share its memory by DLPack, but its library refuses: %U; pass a plain CPU tensor, such as "
        "x.detach().cpu()",
        tw_argument_role(spec), spec->name, reason);
    Py_DECREF(reason);
    return -1;
}

static void release(tw_argument *argument) {
    if (argument->has_buffer) PyBuffer_Release(&argument->buffer);
    if (argument->has_dlpack) tw_dlpack_release(&argument->dlpack);
}

static int acquire(tw_argument *argument, PyObject *kernel_name, const tw_argument_spec *spec, PyObject *object) {
    tw_layout layout;
    argument->has_buffer = argument->has_dlpack = false;
    if (PyObject_CheckBuffer(object)) {
        if (acquire_buffer(argument, kernel_name, spec, object) != 0) return -1;
        layout_from_buffer(&layout, &argument->buffer);
    } else if (tw_dlpack_supported(object)) {
        if (acquire_dlpack(argument, kernel_name, spec, object) != 0) return -1;
        layout_from_dlpack(&layout, &argument->dlpack);
    } else {
        return tw_raise_argument_error(
            kernel_name,
            "%s %U must be a NumPy array or have __dlpack__, got %.100R of type %s; pass np.asarray(x, dtype='%s')",
            tw_argument_role(spec), spec->name, object, Py_TYPE(object)->tp_name,
            spec->kind == KIND_BFLOAT ? "uint16" : spec->dtype);
    }
    argument->data = layout.data;
    if (tw_check_layout(kernel_name, spec, object, &layout) == 0) return 0;
    release(argument);
    return -1;
}

int tw_arguments_acquire(tw_argument *arguments, PyObject *kernel_name, const tw_argument_spec *specs,
                         PyObject *const *arrays, Py_ssize_t count) {
    Py_ssize_t num_held = 0;
    while (num_held < count && acquire(&arguments[num_held], kernel_name, &specs[num_held], arrays[num_held]) == 0)
        num_held++;
    if (num_held == count && tw_check_overlap(kernel_name, specs, arguments, count) == 0) return 0;
    tw_arguments_release(arguments, num_held);
    return -1;
}

void tw_arguments_release(tw_argument *arguments, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) release(&arguments[i]);
}
