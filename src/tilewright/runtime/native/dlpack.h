/* DLPack: memory of other array libraries, without a copy.
 *
 * The structures are those of the DLPack specification, versions 0.x and 1.x; the layout is fixed by it.
 */
#ifndef TILEWRIGHT_DLPACK_H
#define TILEWRIGHT_DLPACK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA_HOST = 3, DL_ROCM_HOST = 11 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };
enum { DL_FLAG_READ_ONLY = 1 };

typedef struct {
    int32_t device_type;
    int32_t device_id;
} DLDevice;

typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL is C-contiguous */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* A tensor taken from its producer: exactly one of the two is set. */
typedef struct {
    DLManagedTensor *unversioned;
    DLManagedTensorVersioned *versioned;
} tw_dlpack_tensor;

/* Whether `object` speaks DLPack. Sets no exception. */
int tw_dlpack_supported(PyObject *object);

/* Take the tensor of `object`. Returns 0, or -1 with the producer's exception, or a BufferError, set. */
int tw_dlpack_acquire(PyObject *object, tw_dlpack_tensor *tensor);
void tw_dlpack_release(tw_dlpack_tensor *tensor);

const DLTensor *tw_dlpack_view(const tw_dlpack_tensor *tensor);
int tw_dlpack_is_read_only(const tw_dlpack_tensor *tensor);

#endif
