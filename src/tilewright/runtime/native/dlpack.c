/* Taking tensors from DLPack producers: the C exchange table where a type has one, else the Python protocol. */
#include "dlpack.h"

#include <stdbool.h>

#include "exceptions.h"

#define DLPACK_MAJOR 1

typedef struct DLPackExchangeAPIHeader {
    DLPackVersion version;
    struct DLPackExchangeAPIHeader *prev_api;
} DLPackExchangeAPIHeader;

/* The head of the specification's table; the entries after these are not used here. */
typedef struct {
    DLPackExchangeAPIHeader header;
    void *managed_tensor_allocator;
    int (*managed_tensor_from_py_object_no_sync)(void *object, DLManagedTensorVersioned **out);
} DLPackExchangeAPI;

int tw_dlpack_supported(PyObject *object) { return PyObject_HasAttrString(object, "__dlpack__"); }

/* The exchange table of the object's type, or NULL without an exception. */
static const DLPackExchangeAPI *exchange_table(PyObject *object) {
    PyObject *capsule = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__");
    if (capsule == NULL) {
        PyErr_Clear();
        return NULL;
    }
    const DLPackExchangeAPIHeader *api = NULL;
    if (PyCapsule_IsValid(capsule, "dlpack_exchange_api")) api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_DECREF(capsule); /* the table itself lives as long as the process */
    while (api != NULL && api->version.major != DLPACK_MAJOR) api = api->prev_api;
    return (const DLPackExchangeAPI *)api;
}

/* The table skips the producer's own check for gradients: only a tensor known to have none may use it. */
static bool tracks_gradients(PyObject *object) {
    PyObject *requires_grad = PyObject_GetAttrString(object, "requires_grad");
    if (requires_grad == NULL) {
        PyErr_Clear();
        return false;
    }
    const bool is_known_to_have_none = requires_grad == Py_False;
    Py_DECREF(requires_grad);
    return !is_known_to_have_none;
}

static int check_device(int64_t device_type) {
    if (device_type == DL_CPU || device_type == DL_CUDA_HOST || device_type == DL_ROCM_HOST) return 0;
    PyErr_Format(PyExc_BufferError, "it is not in CPU memory (DLPack device type %lld)", (long long)device_type);
    return -1;
}

static int check_python_device(PyObject *object) {
    PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    if (device == NULL) return -1;
    int device_type = 0, device_id = 0;
    const bool is_pair = PyTuple_Check(device) && PyArg_ParseTuple(device, "ii", &device_type, &device_id);
    Py_DECREF(device);
    if (is_pair) return check_device(device_type);
    PyErr_SetString(PyExc_BufferError, "its __dlpack_device__() is not a pair of integers");
    return -1;
}

static PyObject *call_dlpack(PyObject *object) {
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (method == NULL) return NULL;
    PyObject *capsule = NULL;
    PyObject *no_arguments = PyTuple_New(0);
    PyObject *options = Py_BuildValue("{s:(ii)}", "max_version", DLPACK_MAJOR, 0);
    if (no_arguments != NULL && options != NULL) capsule = PyObject_Call(method, no_arguments, options);
    /* Producers older than DLPack 1.0 do not know max_version. */
    if (capsule == NULL && no_arguments != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_Call(method, no_arguments, NULL);
    }
    Py_XDECREF(options);
    Py_XDECREF(no_arguments);
    Py_DECREF(method);
    return capsule;
}

/* Take the tensor out of its capsule; renaming tells the capsule that it is no longer the owner. */
static int consume(PyObject *capsule, tw_dlpack_tensor *tensor) {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        tensor->versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        return PyCapsule_SetName(capsule, "used_dltensor_versioned");
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        tensor->unversioned = PyCapsule_GetPointer(capsule, "dltensor");
        return PyCapsule_SetName(capsule, "used_dltensor");
    }
    PyErr_Format(PyExc_BufferError, "its __dlpack__() returned %R, which is not a DLPack capsule", capsule);
    return -1;
}

static int acquire_from_protocol(PyObject *object, tw_dlpack_tensor *tensor) {
    if (check_python_device(object) != 0) return -1;
    PyObject *capsule = call_dlpack(object);
    if (capsule == NULL) return -1;
    const int status = consume(capsule, tensor);
    Py_DECREF(capsule);
    return status;
}

static int check_taken(const tw_dlpack_tensor *tensor) {
    if (tensor->versioned != NULL && tensor->versioned->version.major != DLPACK_MAJOR) {
        PyErr_Format(PyExc_BufferError, "it came as DLPack version %u, and only version %d is understood",
                     (unsigned)tensor->versioned->version.major, DLPACK_MAJOR);
        return -1;
    }
    return check_device(tw_dlpack_view(tensor)->device.device_type);
}

int tw_dlpack_acquire(PyObject *object, tw_dlpack_tensor *tensor) {
    *tensor = (tw_dlpack_tensor){0};
    const DLPackExchangeAPI *table = exchange_table(object);
    const bool use_table = table != NULL && !tracks_gradients(object);
    const int status = use_table ? table->managed_tensor_from_py_object_no_sync(object, &tensor->versioned)
                                 : acquire_from_protocol(object, tensor);
    if (status != 0) return -1;
    if (check_taken(tensor) == 0) return 0;
    tw_dlpack_release(tensor);
    return -1;
}

void tw_dlpack_release(tw_dlpack_tensor *tensor) {
    /* A deleter may run Python code; it must not see, or lose, an exception that is on its way to the caller. */
    PyObject *exception = tw_exception_take();
    if (tensor->versioned != NULL && tensor->versioned->deleter != NULL) tensor->versioned->deleter(tensor->versioned);
    if (tensor->unversioned != NULL && tensor->unversioned->deleter != NULL)
        tensor->unversioned->deleter(tensor->unversioned);
    tw_exception_put(exception);
    *tensor = (tw_dlpack_tensor){0};
}

const DLTensor *tw_dlpack_view(const tw_dlpack_tensor *tensor) {
    return tensor->versioned != NULL ? &tensor->versioned->dl_tensor : &tensor->unversioned->dl_tensor;
}

int tw_dlpack_is_read_only(const tw_dlpack_tensor *tensor) {
    return tensor->versioned != NULL && (tensor->versioned->flags & DL_FLAG_READ_ONLY) != 0;
}
