// Locations: names of values, and where in the source an operation comes from.
#include "ir/op.h"

MlirLocation hec_loc_file(MlirContext c, const char *file, unsigned line, unsigned column) {
    return mlirLocationFileLineColGet(c, HEC_STR(file), line, column);
}

MlirLocation hec_loc_named(const char *name, MlirLocation at) {
    return name ? mlirLocationNameGet(mlirLocationGetContext(at), HEC_STR(name), at) : at;
}

MlirStringRef hec_loc_name(MlirLocation at) {
    return mlirLocationIsAName(at) ? mlirIdentifierStr(mlirLocationNameGetName(at))
                                   : mlirStringRefCreate("", 0);
}

MlirLocation hec_loc_strip(MlirLocation at) {
    while (mlirLocationIsAName(at)) at = mlirLocationNameGetChildLoc(at);
    return at;
}

// scf.for's syntax drops the locations of its block arguments, so a carried value takes the name
// of its initial value. Index arguments (the layer) have none.
MlirStringRef hec_value_name(MlirValue value) {
    for (;;) {
        const MlirStringRef name = hec_loc_name(mlirValueGetLocation(value));
        if (name.length || !mlirValueIsABlockArgument(value)) return name;
        const MlirBlock block = mlirBlockArgumentGetOwner(value);
        const MlirOperation parent = mlirBlockGetParentOperation(block);
        const int index = (int)mlirBlockArgumentGetArgNumber(value);
        if (!hec_op_is(parent, HEC_OP_FOR) || index == 0) return name;
        const struct hec_for loop = hec_for_of(parent);
        value = hec_for_init(&loop, index - 1);
    }
}

bool hec_loc_place(MlirLocation at, struct hec_place *place) {
    *place = (struct hec_place){0};
    at = hec_loc_strip(at);
    if (mlirLocationIsACallSite(at)) {
        place->unit = hec_loc_name(mlirLocationCallSiteGetCaller(at));
        at = hec_loc_strip(mlirLocationCallSiteGetCallee(at));
        struct hec_place inner;
        if (mlirLocationIsACallSite(at)) {
            if (!hec_loc_place(at, &inner)) return false;
            *place = inner;
            return true;
        }
    }
    if (!mlirLocationIsAFileLineColRange(at)) return false;
    place->file = mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(at));
    place->line = (unsigned)mlirLocationFileLineColRangeGetStartLine(at);
    place->column = (unsigned)mlirLocationFileLineColRangeGetStartColumn(at);
    return true;
}
