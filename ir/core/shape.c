// Tensor types, taken apart and put together.
#include "ir/core/ir.h"

#include <assert.h>

struct hec_tensor hec_tensor_of(MlirType type) {
    assert(mlirTypeIsARankedTensor(type));
    struct hec_tensor tensor = {.rank = (int)mlirShapedTypeGetRank(type),
                                .element = mlirShapedTypeGetElementType(type)};
    assert(tensor.rank <= HEC_IR_RANK_MAX);
    const MlirAttribute names = mlirRankedTensorTypeGetEncoding(type);
    const bool named = !mlirAttributeIsNull(names) && mlirAttributeIsAArray(names) &&
                       mlirArrayAttrGetNumElements(names) == tensor.rank;
    for (int i = 0; i < tensor.rank; i++) {
        tensor.size[i] = mlirShapedTypeGetDimSize(type, i);
        tensor.dim[i] = HEC_STR("?"); // Text read back may lack names; hec_op_verify reports it.
        if (!named) continue;
        const MlirAttribute name = mlirArrayAttrGetElement(names, i);
        if (mlirAttributeIsAString(name)) tensor.dim[i] = mlirStringAttrGetValue(name);
    }
    return tensor;
}

MlirType hec_tensor_type(const struct hec_tensor *tensor) {
    const MlirContext context = mlirTypeGetContext(tensor->element);
    MlirAttribute names[HEC_IR_RANK_MAX];
    for (int i = 0; i < tensor->rank; i++) names[i] = mlirStringAttrGet(context, tensor->dim[i]);
    const MlirAttribute encoding =
        tensor->rank ? mlirArrayAttrGet(context, tensor->rank, names) : mlirAttributeGetNull();
    return mlirRankedTensorTypeGet(tensor->rank, tensor->size, tensor->element, encoding);
}

int hec_tensor_find(const struct hec_tensor *tensor, MlirStringRef dim) {
    for (int i = 0; i < tensor->rank; i++) {
        if (mlirStringRefEqual(tensor->dim[i], dim)) return i;
    }
    return -1;
}

void hec_tensor_append(struct hec_tensor *tensor, MlirStringRef dim, int64_t size) {
    assert(tensor->rank < HEC_IR_RANK_MAX);
    tensor->dim[tensor->rank] = dim;
    tensor->size[tensor->rank++] = size;
}

bool hec_type_is_sized(MlirType type) {
    int64_t elements = 1;
    for (int i = 0; i < mlirShapedTypeGetRank(type); i++) {
        const int64_t size = mlirShapedTypeGetDimSize(type, i);
        if (size < 1 || size > HEC_IR_ELEMENTS_MAX / elements) return false;
        elements *= size;
    }
    return true;
}

int64_t hec_type_elements(MlirType type) {
    int64_t elements = 1;
    for (int i = 0; i < mlirShapedTypeGetRank(type); i++) {
        elements *= mlirShapedTypeGetDimSize(type, i);
    }
    return elements;
}

int64_t hec_type_bytes(MlirType type) {
    if (!mlirTypeIsARankedTensor(type)) return 0;
    const MlirType element = mlirShapedTypeGetElementType(type);
    const int64_t bytes = mlirTypeIsAF64(element) ? 8 : mlirTypeIsABF16(element) ? 2 : 4;
    return hec_type_elements(type) * bytes;
}

bool hec_type_is_real(MlirType type) {
    if (!mlirTypeIsARankedTensor(type)) return false;
    const MlirType element = mlirShapedTypeGetElementType(type);
    return mlirTypeIsAF32(element) || mlirTypeIsAF64(element);
}

static MlirType with_element(MlirType type, MlirType element) {
    struct hec_tensor tensor = hec_tensor_of(type);
    tensor.element = element;
    return hec_tensor_type(&tensor);
}

bool hec_type_is_rounded(MlirType type) {
    return mlirTypeIsARankedTensor(type) && mlirTypeIsABF16(mlirShapedTypeGetElementType(type));
}

MlirType hec_type_rounded(MlirType type) {
    return with_element(type, mlirBF16TypeGet(mlirTypeGetContext(type)));
}

MlirType hec_type_unrounded(MlirType type) {
    if (!hec_type_is_rounded(type)) return type;
    return with_element(type, mlirF32TypeGet(mlirTypeGetContext(type)));
}
