/* The extension module tilewright.runtime._native. Start reading at kernel.c for calls and at pool.c for threads. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <time.h>

#include "tilewright_runtime.h"
#include "types.h"

static PyObject *num_workers(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromLong(tw_pool_num_workers());
}

static void empty_body(void *context, int64_t begin, int64_t end) {
    (void)context;
    (void)begin;
    (void)end;
}

static PyObject *time_empty_regions(PyObject *module, PyObject *args) {
    (void)module;
    long long num_threads, number;
    if (!PyArg_ParseTuple(args, "LL:time_empty_regions", &num_threads, &number)) return NULL;
    tw_runtime runtime;
    tw_runtime_init(&runtime, num_threads, 0);
    struct timespec start, stop;
    Py_BEGIN_ALLOW_THREADS;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long long i = 0; i < number; i++) runtime.parallel_for(&runtime, empty_body, NULL, num_threads);
    clock_gettime(CLOCK_MONOTONIC, &stop);
    Py_END_ALLOW_THREADS;
    return PyFloat_FromDouble((double)(stop.tv_sec - start.tv_sec) + (double)(stop.tv_nsec - start.tv_nsec) * 1e-9);
}

static PyObject *probe_cores(PyObject *module, PyObject *args) {
    (void)module;
    long long num_threads;
    if (!PyArg_ParseTuple(args, "L:probe_cores", &num_threads)) return NULL;
    double compute_s, exchange_s;
    bool is_known;
    Py_BEGIN_ALLOW_THREADS;
    is_known = tw_probe_cores(num_threads, &compute_s, &exchange_s);
    Py_END_ALLOW_THREADS;
    if (!is_known) Py_RETURN_NONE;
    return Py_BuildValue("(dd)", compute_s, exchange_s);
}

static int add_type(PyObject *module, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    if (type == NULL) return -1;
    const int status = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return status;
}

static int execute(PyObject *module) {
    if (add_type(module, &tw_native_kernel_type_spec) != 0) return -1;
    if (add_type(module, &tw_native_program_type_spec) != 0) return -1;
    return add_type(module, &tw_aligned_memory_type_spec);
}

static PyMethodDef methods[] = {
    {"num_workers", num_workers, METH_NOARGS,
     "num_workers()\n--\n\nHow many worker threads the pool of this process has now."},
    {"time_empty_regions", time_empty_regions, METH_VARARGS,
     "time_empty_regions(num_threads, number)\n--\n\nThe seconds that `number` parallel regions without work take."},
    {"probe_cores", probe_cores, METH_VARARGS,
     "probe_cores(num_threads)\n--\n\nThe seconds that so many threads take to compute something, all at once, and that "
     "a cache line takes from one to the next; None if they were not all there at once."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tilewright.runtime._native",
    .m_doc = "The part of the runtime that is written in C.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
