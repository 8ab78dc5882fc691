/* AlignedMemory: a writable block for NumPy arrays whose elements start on a cache line, which np.empty does not
 * promise. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

#include "tilewright_runtime.h"
#include "types.h"

typedef struct {
    PyObject_HEAD
    void *data;
    Py_ssize_t nbytes;
} AlignedMemory;

static PyObject *memory_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"nbytes", NULL};
    Py_ssize_t nbytes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n:AlignedMemory", names, &nbytes)) return NULL;
    if (nbytes < 0) return PyErr_Format(PyExc_ValueError, "nbytes must not be negative, got %zd", nbytes);
    AlignedMemory *self = (AlignedMemory *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->nbytes = nbytes;
    self->data = tw_allocate(nbytes);
    if (self->data != NULL) return (PyObject *)self;
    Py_DECREF(self);
    return PyErr_NoMemory();
}

static void memory_dealloc(AlignedMemory *self) {
    PyTypeObject *type = Py_TYPE(self);
    free(self->data);
    type->tp_free(self);
    Py_DECREF(type);
}

static int memory_getbuffer(AlignedMemory *self, Py_buffer *view, int flags) {
    return PyBuffer_FillInfo(view, (PyObject *)self, self->data, self->nbytes, 0, flags);
}

static PyType_Slot memory_slots[] = {
    {Py_tp_doc, "A writable block of memory that starts on a cache line."},
    {Py_tp_new, memory_new},
    {Py_tp_dealloc, memory_dealloc},
    {Py_bf_getbuffer, memory_getbuffer},
    {0, NULL},
};

PyType_Spec tw_aligned_memory_type_spec = {
    .name = "tilewright.runtime._native.AlignedMemory",
    .basicsize = sizeof(AlignedMemory),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = memory_slots,
};
