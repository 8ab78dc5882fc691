/* NativeKernel: a compiled kernel, callable on all of its inputs and outputs. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>
#include <time.h>

#include "arguments.h"
#include "exceptions.h"
#include "tilewright_runtime.h"
#include "types.h"

/* Calls with up to this many arguments do not allocate. */
#define ARGUMENTS_ON_STACK 16

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *name;
    PyObject *keepalive;
    tw_kernel entry;
    tw_runtime runtime;
    int64_t workspace_bytes;
    Py_ssize_t num_arguments;
    tw_argument_spec *arguments;
} NativeKernel;

/* ---- running -------------------------------------------------------------------------------------------- */

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Copies of one argument, one behind the other in memory, for runs to use in turn; `next` is that of the next run.
 * Before a run, and not timed, the threads write the first `produced_bytes` of it anew: as the kernel before in a
 * network does, they leave it in the caches of all cores. */
typedef struct {
    int64_t count, stride, produced_bytes, next;
} tw_copies;

#define PRODUCED_AT_ONCE 4096
#define CACHE_LINE 64

typedef struct {
    volatile char *data;
    int64_t bytes, threads, share; /* share: the pieces of each thread */
} production;

/* Iteration i is a piece of the thread i / share: its pieces lie between those of the others. */
static void produce_pieces(void *context, int64_t begin, int64_t end) {
    const production *p = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t piece = (i % p->share) * p->threads + i / p->share;
        const int64_t first = piece * PRODUCED_AT_ONCE;
        const int64_t last = first + PRODUCED_AT_ONCE < p->bytes ? first + PRODUCED_AT_ONCE : p->bytes;
        for (int64_t k = first; k < last; k += CACHE_LINE) p->data[k] = p->data[k];
    }
}

static void produce(const tw_runtime *runtime, char *data, int64_t bytes) {
    const int64_t pieces = (bytes + PRODUCED_AT_ONCE - 1) / PRODUCED_AT_ONCE;
    const int64_t share = (pieces + runtime->num_threads - 1) / runtime->num_threads;
    production p = {data, bytes, runtime->num_threads, share};
    runtime->parallel_for(runtime, produce_pieces, &p, share * runtime->num_threads);
}

/* Run `number` times on checked arguments. Returns the seconds it took, or -1 with an exception set. */
static double run(NativeKernel *self, const tw_argument *arguments, int64_t number, tw_copies *copies) {
    void *pointers_on_stack[ARGUMENTS_ON_STACK];
    void **pointers = pointers_on_stack;
    if (self->num_arguments > ARGUMENTS_ON_STACK) pointers = PyMem_New(void *, self->num_arguments);
    tw_call call;
    if (pointers == NULL || tw_call_begin(&call, self->workspace_bytes, self->runtime.scratch_bytes) != 0) {
        if (pointers != pointers_on_stack) PyMem_Free(pointers);
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < self->num_arguments; i++) pointers[i] = arguments[i].data;

    int32_t status = 0;
    double seconds = 0;
    Py_BEGIN_ALLOW_THREADS;
    double start_s = now_s();
    for (int64_t i = 0; i < number && status == 0; i++) {
        bool has_produced = false;
        for (Py_ssize_t k = 0; copies != NULL && k < self->num_arguments; k++) {
            pointers[k] = (char *)arguments[k].data + copies[k].next * copies[k].stride;
            copies[k].next = copies[k].next + 1 < copies[k].count ? copies[k].next + 1 : 0;
            if (copies[k].produced_bytes == 0) continue;
            if (!has_produced) seconds += now_s() - start_s;
            has_produced = true;
            produce(&self->runtime, pointers[k], copies[k].produced_bytes);
        }
        if (has_produced) start_s = now_s();
        status = self->entry(&self->runtime, pointers, call.workspace);
    }
    seconds += now_s() - start_s;
    Py_END_ALLOW_THREADS;

    tw_call_end(&call);
    if (pointers != pointers_on_stack) PyMem_Free(pointers);
    if (status == 0) return seconds;
    return tw_raise_kernel_error(self->name, "the compiled code returned status %d instead of 0", (int)status);
}

/* Hold and check the arrays, and run on them. */
static double run_on(NativeKernel *self, PyObject *const *arrays, Py_ssize_t num_arrays, int64_t number,
                     tw_copies *copies) {
    if (num_arrays != self->num_arguments)
        return tw_raise_argument_error(self->name, "it takes %zd arrays, its inputs and then its outputs, got %zd",
                                       self->num_arguments, num_arrays);
    tw_argument arguments_on_stack[ARGUMENTS_ON_STACK];
    tw_argument *arguments = arguments_on_stack;
    if (num_arrays > ARGUMENTS_ON_STACK) arguments = PyMem_New(tw_argument, num_arrays);
    if (arguments == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    double seconds = -1;
    if (tw_arguments_acquire(arguments, self->name, self->arguments, arrays, num_arrays) == 0) {
        seconds = run(self, arguments, number, copies);
        tw_arguments_release(arguments, num_arrays);
    }
    if (arguments != arguments_on_stack) PyMem_Free(arguments);
    return seconds;
}

static PyObject *kernel_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *keyword_names) {
    NativeKernel *self = (NativeKernel *)callable;
    if (keyword_names != NULL && PyTuple_GET_SIZE(keyword_names) > 0) {
        PyErr_SetString(PyExc_TypeError, "NativeKernel takes its arrays by position, not by keyword");
        return NULL;
    }
    if (run_on(self, args, PyVectorcall_NARGS(nargsf), 1, NULL) < 0) return NULL;
    Py_RETURN_NONE;
}

/* Read (first, ((count, stride, produced_bytes), ...)), three for each argument. The result is to be freed; NULL with
 * an exception. */
static tw_copies *read_turns(NativeKernel *self, PyObject *description) {
    long long first;
    PyObject *entries;
    if (!PyTuple_Check(description) || !PyArg_ParseTuple(description, "LO!:turns", &first, &PyTuple_Type, &entries)) {
        PyErr_Format(PyExc_TypeError, "turns are described by (first, ((count, stride, produced), ...)), got %R", description);
        return NULL;
    }
    if (first < 0 || PyTuple_GET_SIZE(entries) != self->num_arguments) {
        PyErr_Format(PyExc_ValueError, "kernel %U needs a first turn from 0 on and %zd entries, got %R", self->name,
                     self->num_arguments, description);
        return NULL;
    }
    tw_copies *copies = PyMem_New(tw_copies, self->num_arguments + 1);
    if (copies == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t k = 0; k < self->num_arguments; k++) {
        long long count, stride, produced_bytes;
        PyObject *entry = PyTuple_GET_ITEM(entries, k);
        if (!PyTuple_Check(entry) || !PyArg_ParseTuple(entry, "LLL:turns", &count, &stride, &produced_bytes) ||
            count < 1 || produced_bytes < 0) {
            if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
                PyErr_Format(PyExc_ValueError,
                             "an entry is (count, stride, produced) with a count from 1 on and bytes from 0 on, got %R",
                             entry);
            PyMem_Free(copies);
            return NULL;
        }
        copies[k] = (tw_copies){count, stride, produced_bytes, first % count};
    }
    return copies;
}

static PyObject *kernel_time(NativeKernel *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"arrays", "number", "turns", NULL};
    PyObject *arrays, *description = Py_None;
    long long number;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!L|O:time", names, &PyTuple_Type, &arrays, &number, &description))
        return NULL;
    if (number < 1) return PyErr_Format(PyExc_ValueError, "number must be at least 1, got %lld", number);
    tw_copies *copies = NULL;
    if (description != Py_None && (copies = read_turns(self, description)) == NULL) return NULL;
    const double seconds = run_on(self, &PyTuple_GET_ITEM(arrays, 0), PyTuple_GET_SIZE(arrays), number, copies);
    PyMem_Free(copies);
    return seconds < 0 ? NULL : PyFloat_FromDouble(seconds);
}

static PyObject *kernel_check(NativeKernel *self, PyObject *args) {
    Py_ssize_t position;
    PyObject *array;
    if (!PyArg_ParseTuple(args, "nO:check", &position, &array)) return NULL;
    if (position < 0 || position >= self->num_arguments)
        return PyErr_Format(PyExc_IndexError, "position must be in 0..%zd, got %zd", self->num_arguments - 1, position);
    tw_argument argument;
    if (tw_arguments_acquire(&argument, self->name, &self->arguments[position], &array, 1) != 0) return NULL;
    tw_arguments_release(&argument, 1);
    Py_RETURN_NONE;
}

/* ---- the object ----------------------------------------------------------------------------------------- */

static int set_arguments(NativeKernel *self, PyObject *descriptions) {
    const Py_ssize_t count = PyTuple_GET_SIZE(descriptions);
    self->arguments = PyMem_Calloc((size_t)(count > 0 ? count : 1), sizeof(tw_argument_spec));
    if (self->arguments == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->num_arguments = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (tw_argument_spec_init(&self->arguments[i], PyTuple_GET_ITEM(descriptions, i)) != 0) return -1;
    return 0;
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"name",          "entry_address", "arguments", "workspace_bytes",
                            "scratch_bytes", "num_threads",   "keepalive", NULL};
    PyObject *name, *address, *arguments, *keepalive;
    long long workspace_bytes, scratch_bytes, num_threads;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UO!O!LLLO:NativeKernel", names, &name, &PyLong_Type, &address,
                                     &PyTuple_Type, &arguments, &workspace_bytes, &scratch_bytes, &num_threads,
                                     &keepalive))
        return NULL;
    void *entry = PyLong_AsVoidPtr(address);
    if (entry == NULL && PyErr_Occurred()) return NULL;
    if (entry == NULL || workspace_bytes < 0 || scratch_bytes < 0 || num_threads < 1) {
        PyErr_Format(PyExc_ValueError,
                     "kernel %U needs an entry address, sizes that are not negative and at least one thread, "
                     "got entry_address=%R, workspace_bytes=%lld, scratch_bytes=%lld, num_threads=%lld",
                     name, address, workspace_bytes, scratch_bytes, num_threads);
        return NULL;
    }
    NativeKernel *self = (NativeKernel *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    Py_INCREF(name);
    Py_INCREF(keepalive);
    self->vectorcall = kernel_vectorcall;
    self->name = name;
    self->keepalive = keepalive;
    self->entry = (tw_kernel)entry;
    self->workspace_bytes = workspace_bytes;
    tw_runtime_init(&self->runtime, num_threads, scratch_bytes);
    if (set_arguments(self, arguments) == 0) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static int kernel_traverse(NativeKernel *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->keepalive);
    return 0;
}

/* No tp_clear: the code must stay mapped as long as the kernel can be called. A cycle through keepalive is broken at
 * the other objects in it. */
static void kernel_dealloc(NativeKernel *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; i < self->num_arguments; i++) tw_argument_spec_clear(&self->arguments[i]);
    PyMem_Free(self->arguments);
    Py_CLEAR(self->name);
    Py_CLEAR(self->keepalive);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *kernel_repr(NativeKernel *self) { return PyUnicode_FromFormat("<NativeKernel %U>", self->name); }

static PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(NativeKernel, vectorcall), READONLY, NULL},
    {"name", T_OBJECT, offsetof(NativeKernel, name), READONLY, "The name of the kernel."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef kernel_methods[] = {
    {"time", (PyCFunction)(void (*)(void))kernel_time, METH_VARARGS | METH_KEYWORDS,
     "time(arrays, number, turns=None)\n--\n\nRun `number` times without Python in between; return the seconds that all "
     "of them took. With turns (first, ((count, stride, produced), ...)), each run uses the next of so many copies of an "
     "argument, of which so many bytes are written anew before it: the arrays are the first ones, and the caller answers "
     "for what lies behind them."},
    {"check", (PyCFunction)kernel_check, METH_VARARGS,
     "check(position, array)\n--\n\nRaise KernelArgumentError unless `array` can be the argument at `position`."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, "A compiled kernel; called with its inputs and then its outputs, which it writes."},
    {Py_tp_new, kernel_new},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_traverse, kernel_traverse},
    {Py_tp_repr, kernel_repr},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, kernel_members},
    {Py_tp_methods, kernel_methods},
    {0, NULL},
};

PyType_Spec tw_native_kernel_type_spec = {
    .name = "tilewright.runtime._native.NativeKernel",
    .basicsize = sizeof(NativeKernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = kernel_slots,
};
