/* The rules that an array must follow to be an argument. Each message names the kernel, the argument, the rule, what
 * was passed, and what to do. */
#include "arguments.h"
#include "exceptions.h"

const char *tw_argument_role(const tw_argument_spec *spec) { return spec->is_output ? "output" : "input"; }

static PyObject *tuple_text(const int64_t *values, int count) {
    PyObject *tuple = PyTuple_New(count);
    if (tuple == NULL) return NULL;
    for (int i = 0; i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (value == NULL) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, i, value);
    }
    PyObject *text = PyObject_Repr(tuple);
    Py_DECREF(tuple);
    return text;
}

int tw_raise_dtype_error(PyObject *kernel_name, const tw_argument_spec *spec, PyObject *object) {
    PyObject *cause = tw_exception_take();
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *got = NULL;
    if (dtype == NULL) {
        PyErr_Clear();
        got = PyUnicode_FromFormat("the elements of a %s", Py_TYPE(object)->tp_name);
    } else {
        got = PyObject_Str(dtype);
    }
    Py_XDECREF(dtype);
    if (got == NULL) {
        Py_XDECREF(cause);
        return -1;
    }
    tw_exception_put(cause);
    if (spec->is_output)
        tw_raise_argument_error(kernel_name, "output %U must be of type %s, got %U; pass an array of that type",
                                spec->name, spec->dtype, got);
    else if (spec->kind == KIND_BFLOAT)
        tw_raise_argument_error(kernel_name,
                                "input %U must be of type bfloat16, got %U; pass a bfloat16 array, or its "
                                "bits as a uint16 array",
                                spec->name, got);
    else
        tw_raise_argument_error(kernel_name,
                                "input %U must be of type %s, got %U; convert it first, with "
                                "x.astype('%s') in NumPy or x.to(torch.%s) in torch",
                                spec->name, spec->dtype, got, spec->dtype, spec->dtype);
    Py_DECREF(got);
    return -1;
}

static int raise_shape_error(PyObject *kernel_name, const tw_argument_spec *spec, const tw_layout *layout) {
    PyObject *got = tuple_text(layout->shape, layout->ndim);
    if (got == NULL) return -1;
    tw_raise_argument_error(kernel_name,
                            "%s %U must have shape %U, got %U; kernels are built for one shape: reshape the "
                            "array or build a kernel for its shape",
                            tw_argument_role(spec), spec->name, spec->shape_text, got);
    Py_DECREF(got);
    return -1;
}

static int raise_contiguity_error(PyObject *kernel_name, const tw_argument_spec *spec, const tw_layout *layout) {
    PyObject *strides = tuple_text(layout->strides, layout->ndim);
    if (strides == NULL) return -1;
    const char *remedy = spec->is_output ? "pass a new array, such as np.empty(shape, dtype)"
                                         : "pass np.ascontiguousarray(x), or x.contiguous() in torch";
    tw_raise_argument_error(kernel_name, "%s %U must be C-contiguous, got strides of %U bytes for shape %U; %s",
                            tw_argument_role(spec), spec->name, strides, spec->shape_text, remedy);
    Py_DECREF(strides);
    return -1;
}

static bool has_dtype(const tw_argument_spec *spec, const tw_layout *layout) {
    if (layout->itemsize != spec->itemsize) return false;
    const bool is_bits_of_bfloat16 = spec->kind == KIND_BFLOAT && layout->kind == KIND_UINT;
    return layout->kind == spec->kind || is_bits_of_bfloat16;
}

static bool has_shape(const tw_argument_spec *spec, const tw_layout *layout) {
    if (layout->ndim != spec->ndim) return false;
    for (int d = 0; d < spec->ndim; d++)
        if (layout->shape[d] != spec->shape[d]) return false;
    return true;
}

static bool is_contiguous(const tw_argument_spec *spec, const tw_layout *layout) {
    if (spec->nbytes == 0) return true;
    int64_t expected = spec->itemsize;
    for (int d = spec->ndim - 1; d >= 0; d--) {
        /* The stride of a dimension of one element is never used, and libraries put anything there. */
        if (spec->shape[d] != 1 && layout->strides[d] != expected) return false;
        expected *= spec->shape[d];
    }
    return true;
}

int tw_check_layout(PyObject *kernel_name, const tw_argument_spec *spec, PyObject *object, const tw_layout *layout) {
    if (!has_dtype(spec, layout)) return tw_raise_dtype_error(kernel_name, spec, object);
    if (!has_shape(spec, layout)) return raise_shape_error(kernel_name, spec, layout);
    if (!is_contiguous(spec, layout)) return raise_contiguity_error(kernel_name, spec, layout);
    if ((uintptr_t)layout->data % (uintptr_t)spec->itemsize != 0)
        return tw_raise_argument_error(
            kernel_name,
            "%s %U must be aligned to its element size of %d bytes, got the address %p; pass a copy: x.copy()",
            tw_argument_role(spec), spec->name, (int)spec->itemsize, (void *)layout->data);
    if (spec->is_output && layout->is_read_only)
        return tw_raise_argument_error(
            kernel_name,
            "output %U must be writable, got a read-only array; pass a writable one, such as np.empty(shape, dtype)",
            spec->name);
    return 0;
}

static bool overlaps(const tw_argument_spec *a, const void *a_data, const tw_argument_spec *b, const void *b_data) {
    const uintptr_t a_begin = (uintptr_t)a_data, b_begin = (uintptr_t)b_data;
    if (a->nbytes == 0 || b->nbytes == 0) return false;
    return a_begin < b_begin + (uintptr_t)b->nbytes && b_begin < a_begin + (uintptr_t)a->nbytes;
}

int tw_check_overlap(PyObject *kernel_name, const tw_argument_spec *specs, const tw_argument *arguments,
                     Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!specs[i].is_output) continue;
        for (Py_ssize_t j = 0; j < count; j++) {
            const bool is_checked_from_the_other = specs[j].is_output && j >= i;
            if (is_checked_from_the_other) continue;
            if (!overlaps(&specs[i], arguments[i].data, &specs[j], arguments[j].data)) continue;
            return tw_raise_argument_error(
                kernel_name,
                "output %U must not share memory with another argument, but overlaps %s %U; pass an array of its "
                "own as out",
                specs[i].name, tw_argument_role(&specs[j]), specs[j].name);
        }
    }
    return 0;
}
