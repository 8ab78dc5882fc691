/* Raising tilewright's errors from C, with the exception that caused them. */
#include "exceptions.h"

#include <stdarg.h>

PyObject *tw_exception_take(void) {
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL) return NULL;
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) PyException_SetTraceback(value, traceback);
    Py_XDECREF(traceback);
    Py_DECREF(type);
    return value;
#endif
}

void tw_exception_put(PyObject *exception) {
    if (exception == NULL) return;
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(exception);
#else
    PyObject *type = (PyObject *)Py_TYPE(exception);
    Py_INCREF(type);
    PyErr_Restore(type, exception, PyException_GetTraceback(exception));
#endif
}

static void raise(const char *class_name, PyObject *kernel_name, const char *format, va_list values) {
    PyObject *cause = tw_exception_take();
    PyObject *rule = PyUnicode_FromFormatV(format, values);
    PyObject *module = rule == NULL ? NULL : PyImport_ImportModule("tilewright.errors");
    PyObject *class = module == NULL ? NULL : PyObject_GetAttrString(module, class_name);
    if (class != NULL) PyErr_Format(class, "kernel %U: %U", kernel_name, rule);
    Py_XDECREF(class);
    Py_XDECREF(module);
    Py_XDECREF(rule);
    if (cause == NULL) return;
    PyObject *raised = tw_exception_take();
    PyException_SetCause(raised, cause);
    tw_exception_put(raised);
}

int tw_raise_argument_error(PyObject *kernel_name, const char *format, ...) {
    va_list values;
    va_start(values, format);
    raise("KernelArgumentError", kernel_name, format, values);
    va_end(values);
    return -1;
}

int tw_raise_kernel_error(PyObject *kernel_name, const char *format, ...) {
    va_list values;
    va_start(values, format);
    raise("TilewrightError", kernel_name, format, values);
    va_end(values);
    return -1;
}
