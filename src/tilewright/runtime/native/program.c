/* NativeProgram: the kernel calls of a network as one callable on its inputs and outputs. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdlib.h>
#include <structmember.h>
#include <time.h>

#include "arguments.h"
#include "exceptions.h"
#include "program_run.h"
#include "types.h"

/* An arena that no call uses now; the list runs through the arenas themselves. */
typedef struct spare_arena {
    struct spare_arena *next;
} spare_arena;

typedef struct {
    PyObject_HEAD
    PyObject *name;
    PyObject *keepalive;
    tw_program program;
    tw_step *steps;
    tw_slot *slots;
    void **constants;
    Py_buffer *constant_buffers;
    Py_ssize_t num_constants; /* of which the buffers are held */
    Py_ssize_t num_arguments;
    tw_argument_spec *arguments;
    spare_arena *spare_arenas; /* guarded by the interpreter lock */
} NativeProgram;

/* ---- running -------------------------------------------------------------------------------------------- */

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Each call under way has an arena of its own; there are as many as there ever were calls at once. */
static void *take_arena(NativeProgram *self) {
    spare_arena *spare = self->spare_arenas;
    if (spare == NULL) return tw_allocate(self->program.arena_bytes);
    self->spare_arenas = spare->next;
    return spare;
}

static void give_back_arena(NativeProgram *self, void *arena) {
    spare_arena *spare = arena;
    spare->next = self->spare_arenas;
    self->spare_arenas = spare;
}

/* Run `number` times on checked arguments, the seconds of each step into `step_s` unless it is NULL. Returns the
 * seconds of all runs, or -1 with an exception set. */
static double run(NativeProgram *self, const tw_argument *arguments, int64_t number, double *step_s) {
    void **arrays = PyMem_New(void *, self->num_arguments + 1);
    void *arena = take_arena(self);
    if (arrays == NULL || arena == NULL) {
        PyMem_Free(arrays);
        if (arena != NULL) give_back_arena(self, arena);
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < self->num_arguments; i++) arrays[i] = arguments[i].data;

    int32_t status = 0;
    double seconds = 0;
    Py_BEGIN_ALLOW_THREADS;
    const double start_s = now_s();
    for (int64_t i = 0; i < number && status == 0; i++)
        status = step_s == NULL ? tw_program_run(&self->program, arrays, arena)
                                : tw_program_profile(&self->program, arrays, arena, step_s);
    seconds = now_s() - start_s;
    Py_END_ALLOW_THREADS;

    give_back_arena(self, arena);
    PyMem_Free(arrays);
    if (status == 0) return seconds;
    if (status == TW_NO_MEMORY) {
        PyErr_NoMemory();
        return -1;
    }
    return tw_raise_kernel_error(self->name, "the compiled code returned status %d instead of 0", (int)status);
}

/* Hold and check the arrays, and run on them. */
static double run_on(NativeProgram *self, PyObject *arrays, int64_t number, double *step_s) {
    const Py_ssize_t num_arrays = PyTuple_GET_SIZE(arrays);
    if (num_arrays != self->num_arguments)
        return tw_raise_argument_error(self->name, "it takes %zd arrays, its inputs and then its outputs, got %zd",
                                       self->num_arguments, num_arrays);
    tw_argument *arguments = PyMem_New(tw_argument, num_arrays > 0 ? num_arrays : 1);
    if (arguments == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    double seconds = -1;
    if (tw_arguments_acquire(arguments, self->name, self->arguments, &PyTuple_GET_ITEM(arrays, 0), num_arrays) == 0) {
        seconds = run(self, arguments, number, step_s);
        tw_arguments_release(arguments, num_arrays);
    }
    PyMem_Free(arguments);
    return seconds;
}

static PyObject *program_call(NativeProgram *self, PyObject *arrays, PyObject *keywords) {
    if (keywords != NULL && PyDict_GET_SIZE(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "NativeProgram takes its arrays by position, not by keyword");
        return NULL;
    }
    if (run_on(self, arrays, 1, NULL) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *program_time(NativeProgram *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"arrays", "number", NULL};
    PyObject *arrays;
    long long number;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!L:time", names, &PyTuple_Type, &arrays, &number)) return NULL;
    if (number < 1) return PyErr_Format(PyExc_ValueError, "number must be at least 1, got %lld", number);
    const double seconds = run_on(self, arrays, number, NULL);
    return seconds < 0 ? NULL : PyFloat_FromDouble(seconds);
}

static PyObject *program_profile(NativeProgram *self, PyObject *arrays) {
    if (!PyTuple_Check(arrays)) return PyErr_Format(PyExc_TypeError, "profile takes a tuple of arrays, got %R", arrays);
    const Py_ssize_t num_steps = (Py_ssize_t)self->program.num_steps;
    double *step_s = PyMem_New(double, num_steps + 1);
    if (step_s == NULL) return PyErr_NoMemory();
    PyObject *result = run_on(self, arrays, 1, step_s) < 0 ? NULL : PyTuple_New(num_steps);
    for (Py_ssize_t i = 0; result != NULL && i < num_steps; i++) {
        PyObject *seconds = PyFloat_FromDouble(step_s[i]);
        if (seconds == NULL) Py_CLEAR(result);
        else PyTuple_SET_ITEM(result, i, seconds);
    }
    PyMem_Free(step_s);
    return result;
}

/* ---- the object ----------------------------------------------------------------------------------------- */

static int set_arguments(NativeProgram *self, PyObject *descriptions) {
    const Py_ssize_t count = PyTuple_GET_SIZE(descriptions);
    self->arguments = PyMem_Calloc((size_t)count + 1, sizeof(tw_argument_spec));
    if (self->arguments == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->num_arguments = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (tw_argument_spec_init(&self->arguments[i], PyTuple_GET_ITEM(descriptions, i)) != 0) return -1;
    return 0;
}

static int set_constants(NativeProgram *self, PyObject *arrays) {
    const Py_ssize_t count = PyTuple_GET_SIZE(arrays);
    self->constant_buffers = PyMem_New(Py_buffer, count + 1);
    self->constants = PyMem_New(void *, count + 1);
    if (self->constant_buffers == NULL || self->constants == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyObject_GetBuffer(PyTuple_GET_ITEM(arrays, i), &self->constant_buffers[i], PyBUF_C_CONTIGUOUS) != 0)
            return -1;
        self->constants[i] = self->constant_buffers[i].buf;
        self->num_constants++;
    }
    self->program.constants = (const void *const *)self->constants;
    return 0;
}

static bool is_in_range(const NativeProgram *self, int place, long long position) {
    if (position < 0) return false;
    switch (place) {
        case TW_ARGUMENT: return position < self->num_arguments;
        case TW_CONSTANT: return position < self->num_constants;
        case TW_ARENA: return position < self->program.arena_bytes;
        default: return false;
    }
}

static int set_slot(NativeProgram *self, tw_slot *slot, PyObject *description) {
    int place;
    long long position;
    if (!PyTuple_Check(description) || !PyArg_ParseTuple(description, "iL", &place, &position)) {
        PyErr_Format(PyExc_TypeError, "a slot is described by (place, position), got %R", description);
        return -1;
    }
    if (!is_in_range(self, place, position)) {
        PyErr_Format(PyExc_ValueError, "program %U has no slot %R", self->name, description);
        return -1;
    }
    *slot = (tw_slot){(tw_place)place, position};
    return 0;
}

static int set_step(NativeProgram *self, tw_step *step, PyObject *description, int64_t first_slot) {
    PyObject *address, *slots;
    long long workspace_offset;
    if (!PyTuple_Check(description) ||
        !PyArg_ParseTuple(description, "O!LO!", &PyLong_Type, &address, &workspace_offset, &PyTuple_Type, &slots)) {
        PyErr_Format(PyExc_TypeError, "a step is described by (entry_address, workspace_offset, slots), got %R",
                     description);
        return -1;
    }
    void *entry = PyLong_AsVoidPtr(address);
    if (entry == NULL && PyErr_Occurred()) return -1;
    if (entry == NULL || workspace_offset < 0 || workspace_offset > self->program.arena_bytes) {
        PyErr_Format(PyExc_ValueError, "program %U needs steps with an address and a workspace in the arena, got %R",
                     self->name, description);
        return -1;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(slots);
    *step = (tw_step){(tw_kernel)entry, first_slot, count, workspace_offset};
    for (Py_ssize_t i = 0; i < count; i++)
        if (set_slot(self, &self->slots[first_slot + i], PyTuple_GET_ITEM(slots, i)) != 0) return -1;
    if (count > self->program.max_slots) self->program.max_slots = count;
    return 0;
}

/* How many slots all steps have; those that are not well-formed are found later. */
static Py_ssize_t count_slots(PyObject *descriptions) {
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(descriptions); i++) {
        PyObject *step = PyTuple_GET_ITEM(descriptions, i);
        if (!PyTuple_Check(step) || PyTuple_GET_SIZE(step) != 3) continue;
        PyObject *slots = PyTuple_GET_ITEM(step, 2);
        if (PyTuple_Check(slots)) count += PyTuple_GET_SIZE(slots);
    }
    return count;
}

static int set_steps(NativeProgram *self, PyObject *descriptions) {
    const Py_ssize_t count = PyTuple_GET_SIZE(descriptions);
    self->steps = PyMem_New(tw_step, count + 1);
    self->slots = PyMem_New(tw_slot, count_slots(descriptions) + 1);
    if (self->steps == NULL || self->slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int64_t first_slot = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (set_step(self, &self->steps[i], PyTuple_GET_ITEM(descriptions, i), first_slot) != 0) return -1;
        first_slot += self->steps[i].num_slots;
    }
    self->program.steps = self->steps;
    self->program.num_steps = count;
    self->program.slots = self->slots;
    return 0;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"name",        "arguments",     "constants",   "steps",
                            "arena_bytes", "scratch_bytes", "num_threads", "keepalive", NULL};
    PyObject *name, *arguments, *constants, *steps, *keepalive;
    long long arena_bytes, scratch_bytes, num_threads;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UO!O!O!LLLO:NativeProgram", names, &name, &PyTuple_Type, &arguments,
                                     &PyTuple_Type, &constants, &PyTuple_Type, &steps, &arena_bytes, &scratch_bytes,
                                     &num_threads, &keepalive))
        return NULL;
    if (arena_bytes < 0 || scratch_bytes < 0 || num_threads < 1)
        return PyErr_Format(PyExc_ValueError,
                            "program %U needs sizes that are not negative and at least one thread, got "
                            "arena_bytes=%lld, scratch_bytes=%lld, num_threads=%lld",
                            name, arena_bytes, scratch_bytes, num_threads);
    NativeProgram *self = (NativeProgram *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    Py_INCREF(name);
    Py_INCREF(keepalive);
    self->name = name;
    self->keepalive = keepalive;
    self->program.arena_bytes = arena_bytes;
    self->program.scratch_bytes = scratch_bytes;
    self->program.num_threads = num_threads;
    if (set_arguments(self, arguments) == 0 && set_constants(self, constants) == 0 && set_steps(self, steps) == 0)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static int program_traverse(NativeProgram *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->keepalive);
    for (Py_ssize_t i = 0; i < self->num_constants; i++) Py_VISIT(self->constant_buffers[i].obj);
    return 0;
}

/* No tp_clear: the code and the constants must stay as long as the program can be called. */
static void program_dealloc(NativeProgram *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    while (self->spare_arenas != NULL) free(take_arena(self));
    for (Py_ssize_t i = 0; i < self->num_arguments; i++) tw_argument_spec_clear(&self->arguments[i]);
    for (Py_ssize_t i = 0; i < self->num_constants; i++) PyBuffer_Release(&self->constant_buffers[i]);
    PyMem_Free(self->arguments);
    PyMem_Free(self->constant_buffers);
    PyMem_Free(self->constants);
    PyMem_Free(self->steps);
    PyMem_Free(self->slots);
    Py_CLEAR(self->name);
    Py_CLEAR(self->keepalive);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *program_repr(NativeProgram *self) {
    return PyUnicode_FromFormat("<NativeProgram %U of %lld steps>", self->name, (long long)self->program.num_steps);
}

static PyMemberDef program_members[] = {
    {"name", T_OBJECT, offsetof(NativeProgram, name), READONLY, "The name of the program."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef program_methods[] = {
    {"time", (PyCFunction)(void (*)(void))program_time, METH_VARARGS | METH_KEYWORDS,
     "time(arrays, number)\n--\n\nRun `number` times without Python in between; return the seconds that all of them "
     "took."},
    {"profile", (PyCFunction)program_profile, METH_O,
     "profile(arrays)\n--\n\nRun once; return the seconds that each step took."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, "The kernel calls of a network; called with its inputs and then its outputs, which it writes."},
    {Py_tp_new, program_new},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_traverse, program_traverse},
    {Py_tp_repr, program_repr},
    {Py_tp_call, program_call},
    {Py_tp_members, program_members},
    {Py_tp_methods, program_methods},
    {0, NULL},
};

PyType_Spec tw_native_program_type_spec = {
    .name = "tilewright.runtime._native.NativeProgram",
    .basicsize = sizeof(NativeProgram),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = program_slots,
};
